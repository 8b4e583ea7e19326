//! Tables and charts of the results.

mod charts;
mod comparisons;
mod goals;
mod results;
mod runs;
mod text;

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::plan::Transport;
use results::Results;

const IPC: Transport = Transport::IpcYield;
const UNIX: Transport = Transport::GrpcUnix;
const TCP: Transport = Transport::GrpcTcp;
/// The pairs that have all measurements.
const PAIRS: [(&str, &str); 8] = [
    ("rust", "rust"),
    ("java", "rust"),
    ("python", "rust"),
    ("c", "rust"),
    ("go", "rust"),
    ("java", "java"),
    ("python", "python"),
    ("go", "go"),
];
/// The pairs over Aeron among these.
const AERON_PAIRS: usize = 7;

/// Writes tables and charts.
pub(crate) fn render(dir: &Path) -> Result<(), Box<dyn Error>> {
    let results = Results::read(dir)?;
    if results.runs.is_empty() {
        return Err(format!("no results in {}: measure first", dir.display()).into());
    }
    let tables = tables(&results)?;
    fs::write(dir.join("tables.md"), &tables)?;
    charts::charts(&results, dir)?;
    println!("{}", dir.join("tables.md").display());
    Ok(())
}

fn tables(results: &Results) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let out = &mut text;
    goals::goals(results, out)?;
    comparisons::every_pair(results, out)?;
    comparisons::payloads(results, out)?;
    comparisons::throughput(results, out)?;
    comparisons::encodings(results, out)?;
    comparisons::waiting(results, out)?;
    comparisons::connecting(results, out)?;
    comparisons::in_process(results, out)?;
    comparisons::ways_of_serving(results, out)?;
    runs::resources(results, out)?;
    runs::callers(results, out)?;
    Ok(text)
}
