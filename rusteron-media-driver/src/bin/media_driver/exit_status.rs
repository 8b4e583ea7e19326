//! The exit statuses of the program, for its help text.

pub(crate) const HELP: &str = "Exit status:
   0  ended by SIGINT, SIGTERM, SIGHUP or a client's request
   1  any failure without a number of its own, such as one to end in good order
   2  the command line is wrong
  73  the directory cannot be made: no space, or in the way
  75  another driver has the directory, or died in it just now: try again later
  77  no permission
  78  a setting is wrong or, with --strict, unknown; or a file of properties cannot be read";

#[cfg(test)]
mod tests {
    use std::io;

    use rusteron_core::ErrorKind;
    use rusteron_media_driver::program::exit_status::{WRONG_SETTING, of};

    use super::*;

    #[test]
    fn help_lists_every_status() {
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
            (ErrorKind::InvalidArgument, WRONG_SETTING),
        ];
        for (kind, status) in cases {
            assert_eq!(of(kind), status, "{kind:?}");
        }

        // Success, and clap's refusal of a command line, come from no error.
        let mut given: Vec<u8> =
            cases.into_iter().map(|(_, status)| status).chain([0, 2]).collect();
        given.sort_unstable();
        given.dedup();
        let first_words = HELP.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let documented: Vec<u8> =
            first_words.map(|number| number.parse().expect("a number")).collect();
        assert_eq!(documented, given);
    }
}
