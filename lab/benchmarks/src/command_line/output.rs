//! Standard output.

use std::fmt;
use std::io::{self, Write};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;

/// Prints lines to standard output, and ends the program orderly if the reader has closed it.
#[derive(Debug)]
pub struct Output<'a> {
    interrupt: &'a Interrupt,
    is_closed: bool,
}

impl<'a> Output<'a> {
    /// Standard output, for a program that ends by `interrupt`.
    pub fn new(interrupt: &'a Interrupt) -> Self {
        Self { interrupt, is_closed: false }
    }

    /// Prints one line.
    ///
    /// That the reader is gone, as in `… | head -1`, is a wish to end and not an error.
    ///
    /// # Errors
    /// If the line cannot be written.
    pub fn line(&mut self, line: impl fmt::Display) -> Result<(), Failure> {
        if self.is_closed {
            return Ok(());
        }
        match writeln!(io::stdout(), "{line}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                self.interrupt.request();
                Ok(())
            }
            result => {
                result.map_err(|error| Failure::run("cannot write to standard output", error))
            }
        }
    }
}
