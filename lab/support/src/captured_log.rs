//! The log of the crates, for tests of warnings.

use std::sync::{Mutex, OnceLock, PoisonError};

use log::{LevelFilter, Log, Metadata, Record};

/// All records of this process since the first call of [`logged_with`].
static RECORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Captured;

impl Log for Captured {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let record = format!("{}: {}", record.level(), record.args());
            RECORDS.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        }
    }

    fn flush(&self) {}
}

/// Returns the warnings and errors with this text that are logged during a call.
///
/// All tests of a process share the logger, so the text has to be one that no other test logs.
pub fn logged_with(text: &str, call: impl FnOnce()) -> Vec<String> {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        log::set_logger(&Captured).expect("no other logger in this process");
        log::set_max_level(LevelFilter::Warn);
    });
    let logged = || {
        let records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        records.iter().filter(|record| record.contains(text)).cloned().collect::<Vec<_>>()
    };
    let before = logged().len();
    call();
    logged().split_off(before)
}
