//! Processes, files of results and failures for the programs of `lab`. Helpers of tests panic
//! instead.

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
