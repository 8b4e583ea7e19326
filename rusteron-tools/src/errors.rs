//! `rusteron errors`: the distinct errors of the driver.

use std::time::SystemTime;

use rusteron_client::ErrorLogEntry;
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::driver_dir::{DriverDir, DriverStatus};
use crate::options::ErrorsOptions;
use crate::report::{self, Report};
use crate::text;

#[derive(Debug, Serialize)]
struct Errors {
    driver: DriverStatus,
    errors: Vec<DistinctError>,
}

/// An error of an error log, as a report shows it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct DistinctError(#[serde(with = "Entry")] pub(crate) ErrorLogEntry);

/// The JSON of an entry.
#[derive(Serialize)]
#[serde(remote = "ErrorLogEntry")]
struct Entry {
    observation_count: i32,
    #[serde(serialize_with = "text::serialize_time")]
    first_observation: SystemTime,
    #[serde(serialize_with = "text::serialize_time")]
    last_observation: SystemTime,
    text: String,
}

pub(crate) fn run(dir: &DriverDir, options: &ErrorsOptions) -> Result<(), Failure> {
    let cnc = dir.open()?;
    // A time before the first possible time selects all errors.
    let since = options.since.and_then(|since| SystemTime::now().checked_sub(since));
    let errors = since.map_or_else(|| cnc.errors(), |since| cnc.errors_since(since));
    let report = Errors {
        driver: dir.status(Some(&cnc)),
        errors: errors.into_iter().map(DistinctError).collect(),
    };
    report::print(&report, options.format.json)
}

impl DistinctError {
    /// Returns the observations in one line, and the text in further lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Self(entry) = self;
        let observations = format!(
            "observed {} times from {} to {}:",
            entry.observation_count,
            text::time(entry.first_observation),
            text::time(entry.last_observation)
        );
        let text = entry.text.lines().map(|line| format!("  {}", text::printable(line)));
        [observations].into_iter().chain(text).collect()
    }
}

impl Report for Errors {
    fn header(&self) -> Vec<String> {
        vec![self.driver.line(), format!("{} distinct errors", self.errors.len())]
    }

    fn body(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for error in &self.errors {
            lines.push(String::new());
            lines.extend(error.lines());
        }
        lines
    }
}
