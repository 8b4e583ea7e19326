//! A directory in which no archive runs, while a tool reads or changes it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use rusteron_core::files;
use rusteron_core::mark_file::{LIVENESS_TIMEOUT, Owner, Reservation};

use crate::error::{Result, ServerError, ServerErrorKind};
use crate::ids::RecordingId;
use crate::mark_file::{Ended, Killed, LINK_NAME, Lock, Locks, NAME, former_owner};

/// Keeps this server out of a directory. Java's archive knows no lock, and starts nevertheless.
#[derive(Debug)]
pub(crate) struct Guard {
    killed_positions: HashMap<RecordingId, i64>,
    is_original: bool,
    _locks: Locks,
    _reservation: Reservation,
}

impl Guard {
    /// Locks a directory to change its files, but for the mark file. A directory without one, such
    /// as a copy, has no archive unless it is locked.
    ///
    /// # Errors
    /// - [`ActiveArchive`](ServerErrorKind::ActiveArchive): an archive is alive, or may be. The text names its process.
    /// - [`InvalidMarkFile`](ServerErrorKind::InvalidMarkFile): the file is damaged, or of another version.
    /// - Errors of files.
    pub(crate) fn new(archive_dir: &Path) -> Result<Self> {
        Self::with(archive_dir, |dir| Lock::new(dir, None))
    }

    /// As [`new`](Self::new), without a change of the directory, and without a lock if this user
    /// may not take it.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn of_reader(archive_dir: &Path) -> Result<Self> {
        Self::with(archive_dir, Lock::of_reader)
    }

    fn with(
        archive_dir: &Path,
        lock: impl Fn(&Path) -> io::Result<std::result::Result<Lock, Owner>>,
    ) -> Result<Self> {
        let dir = mark_file_dir(archive_dir)?;
        let path = dir.join(NAME);
        let refused = |owner| active(&path, owner);
        let reservation = Reservation::new(&path).map_err(refused)?;
        let locks = Locks::new(&canonical(archive_dir)?, &dir, lock, active)?;
        let killed = match files::open(&path, OpenOptions::new().read(true)) {
            Ok(file) => {
                let Ended { bytes, owner } =
                    former_owner(&path, &file, &locks)?.map_err(refused)?;
                let killed = owner.map(|(header, start, former)| {
                    Killed::read(&bytes, &header, start, former, &file)
                });
                killed.unwrap_or_default()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Killed::default(),
            Err(error) => return Err(ServerError::file(&path, &error)),
        };
        let Killed { positions: killed_positions, is_original, .. } = killed;
        Ok(Self { killed_positions, is_original, _locks: locks, _reservation: reservation })
    }

    /// Returns whether the last archive wrote to this directory, and not to one of which it is a
    /// copy.
    pub(crate) fn is_original(&self) -> bool {
        self.is_original
    }

    /// Returns the positions that recordings had when the last archive was killed, by id.
    pub(crate) fn killed_positions(&self) -> &HashMap<RecordingId, i64> {
        &self.killed_positions
    }
}

fn canonical(dir: &Path) -> Result<PathBuf> {
    dir.canonicalize().map_err(|error| ServerError::file(dir, &error))
}

/// The most bytes of a link file, which has a path.
const MAX_LINK_LENGTH: u64 = 64 * 1024;

/// Returns the directory of the mark file, which a link file may name.
fn mark_file_dir(archive_dir: &Path) -> Result<PathBuf> {
    let link = archive_dir.join(LINK_NAME);
    match files::read(&link, MAX_LINK_LENGTH) {
        Ok(bytes) => {
            let dir = String::from_utf8_lossy(&bytes);
            match Path::new(dir.trim()).canonicalize() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => canonical(archive_dir),
                Err(error) => Err(ServerError::file(&link, &error)),
                Ok(dir) => Ok(dir),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => canonical(archive_dir),
        Err(error) => Err(ServerError::file(&link, &error)),
    }
}

fn active(path: &Path, owner: Owner) -> ServerError {
    let advice = match owner {
        Owner::Alive { age_ms: ..0, .. } => "if it has ended, delete the file".to_owned(),
        Owner::Alive { .. } => {
            format!("end it, or wait {} s if it was killed", LIVENESS_TIMEOUT.as_secs())
        }
        _ => "end it first".to_owned(),
    };
    let message = format!("{} belongs to an archive, {owner}: {advice}", path.display());
    ServerError::new(ServerErrorKind::ActiveArchive, message)
}
