//! The lock of an archive's directory.
//!
//! It is a file of its own that only the archive's user can open. Whoever can read a file can also
//! lock it, so that a lock of the mark file, which others may read, would let them keep the archive
//! out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;

use rusteron_core::dir_access::DirAccess;
use rusteron_core::ffi::Process;
use rusteron_core::files;
use rusteron_core::mark_file::{Owner, open_new};

pub(crate) const LOCK_NAME: &str = "archive.lock";

/// The lock of a directory, if the file system has locks. The operating system takes it away from a
/// process that ends.
///
/// A forked child gets the file, too. It neither unlocks the file by dropping this, nor keeps the lock beyond the drop in
/// its parent. It does keep the lock of a parent that was killed.
#[derive(Debug)]
pub(crate) struct Lock {
    file: Option<File>,
    process: Process,
}

impl Lock {
    /// Locks a directory, and makes the file if it is missing. Returns the owner if another archive
    /// or tool has the lock, of this process or of another one.
    ///
    /// Nobody has more access to the file than `access` gives, which is that of an archive and not
    /// of a tool.
    ///
    /// # Errors
    /// The file cannot be made or opened.
    pub(super) fn new(dir: &Path, access: Option<DirAccess>) -> io::Result<Result<Self, Owner>> {
        let access = access.map(|access| match access {
            DirAccess::Umask => DirAccess::Private,
            DirAccess::Private | DirAccess::Group => access,
        });
        let path = dir.join(LOCK_NAME);
        loop {
            let file = match open_new(&path, access.unwrap_or_default())? {
                Some(file) => {
                    give_to_owner(&file, dir);
                    file
                }
                None => match open(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    opened => opened?,
                },
            };
            if let Some((_, mode)) = access.and_then(DirAccess::modes) {
                limit_mode(&file, mode)?;
            }
            match Self::of(&path, file) {
                // Somebody has removed the file meanwhile, and made another one.
                Ok(lock) if !lock.is_of(&path) => {}
                locked => return Ok(locked),
            }
        }
    }

    /// Locks a directory that is only read: without a lock if there is no file, or none that this
    /// user may open.
    ///
    /// # Errors
    /// The file cannot be opened for another reason.
    pub(super) fn of_reader(dir: &Path) -> io::Result<Result<Self, Owner>> {
        let path = dir.join(LOCK_NAME);
        match open(&path) {
            Ok(file) => Ok(Self::of(&path, file)),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound
                        | ErrorKind::PermissionDenied
                        | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                Ok(Ok(Self { file: None, process: Process::current() }))
            }
            Err(error) => Err(error),
        }
    }

    fn of(path: &Path, mut file: File) -> Result<Self, Owner> {
        let file = match try_lock(&file) {
            Ok(true) => {
                // For the refusal of others. They do without if the disk is full.
                let pid = std::process::id().to_string();
                let _ = file.set_len(0).and_then(|()| file.write_all(pid.as_bytes()));
                Some(file)
            }
            Ok(false) => return Err(owner(&mut file)),
            Err(error) => {
                log::debug!("{} cannot be locked: {error}", path.display());
                None
            }
        };
        Ok(Self { file, process: Process::current() })
    }

    /// Locks a directory that only this user can open, and not a file in it: before there are any
    /// files. Returns `None` if it is locked already. Without locks, the result is not held.
    ///
    /// # Errors
    /// The directory cannot be opened.
    #[cfg(feature = "driver")]
    pub(crate) fn of_own_dir(dir: &Path) -> io::Result<Option<Self>> {
        let process = Process::current();
        if cfg!(not(unix)) {
            // Directories cannot be opened as files.
            return Ok(Some(Self { file: None, process }));
        }
        let file = File::open(dir)?;
        Ok(match try_lock(&file) {
            Ok(true) => Some(Self { file: Some(file), process }),
            Ok(false) => None,
            Err(_) => Some(Self { file: None, process }),
        })
    }

    /// Returns whether there is a lock at all.
    pub(crate) fn is_held(&self) -> bool {
        self.file.is_some()
    }

    /// Returns whether the file that is locked has this path.
    fn is_of(&self, path: &Path) -> bool {
        let Some(file) = &self.file else { return true };
        match (file.metadata(), fs::metadata(path)) {
            (Ok(locked), Ok(named)) => super::file_id(&locked) == super::file_id(&named),
            _ => false,
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let (Some(file), true) = (&self.file, self.process.is_current()) {
            unlock(file);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    files::open(path, OpenOptions::new().read(true).write(true))
}

/// Returns the owner that the file names.
fn owner(file: &mut File) -> Owner {
    let mut pid = String::new();
    let read = file.rewind().and_then(|()| file.take(20).read_to_string(&mut pid));
    Owner::Locked { pid: read.ok().and_then(|_| pid.parse().ok()).unwrap_or_default() }
}

/// Gives a new file to the directory's owner: a tool of the superuser must not keep the archive of
/// another user out.
#[cfg(unix)]
fn give_to_owner(file: &File, dir: &Path) {
    use std::os::unix::fs::MetadataExt;

    if let Ok(dir) = fs::metadata(dir) {
        // Only the superuser may do so.
        let _ = std::os::unix::fs::fchown(file, Some(dir.uid()), Some(dir.gid()));
    }
}

#[cfg(not(unix))]
fn give_to_owner(_: &File, _: &Path) {}

/// Takes other rights away than those of a mode, which a copy of a directory may have given.
#[cfg(unix)]
fn limit_mode(file: &File, limit: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & !limit == 0 {
        return Ok(());
    }
    match file.set_permissions(fs::Permissions::from_mode(mode & limit)) {
        // It is the file of another user, who lets this one write to it.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        set => set,
    }
}

#[cfg(not(unix))]
fn limit_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// Returns whether the file is locked now.
#[cfg(unix)]
fn try_lock(file: &File) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(unix)]
fn unlock(file: &File) {
    // Closing the file does the same later.
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
}

#[cfg(not(unix))]
fn try_lock(_: &File) -> io::Result<bool> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn unlock(_: &File) {}
