//! What the program's end tells a supervisor, in the numbers of sysexits.h.

use std::io;

use rusteron_client::{Error, ErrorKind};

/// For the help text.
pub(crate) const HELP: &str = "Exit status:
   0  ended by SIGINT, SIGTERM, SIGHUP or a client's request
   1  any failure without a number of its own
   2  the command line is wrong
  73  the directory cannot be made: no space, or in the way
  75  another driver has the directory, or died in it just now: try again later
  77  no permission
  78  a setting is wrong, or a file of properties cannot be read";

pub(crate) const WRONG_SETTING: u8 = 78;

pub(crate) fn of(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::StorageSpace => 73,
        ErrorKind::ActiveDriver | ErrorKind::StaleDirectory => 75,
        ErrorKind::Io(io::ErrorKind::PermissionDenied) => 77,
        ErrorKind::Io(_) | ErrorKind::IncompatibleDriver => 73,
        ErrorKind::InvalidArgument => WRONG_SETTING,
        _ => 1,
    }
}
