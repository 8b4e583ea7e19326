//! How a program ends when it cannot do its task.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use rusteron_client::{ChannelUriError, Error, OfferError, PollError};
use rusteron_cluster::ClusterError;

/// Why a program ends, and with which exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An option has a value that cannot be used: exit code 2, as for values that `clap` refuses.
    Usage(String),
    /// Something went wrong while running: exit code 1.
    Run(String),
    /// The user has asked for the end: exit code 0, and nothing to say.
    Interrupted,
}

impl Failure {
    /// A run-time failure: the action that failed, and its cause.
    pub fn run(doing: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::Run(format!("{doing}: {cause}"))
    }

    /// A value of an option that cannot be used, and the reason.
    pub fn usage(option: &str, value: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self::Usage(format!("invalid value '{value}' for '{option}': {reason}"))
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Run(_) => 1,
            Self::Interrupted => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Run(text) => f.write_str(text),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Failure {}

macro_rules! from_errors {
    ($($error:path),+) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Run(error.to_string())
            }
        }
    )+};
}
from_errors!(Error, ChannelUriError, OfferError, PollError, ClusterError);

/// The end of a program: prints the failure, if there is one, and tells the exit code.
pub fn exit_code(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) | Err(Failure::Interrupted) => ExitCode::SUCCESS,
        Err(failure) => {
            print("error", &failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Prints something that is not a reason to end.
pub fn warn(message: impl fmt::Display) {
    print("warning", message);
}

fn print(label: &str, message: impl fmt::Display) {
    // If standard error is closed, there is no way to report the failure.
    let _ = writeln!(io::stderr(), "{label}: {message}");
}
