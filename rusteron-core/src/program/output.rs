//! Standard output and standard error. A closed pipe is no reason to end a program.

use std::fmt::Display;
use std::io::{self, Write as _};

use log::{LevelFilter, Log, Metadata, Record};

use crate::printable::Printable;

/// Prints text to standard output.
pub fn print(text: impl Display) {
    let mut out = io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line to standard error. Parts of it may come from other processes, so control
/// characters are escaped.
pub fn print_error(program: &str, what: impl Display) {
    let _ = writeln!(io::stderr(), "{program}: {}", Printable(what));
}

/// Prints the libraries' warnings and errors to standard error from now on.
pub fn log_to_standard_error(program: &'static str) {
    // There is no other logger yet. It lives as long as the process.
    if log::set_logger(Box::leak(Box::new(StandardError { program }))).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

struct StandardError {
    program: &'static str,
}

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            print_error(self.program, record.args());
        }
    }

    fn flush(&self) {}
}
