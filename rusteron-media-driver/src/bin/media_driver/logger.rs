//! Prints the library's warnings and errors to standard error.

use log::{LevelFilter, Log, Metadata, Record};

struct StandardError;

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            crate::print_error(record.args());
        }
    }

    fn flush(&self) {}
}

pub(crate) fn install() {
    // There is no other logger yet.
    if log::set_logger(&StandardError).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
