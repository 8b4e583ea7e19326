//! Exit status of a program for a supervisor, with the numbers of sysexits.h.

use std::io;

use rusteron_core::ErrorKind;

pub const CANNOT_CREATE: u8 = 73;
pub const TRY_AGAIN: u8 = 75;
pub const NO_PERMISSION: u8 = 77;
pub const WRONG_SETTING: u8 = 78;

/// Returns the status of a failed launch.
pub fn of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::StorageSpace | ErrorKind::IncompatibleDriver => CANNOT_CREATE,
        ErrorKind::ActiveDriver | ErrorKind::StaleDirectory => TRY_AGAIN,
        ErrorKind::Io(kind) => of_io(kind),
        ErrorKind::InvalidArgument => WRONG_SETTING,
        _ => 1,
    }
}

/// Returns the status of an error of the operating system.
pub fn of_io(kind: io::ErrorKind) -> u8 {
    match kind {
        io::ErrorKind::PermissionDenied => NO_PERMISSION,
        kind if is_of_directories(kind) => CANNOT_CREATE,
        _ => 1,
    }
}

/// Returns whether the operating system's error is about a directory or the path to it.
fn is_of_directories(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::NotFound
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ResourceBusy
            // A directory that could be deleted only at the second attempt.
            | io::ErrorKind::Interrupted
    )
}
