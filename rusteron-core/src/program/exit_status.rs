//! Exit statuses of programs that a supervisor runs, with the numbers of sysexits.h.

use std::fmt::Write as _;
use std::io;

use crate::ErrorKind;

/// Files are damaged, or of another version.
pub const WRONG_DATA: u8 = 65;
/// A directory or file cannot be made.
pub const CANNOT_CREATE: u8 = 73;
/// The same may succeed later.
pub const TRY_AGAIN: u8 = 75;
/// The user lacks a permission.
pub const NO_PERMISSION: u8 = 77;
/// A setting is wrong.
pub const WRONG_SETTING: u8 = 78;

/// The statuses with which the programs of media driver and archive end, and their meanings.
const MEANINGS: [(u8, &str); 8] = [
    (0, "ended by SIGINT, SIGTERM, SIGHUP or, with a media driver, a client's request"),
    (1, "any failure without a number of its own, such as an unclean shutdown"),
    (2, "the command line is wrong"),
    (WRONG_DATA, "the archive's files are damaged, or of another version"),
    (CANNOT_CREATE, "a directory or file cannot be made: no space, or in the way"),
    (
        TRY_AGAIN,
        "another driver or archive has the directory, or died in it just now; or an archive finds
      no media driver: try again later",
    ),
    (NO_PERMISSION, "no permission"),
    (
        WRONG_SETTING,
        "a setting is wrong or, with --strict, unknown; or a file of properties cannot be read",
    ),
];

/// Returns the part of a program's help that lists the statuses, with or without those of an
/// archive's files.
pub fn help(has_archive: bool) -> String {
    let mut text = "Exit status:".to_owned();
    for (status, meaning) in MEANINGS {
        if has_archive || status != WRONG_DATA {
            let _ = write!(text, "\n  {status:>2}  {meaning}");
        }
    }
    text
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_listed_statuses() {
        let cases = [
            (ErrorKind::Other, 1),
            (ErrorKind::UnknownHost, 1),
            (ErrorKind::Io(io::ErrorKind::AddrInUse), 1),
            (ErrorKind::Io(io::ErrorKind::AddrNotAvailable), 1),
            (ErrorKind::Io(io::ErrorKind::OutOfMemory), 1),
            (ErrorKind::StorageSpace, 73),
            (ErrorKind::IncompatibleDriver, 73),
            (ErrorKind::Io(io::ErrorKind::NotADirectory), 73),
            (ErrorKind::Io(io::ErrorKind::DirectoryNotEmpty), 73),
            (ErrorKind::Io(io::ErrorKind::ReadOnlyFilesystem), 73),
            (ErrorKind::ActiveDriver, 75),
            (ErrorKind::StaleDirectory, 75),
            (ErrorKind::Io(io::ErrorKind::PermissionDenied), 77),
            (ErrorKind::InvalidArgument, 78),
        ];
        for (kind, status) in cases {
            assert_eq!(of(kind), status, "{kind:?}");
            assert!(help(false).contains(&format!("\n  {status:>2}  ")), "{status}");
        }
    }

    #[test]
    fn only_archives_have_wrong_data() {
        assert_eq!([false, true].map(|it| help(it).contains("\n  65  ")), [false, true]);
    }
}
