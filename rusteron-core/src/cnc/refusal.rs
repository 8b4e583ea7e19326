//! Waiting for a driver's file, and refusals of the operating system to open it.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_sys as sys;

use crate::error::{Error, ErrorKind, Result};
use crate::files;

/// Access that a process needs to `cnc.dat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reports about a driver.
    Read,
    /// For a client.
    ReadWrite,
    /// For a driver that would make the directory anew.
    Replace,
}

/// Looks at the file in a driver's directory until `look` returns something, or the timeout has passed. `look` learns
/// whether this process may open the file. C would wait, too, but by the time of day, which may jump.
///
/// # Errors
/// - the error of `look`;
/// - the refusal to open the file: at once if it is final, or else after the timeout.
pub fn await_file<T>(
    dir: &Path,
    access: Access,
    timeout: Duration,
    mut look: impl FnMut(bool) -> Result<Option<T>>,
) -> Result<Option<T>> {
    const PAUSE: Duration = Duration::from_millis(1);
    let start = Instant::now();
    loop {
        let refusal = Refusal::find(dir, access);
        if let Some(refusal) = refusal.as_ref().filter(|refusal| !refusal.may_end()) {
            return Err(refusal.to_error());
        }
        let found = look(refusal.is_none())?;
        if found.is_some() {
            return Ok(found);
        }
        let remaining = timeout.saturating_sub(start.elapsed());
        if remaining.is_zero() {
            return refusal.map_or(Ok(None), |refusal| Err(refusal.to_error()));
        }
        thread::sleep(remaining.min(PAUSE));
    }
}

/// Returns the operating system's refusal to open a driver's file.
pub fn refused(dir: &Path, access: Access) -> Option<Error> {
    Refusal::find(dir, access).map(|refusal| refusal.to_error())
}

/// A failed attempt to open `cnc.dat`. A missing file is no refusal: a driver may still make it.
///
/// C waits for a file that it may not open as for a missing file, and then reports a missing file.
#[derive(Debug)]
pub(crate) struct Refusal {
    cause: io::Error,
    file: PathBuf,
    access: Access,
}

impl Refusal {
    /// Tries to open the file in a driver's directory. Returns `None` if the file opens, and if
    /// there is no file.
    pub(crate) fn find(dir: &Path, access: Access) -> Option<Self> {
        let file = dir.join("cnc.dat");
        // C refuses such a path as an invalid argument.
        if file.as_os_str().len() >= sys::AERON_MAX_PATH as usize {
            return None;
        }
        let is_written = access != Access::Read;
        let opened = files::open(&file, OpenOptions::new().read(true).write(is_written));
        // What is no regular file is C's to refuse.
        let is_of_c = [io::ErrorKind::NotFound, io::ErrorKind::InvalidInput];
        let cause = opened.err().filter(|cause| !is_of_c.contains(&cause.kind()))?;
        Some(Self { cause, file, access })
    }

    /// Returns whether the refusal may end while the caller waits.
    ///
    /// A driver gives other users access in its last step, when all its files have their modes. A
    /// directory or file that changed within the last second may be in the making.
    #[cfg(unix)]
    fn may_end(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        use std::time::SystemTime;

        use crate::cnc::epoch;

        const MAKING: Duration = Duration::from_secs(1);
        if self.cause.kind() != io::ErrorKind::PermissionDenied {
            return false;
        }
        let Some((_, metadata)) = self.refusing() else { return false };
        let millis = metadata.ctime().saturating_mul(1000) + metadata.ctime_nsec() / 1_000_000;
        let changed = epoch::time(millis);
        changed
            .and_then(|changed| SystemTime::now().duration_since(changed).ok())
            .is_some_and(|age| age < MAKING)
    }

    /// Returns whether the refusal may end while the caller waits. Windows refuses to open a file
    /// that another process is making or deleting.
    #[cfg(not(unix))]
    fn may_end(&self) -> bool {
        true
    }

    /// Returns the path that refuses access, with its properties: the file, or the directory beside
    /// which nothing further can be seen. `None` if that is unknown.
    fn refusing(&self) -> Option<(&Path, fs::Metadata)> {
        self.file
            .ancestors()
            .find_map(|path| fs::metadata(path).ok().map(|metadata| (path, metadata)))
    }

    /// Returns the error: the refusing path, the reason, and what helps.
    pub(crate) fn to_error(&self) -> Error {
        let text = match self.cause.kind() {
            io::ErrorKind::NotADirectory => self.not_a_directory(),
            io::ErrorKind::PermissionDenied => self.permission_denied(),
            io::ErrorKind::ReadOnlyFilesystem => Some(format!(
                "{}: the file system is mounted read-only, and a client writes to this file",
                self.file.display()
            )),
            _ => None,
        };
        let text = text.unwrap_or_else(|| format!("{}: {}", self.file.display(), self.cause));
        match self.cause.raw_os_error() {
            Some(code) => Error::from_code(code, text),
            None => Error::new(ErrorKind::Io(self.cause.kind()), text),
        }
    }

    fn not_a_directory(&self) -> Option<String> {
        let (path, _) = self.refusing()?;
        let dir = self.file.parent().unwrap_or(&self.file).display();
        let path = path.display();
        Some(format!(
            "{path} is a file, and the driver's directory is {dir}; name a directory with \
             the setting dir or AERON_DIR"
        ))
    }

    #[cfg(unix)]
    fn permission_denied(&self) -> Option<String> {
        use std::os::unix::fs::MetadataExt;

        let (path, metadata) = self.refusing()?;
        // SAFETY: reads a number of the process, and cannot fail.
        let user = unsafe { sys::rusteron_effective_user() };
        let denied = match (metadata.is_dir(), self.access) {
            (true, _) => "search this directory",
            (false, Access::Read) => "read this file",
            (false, Access::ReadWrite | Access::Replace) => "read and write this file",
        };
        let help = match self.access {
            Access::Replace => {
                "choose another directory (--dir, AERON_DIR), or run this driver as that user"
            }
            Access::Read | Access::ReadWrite => {
                "run this program as the driver's user, or start the driver with access for a group \
                 (media_driver --dir-access group)"
            }
        };
        let (path, file) = (path.display(), self.file.display());
        let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777);
        Some(format!(
            "{file}: {path}: user {user} may not {denied} of user {owner}, group {group}, mode {mode:04o}; {help}"
        ))
    }

    #[cfg(not(unix))]
    fn permission_denied(&self) -> Option<String> {
        None
    }
}
