//! Failures and exit codes.

use rusteron_core::printable::Printable;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Reason for ending before the task is done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error: exit code 1.
    Run(String),
    /// No driver is alive. An answer, not an error: exit code 3, without a message.
    NotAlive,
    /// The reader of the output is gone: exit code 0.
    Closed,
    /// The user has asked for the end: exit code 0.
    Interrupted,
}

impl Failure {
    /// Returns a failure with the failed action and its cause.
    pub(crate) fn run(doing: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::Run(format!("{doing}: {cause}"))
    }
}

macro_rules! from_errors {
    ($($error:ty),+) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Run(error.to_string())
            }
        }
    )+};
}
from_errors!(
    rusteron_client::Error,
    rusteron_client::PollError,
    rusteron_archive::ArchiveError,
    rusteron_archive_server::ServerError
);

/// For standard output only. Other I/O errors get a context where they occur.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::run("cannot write to standard output", error),
        }
    }
}

/// Prints the failure, if any, and returns the exit code.
pub(crate) fn exit_code(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::Closed | Failure::Interrupted) => ExitCode::SUCCESS,
        Err(Failure::NotAlive) => ExitCode::from(3),
        Err(Failure::Run(text)) => {
            // If standard error is closed, there is no way to report the failure.
            let _ = writeln!(io::stderr(), "rusteron: {}", Printable(text));
            ExitCode::FAILURE
        }
    }
}
