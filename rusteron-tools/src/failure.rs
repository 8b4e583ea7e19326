//! How the program ends.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why the program ends without having done its task.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong: exit code 1.
    Run(String),
    /// There is no driver that is alive, and this is an answer: exit code 3, and nothing to say.
    NotAlive,
    /// The reader of the output is gone, which is a wish to end: exit code 0.
    Closed,
    /// The user has asked for the end: exit code 0, and nothing to say.
    Interrupted,
}

impl Failure {
    /// A failure with the action that failed, and its cause.
    pub(crate) fn run(doing: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::Run(format!("{doing}: {cause}"))
    }
}

impl From<rusteron_client::Error> for Failure {
    fn from(error: rusteron_client::Error) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<rusteron_client::PollError> for Failure {
    fn from(error: rusteron_client::PollError) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<rusteron_archive::ArchiveError> for Failure {
    fn from(error: rusteron_archive::ArchiveError) -> Self {
        Self::Run(error.to_string())
    }
}

/// For output. Errors of other input and output are not passed on as they are.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::run("cannot write to standard output", error),
        }
    }
}

/// Prints the failure, if there is one, and tells the exit code.
pub(crate) fn exit_code(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::Closed | Failure::Interrupted) => ExitCode::SUCCESS,
        Err(Failure::NotAlive) => ExitCode::from(3),
        Err(Failure::Run(text)) => {
            // If standard error is closed, there is no way to report the failure.
            let _ = writeln!(io::stderr(), "rusteron: {text}");
            ExitCode::FAILURE
        }
    }
}
