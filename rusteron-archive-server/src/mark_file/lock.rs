//! The lock of a mark file.

use std::fs::File;
use std::path::Path;

use rusteron_core::ffi::Process;

/// Device and inode of a file.
pub(super) type FileId = [i64; 2];

/// The lock of a file, if the file system has locks. The operating system takes it away from a process that ends.
///
/// A forked child gets the file, too. It neither unlocks the file by dropping this, nor keeps the lock beyond the drop in
/// its parent. It does keep the lock of a parent that was killed.
#[derive(Debug)]
pub(super) struct Lock {
    file: Option<File>,
    process: Process,
}

impl Lock {
    /// Locks a file. Returns `None` if it is locked already, by another process or by another opening of this one.
    pub(super) fn new(path: &Path, file: &File) -> Option<Self> {
        let file = match try_lock(file) {
            Ok(file) => Some(file?),
            Err(error) => {
                log::debug!("{} cannot be locked: {error}", path.display());
                None
            }
        };
        Some(Self { file, process: Process::current() })
    }

    /// Returns whether there is a lock at all.
    pub(super) fn is_held(&self) -> bool {
        self.file.is_some()
    }

    /// Returns what tells the file from its copies: device and inode. `None` without a lock.
    pub(super) fn file_id(&self) -> Option<FileId> {
        self.file.as_ref().and_then(file_id)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let (Some(file), true) = (&self.file, self.process.is_current()) {
            unlock(file);
        }
    }
}

/// Returns another handle of the file, with the lock. `None` if it is locked already.
#[cfg(unix)]
fn try_lock(file: &File) -> std::io::Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    let file = file.try_clone()?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(unix)]
fn file_id(file: &File) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;

    let metadata = file.metadata().ok()?;
    Some([metadata.dev() as i64, metadata.ino() as i64])
}

#[cfg(unix)]
fn unlock(file: &File) {
    // Closing the file does the same later.
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
}

#[cfg(not(unix))]
fn try_lock(_: &File) -> std::io::Result<Option<File>> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn file_id(_: &File) -> Option<FileId> {
    None
}

#[cfg(not(unix))]
fn unlock(_: &File) {}
