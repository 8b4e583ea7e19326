//! The program `benchmark`, as a user runs it, and its results.

mod commands;
mod comparisons;

use std::process::Command;

use rusteron_benchmarks::reports::results::Results;
use rusteron_test_support::{Finished, run};

/// The program with some arguments.
pub(crate) fn benchmark(arguments: &[&str]) -> Command {
    rusteron_test_support::command(env!("CARGO_BIN_EXE_benchmark"), arguments)
}

/// The program for a short round, which leaves processor time to the tests beside it. Its arguments
/// are words.
pub(crate) fn short(arguments: &str, measure: &str) -> Command {
    let mut command = benchmark(&arguments.split(' ').collect::<Vec<_>>());
    command.args(["--warmup=50ms", "--java-warmup=100ms", "--measure", measure]);
    command
}

/// Runs a benchmark to its end, which must be a good one.
#[track_caller]
pub(crate) fn measure(mut command: Command) -> (Finished, Results) {
    let dir = tempfile::tempdir().expect("a directory");
    let results = dir.path().join("results");
    command.arg("--results").arg(&results);
    let finished = run(command);
    finished.assert_exit_code(0);
    let mut files = std::fs::read_dir(&results).expect("results").filter_map(Result::ok);
    let results = Results::read(&files.next().expect("a file").path()).expect("results");
    assert!(results.versions.starts_with("Aeron 1.54.0, rustc "), "{results:#?}");
    assert!(results.command.starts_with("just benchmark "), "{results:#?}");
    (finished, results)
}

/// The rows as `case: contender`.
pub(crate) fn names(results: &Results) -> Vec<String> {
    results.rows.iter().map(|row| format!("{}: {}", row.case, row.contender)).collect()
}
