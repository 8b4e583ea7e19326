//! `rusteron errors`: the distinct errors of the driver.

use std::time::SystemTime;

use rusteron_client::ErrorLogEntry;
use serde::Serialize;

use crate::driver_dir::{DriverDir, DriverStatus};
use crate::failure::Failure;
use crate::options::ErrorsOptions;
use crate::report::{self, Report};
use crate::text;

#[derive(Debug, Serialize)]
struct Errors {
    driver: DriverStatus,
    errors: Vec<DistinctError>,
}

#[derive(Debug, Serialize)]
struct DistinctError {
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
        errors: errors.into_iter().map(DistinctError::from).collect(),
    };
    report::print(&report, options.format.json)
}

impl From<ErrorLogEntry> for DistinctError {
    fn from(entry: ErrorLogEntry) -> Self {
        Self {
            observation_count: entry.observation_count,
            first_observation: entry.first_observation,
            last_observation: entry.last_observation,
            text: entry.text,
        }
    }
}

impl Report for Errors {
    fn header(&self) -> Vec<String> {
        vec![self.driver.line(), format!("{} distinct errors", self.errors.len())]
    }

    fn body(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for error in &self.errors {
            let (first, last) = (error.first_observation, error.last_observation);
            lines.push(String::new());
            lines.push(format!(
                "observed {} times from {} to {}:",
                error.observation_count,
                text::time(first),
                text::time(last)
            ));
            lines.extend(error.text.lines().map(|line| format!("  {}", text::printable(line))));
        }
        lines
    }
}
