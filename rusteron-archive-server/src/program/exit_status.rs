//! Exit status of the programs for a supervisor, with the numbers of sysexits.h.

use rusteron_client::ErrorKind;
use rusteron_media_driver::program::exit_status::{self, CANNOT_CREATE, TRY_AGAIN, WRONG_SETTING};

use crate::error::ServerErrorKind;

/// For the help text.
pub(super) const HELP: &str = "Exit status:
   0  ended by SIGINT, SIGTERM, SIGHUP or, with a media driver, a client's request
   1  any failure without a number of its own, such as one to end in good order
   2  the command line is wrong
  65  the archive's files are damaged, or of another version
  73  a directory or file cannot be made: no space, or in the way
  75  another archive or driver has the directory, or there is no media driver: try again later
  77  no permission
  78  a setting is wrong or, with --strict, unknown; or a file of properties cannot be read";

const WRONG_DATA: u8 = 65;

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
    fn help_lists_every_status() {
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
        for (kind, status) in cases {
            assert_eq!(of(kind), status, "{kind:?}");
        }
        // Success, and clap's refusal of a command line, come from no error.
        let mut given: Vec<u8> =
            cases.map(|(_, status)| status).into_iter().chain([0, 2]).collect();
        given.sort_unstable();
        given.dedup();
        let first_words = HELP.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let documented: Vec<u8> =
            first_words.map(|number| number.parse().expect("a number")).collect();
        assert_eq!(documented, given);
    }
}
