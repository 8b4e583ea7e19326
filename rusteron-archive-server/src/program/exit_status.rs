//! Exit statuses of errors of the archive.

use rusteron_core::ErrorKind;
use rusteron_core::program::exit_status::{
    self, CANNOT_CREATE, TRY_AGAIN, WRONG_DATA, WRONG_SETTING,
};

use crate::error::ServerErrorKind;

pub(super) fn of(kind: ServerErrorKind) -> u8 {
    match kind {
        ServerErrorKind::InvalidArgument => WRONG_SETTING,
        ServerErrorKind::ActiveArchive | ServerErrorKind::Client(ErrorKind::DriverTimeout) => {
            TRY_AGAIN
        }
        ServerErrorKind::InvalidMarkFile
        | ServerErrorKind::InvalidCatalog
        | ServerErrorKind::InvalidRecording => WRONG_DATA,
        ServerErrorKind::StorageSpace => CANNOT_CREATE,
        ServerErrorKind::ThreadFailed => 1,
        ServerErrorKind::Io(kind) => exit_status::of_io(kind),
        ServerErrorKind::Client(kind) => exit_status::of(kind),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn errors_have_listed_statuses() {
        let cases = [
            (ServerErrorKind::InvalidArgument, 78),
            (ServerErrorKind::ActiveArchive, 75),
            (ServerErrorKind::InvalidMarkFile, 65),
            (ServerErrorKind::InvalidCatalog, 65),
            (ServerErrorKind::InvalidRecording, 65),
            (ServerErrorKind::StorageSpace, 73),
            (ServerErrorKind::ThreadFailed, 1),
            (ServerErrorKind::Io(io::ErrorKind::PermissionDenied), 77),
            (ServerErrorKind::Io(io::ErrorKind::NotADirectory), 73),
            (ServerErrorKind::Io(io::ErrorKind::OutOfMemory), 1),
            (ServerErrorKind::Client(ErrorKind::DriverTimeout), 75),
            (ServerErrorKind::Client(ErrorKind::ActiveDriver), 75),
            (ServerErrorKind::Client(ErrorKind::InvalidArgument), 78),
            (ServerErrorKind::Client(ErrorKind::Other), 1),
        ];
        let help = exit_status::help(true);
        for (kind, status) in cases {
            assert_eq!(of(kind), status, "{kind:?}");
            assert!(help.contains(&format!("\n  {status:>2}  ")), "{status}");
        }
    }
}
