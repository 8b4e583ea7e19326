//! What the program's end tells a supervisor.

use std::io;
use std::process::ExitCode;

use rusteron_client::{Error, ErrorKind};

/// For the help text.
pub(crate) const HELP: &str = "Exit status:
   0  ended by SIGINT, SIGTERM, SIGHUP or a client's request
   1  any failure without a number of its own
   2  the command line is wrong
  73  the directory cannot be made: no space, or in the way
  75  another driver has the directory, or died in it just now: try again later
  77  no permission
  78  a setting is wrong";

/// The numbers are those of sysexits.h, which supervisors know by name.
pub(crate) fn of(error: &Error) -> ExitCode {
    ExitCode::from(match error.kind() {
        ErrorKind::StorageSpace => 73,
        ErrorKind::ActiveDriver | ErrorKind::StaleDirectory => 75,
        ErrorKind::Io(io::ErrorKind::PermissionDenied) => 77,
        ErrorKind::Io(_) | ErrorKind::IncompatibleDriver => 73,
        ErrorKind::InvalidArgument => 78,
        _ => 1,
    })
}
