//! The file that a benchmark writes, and that pages are rendered from.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusteron_core::program::Failure;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::measuring::measurement::median;
use crate::reports::host;

/// One measured value with its name and unit, such as `("msgs/s", 1e6)`.
pub type Figure = (&'static str, f64);

/// The results of one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The name of the benchmark: `ipc-throughput`.
    pub benchmark: String,
    /// The command that measures the same again.
    pub command: String,
    /// The day of the measurement: `2026-11-25`.
    pub date: String,
    /// The processor and the system.
    pub machine: String,
    /// The versions of Aeron, the compilers and Java.
    pub versions: String,
    /// One row for each contender of each case, in the order of the tables.
    pub rows: Vec<Row>,
}

/// The runs of one contender under the conditions of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The conditions: `exclusive, 32 B`.
    pub case: String,
    /// Who was measured: `Rust`.
    pub contender: String,
    /// The measured values by name and unit: `msgs/s`, `p50 µs`.
    pub measures: BTreeMap<String, Values>,
}

/// The values of a measure over the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// One value for each run.
    Runs(Vec<f64>),
    /// The summary of runs that were not kept.
    Summary {
        /// The lowest run; missing if only the median is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lowest: Option<f64>,
        /// The median of the runs.
        median: f64,
        /// The highest run; missing if only the median is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        highest: Option<f64>,
    },
}

impl Values {
    /// Lowest, median and highest; `None` without runs. Without a spread, all three are the median.
    pub fn summary(&self) -> Option<[f64; 3]> {
        match self {
            Self::Runs(runs) => {
                let mut sorted = runs.clone();
                sorted.sort_by(f64::total_cmp);
                Some([*sorted.first()?, median(&sorted)?, *sorted.last()?])
            }
            Self::Summary { lowest, median, highest } => {
                Some([lowest.unwrap_or(*median), *median, highest.unwrap_or(*median)])
            }
        }
    }
}

impl Results {
    /// Results without rows, of this machine and today.
    pub fn of_this_machine(benchmark: &str, command: &str) -> Self {
        Self {
            benchmark: benchmark.to_owned(),
            command: command.to_owned(),
            date: host::today(),
            machine: host::machine(),
            versions: host::versions_in_words(),
            rows: Vec::new(),
        }
    }

    /// The row of a contender in a case.
    pub fn row(&self, case: &str, contender: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.case == case && row.contender == contender)
    }

    /// Reads a results file.
    ///
    /// # Errors
    /// [`Failure::Run`] if there is none, or it is none.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|error| Failure::run(path.display(), error))?;
        serde_json::from_str(&text).map_err(|error| Failure::run(path.display(), error))
    }

    /// The text of the file: one line for each row, so that changes are readable.
    pub fn to_json(&self) -> String {
        let line = |value: Value| value.to_string();
        let field =
            |name: &str, text: &str| format!("  {}: {},\n", line(name.into()), line(text.into()));
        let head = [
            ("benchmark", &self.benchmark),
            ("command", &self.command),
            ("date", &self.date),
            ("machine", &self.machine),
            ("versions", &self.versions),
        ]
        .map(|(name, text)| field(name, text));
        let rows = self
            .rows
            .iter()
            .map(|row| format!("    {}", serde_json::to_string(row).unwrap_or_default()));
        let rows: Vec<_> = rows.collect();
        format!("{{\n{}  \"rows\": [\n{}\n  ]\n}}", head.concat(), rows.join(",\n"))
    }
}
