//! The files that a benchmark leaves.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command_line::failure::Failure;
use crate::command_line::json_file::JsonFile;
use crate::reports::host;

/// The directory for the results of a program.
#[derive(Debug)]
pub struct Results {
    dir: PathBuf,
    name: &'static str,
    json: JsonFile,
}

impl Results {
    /// Creates the directory if necessary, and opens the report in it.
    ///
    /// # Errors
    /// [`Failure::Usage`] if it cannot be written to.
    pub fn open(dir: &Path, name: &'static str) -> Result<Self, Failure> {
        let unusable = |error: &dyn fmt::Display| {
            let reason = format!("expected a directory that can be written to: {error}");
            Failure::usage("--results <DIR>", dir.display(), reason)
        };
        fs::create_dir_all(dir).map_err(|error| unusable(&error))?;
        let json = JsonFile::open(&dir.join(format!("{name}.json")))
            .map_err(|failure| unusable(&failure))?;
        Ok(Self { dir: dir.to_owned(), name, json })
    }

    /// Where a chart goes; `part` tells the charts of one program apart.
    pub fn chart(&self, part: &str) -> PathBuf {
        self.dir.join(format!("{}-{part}.svg", self.name))
    }

    /// Writes the report, and tells where the results are.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(self, report: &Value) -> Result<String, Failure> {
        self.json.write(report)?;
        Ok(format!("Results: {}/{}*", self.dir.display(), self.name))
    }
}

/// The machine and the versions, in lines for a chart.
pub fn notes() -> Vec<String> {
    let (host, versions) = (host::describe(), host::versions());
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    vec![
        format!("{}, {} cores, {}", text(&host["cpu"]), host["cores"], text(&host["os"])),
        format!(
            "rusteron {}, Aeron {}, {}",
            text(&versions["rusteron"]),
            text(&versions["aeron"]),
            text(&versions["rustc"])
        ),
    ]
}
