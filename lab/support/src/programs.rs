//! What the programs of `lab` have in common. Unlike the helpers of tests, these return failures.

mod process;
mod results_file;

use std::fmt::Display;
use std::process::ExitCode;

use rusteron_core::program::{self, Failure};

pub use process::Process;
pub use results_file::ResultsFile;

/// Ends a program: prints the failure, if there is one, and returns the exit code.
pub fn exit_code(result: Result<(), Failure>) -> ExitCode {
    program::exit_code(result, |text| eprintln!("error: {text}"))
}

/// Prints something that is no reason to end.
pub fn warn(message: impl Display) {
    eprintln!("warning: {message}");
}
