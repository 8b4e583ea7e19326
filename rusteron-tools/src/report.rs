//! The findings of a command.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// The findings of a command. People read the lines, programs the serialised form.
pub(crate) trait Report: Serialize {
    /// The lines that stay in place when the other lines are scrolled.
    fn header(&self) -> Vec<String>;

    /// The lines below the header.
    fn body(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Prints a report to standard output.
pub(crate) fn print(report: &impl Report, json: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if json {
        out.write_all(&to_json(report)?)?;
        writeln!(out)?;
    } else {
        let lines = [report.header(), report.body()].concat();
        out.write_all((lines.join("\n") + "\n").as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Returns a value in JSON, on one line.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value).map_err(|error| Failure::run("cannot write JSON", error))
}
