//! Standard output.

use std::fmt;
use std::io::{self, Write};

use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

/// Prints one line to standard output. That the reader is gone, as in `… | head -1`, is a wish to
/// end and not an error: it signals the interrupt.
///
/// # Errors
/// [`Failure::Run`] if the line cannot be written for another reason.
pub fn print_line(interrupt: &ShutdownSignal, line: impl fmt::Display) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{line}").map_err(Failure::from) {
        Err(Failure::Interrupted) => {
            interrupt.signal();
            Ok(())
        }
        printed => printed,
    }
}
