//! Callgrind's counts of instructions, and the bounds that they must not exceed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::ResultsFile;

use crate::command_line::output::print_line;
use crate::reports::results::{Results, Row, Values};

/// Reports callgrind's counts of instructions per message in Rust and C, and compares them with the
/// bounds.
///
/// `just benchmark-instructions` counts, and runs this.
#[derive(Debug, Clone, Args)]
pub struct ReportOptions {
    /// File with the name of a function and the instructions that it took on each line
    #[arg(long, value_name = "FILE")]
    pub counts: PathBuf,

    /// How many messages each function has had
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub messages: u32,

    /// File with the bounds
    #[arg(long, value_name = "FILE")]
    pub bounds: PathBuf,

    /// The program that counted
    #[arg(long, value_name = "NAME AND VERSION")]
    pub counted_by: String,

    /// Directory for the result as JSON; it is created if necessary
    #[arg(long, value_name = "DIR", default_value = "target/benchmarks")]
    pub results: PathBuf,
}

/// The bounds of one operation: instructions per message in Rust and, where there is a goal, how
/// much of C's Rust may take.
type Bound = (String, f64, Option<f64>);

fn parse_bound(line: &str) -> Option<Bound> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let instructions = words.next()?.parse().ok()?;
    let share_of_c = words.next().map(str::parse).transpose().ok()?;
    words.next().is_none().then_some((name, instructions, share_of_c))
}

fn parse_count(line: &str) -> Option<(String, u64)> {
    let (name, count) = line.split_once(' ')?;
    Some((name.to_owned(), count.parse().ok()?))
}

/// Returns the fault in the counts of an operation, if there is one.
fn fault((_, most, share): &Bound, [rust, c]: [Option<f64>; 2]) -> Option<&'static str> {
    let Some(rust) = rust else { return Some("not measured") };
    match (share, c) {
        _ if rust > *most => Some("too many"),
        (Some(_), None) => Some("C's not measured"),
        (Some(share), Some(c)) if rust / c > *share => Some("too many of C's"),
        _ => None,
    }
}

/// Prints the counts as a table, writes them as JSON, and compares them with the bounds.
///
/// # Errors
/// - [`Failure::Usage`] for files that cannot be used;
/// - [`Failure::Run`] if a bound is exceeded, or nothing was counted that has one.
pub fn report(options: &ReportOptions) -> Result<(), Failure> {
    let bounds = lines("--bounds <FILE>", &options.bounds, parse_bound)?;
    let counts: BTreeMap<String, u64> =
        lines("--counts <FILE>", &options.counts, parse_count)?.into_iter().collect();
    let file = ResultsFile::open(&options.results, "instructions.json")?;
    let interrupt = ShutdownSignal::new();
    let mut results = Results::of_this_machine("instructions", "just benchmark-instructions");
    results.versions += &format!(", {}", options.counted_by);
    let mut faults = Vec::new();
    print_line(&interrupt, cells(["per message", "Rust", "C", "Rust/C", "bound", "of C's", ""]))?;
    for bound in &bounds {
        let (name, most, share) = bound;
        let [rust, c] = ["rust", "c"].map(|contender| {
            let count = counts.get(&format!("{contender}_{name}"))?;
            Some(*count as f64 / f64::from(options.messages))
        });
        let fault = fault(bound, [rust, c]);
        faults.extend(fault.map(|fault| format!("{name}: {fault}")));
        let ratio = rust.zip(c).map(|(rust, c)| rust / c);
        let [rust_cell, c_cell, ratio, most, share] =
            [(rust, 1), (c, 1), (ratio, 2), (Some(*most), 1), (*share, 2)].map(number);
        let fault = fault.unwrap_or_default();
        print_line(&interrupt, cells([name, &rust_cell, &c_cell, &ratio, &most, &share, fault]))?;
        for (contender, count) in [("Rust", rust), ("C", c)] {
            let Some(median) = count else { continue };
            let values = Values::Summary { lowest: None, median, highest: None };
            results.rows.push(Row {
                case: name.clone(),
                contender: contender.to_owned(),
                measures: [("instructions".to_owned(), values)].into_iter().collect(),
            });
        }
    }
    let path = file.write(&results.to_json())?;
    print_line(&interrupt, format_args!("Results: {}", path.display()))?;
    if faults.is_empty() { Ok(()) } else { Err(Failure::Run(faults.join(", "))) }
}

fn cells([name, rust, c, ratio, most, share, fault]: [&str; 7]) -> String {
    let line = format!("{name:<18} {rust:>8} {c:>8} {ratio:>8} {most:>8} {share:>8}  {fault}");
    line.trim_end().to_owned()
}

fn number((value, decimals): (Option<f64>, usize)) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Parses the lines of a file. Comments and empty lines are left out.
fn lines<T>(
    option: &str,
    path: &Path,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Failure> {
    let text =
        fs::read_to_string(path).map_err(|error| Failure::usage(option, path.display(), error))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let reason = || format!("expected a name and numbers in '{line}'");
            parse(line).ok_or_else(|| Failure::usage(option, path.display(), reason()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const BOUNDS: &str = "# what it may take\noffer 55.5 0.5\nclaim 60\n";

    fn reported(counts: &str) -> (Result<(), Failure>, TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).expect("a file");
            path
        };
        let options = ReportOptions {
            counts: write("counts", counts),
            messages: 10,
            bounds: write("bounds", BOUNDS),
            counted_by: "callgrind".to_owned(),
            results: dir.path().join("results"),
        };
        (report(&options), dir)
    }

    fn fault(counts: &str) -> String {
        reported(counts).0.expect_err("a bound is exceeded").to_string()
    }

    #[test]
    fn counts_within_the_bounds_are_reported() {
        let (result, dir) = reported("rust_offer 500\nc_offer 1000\nrust_claim 600\n");
        assert_eq!(result, Ok(()));
        let results = Results::read(&dir.path().join("results/instructions.json"));
        let results = results.expect("results");
        assert!(results.versions.ends_with(", callgrind"), "{results:?}");
        let median = |case, contender| {
            Some(results.row(case, contender)?.measures["instructions"].summary()?[1])
        };
        assert_eq!(median("offer", "Rust"), Some(50.0));
        assert_eq!(median("offer", "C"), Some(100.0));
        assert_eq!(median("claim", "C"), None);
    }

    #[test]
    fn counts_above_a_bound_are_a_failure() {
        assert_eq!(fault("rust_offer 556\nc_offer 2000\nrust_claim 600\n"), "offer: too many");
        assert_eq!(
            fault("rust_offer 500\nc_offer 990\nrust_claim 600\n"),
            "offer: too many of C's"
        );
        let both = "offer: C's not measured, claim: not measured";
        assert_eq!(fault("rust_offer 500\n"), both);
    }

    #[test]
    fn unusable_files_are_refused_first() {
        let (result, dir) = reported("rust_offer many\n");
        let failure = result.expect_err("no number");
        assert!(
            matches!(failure, Failure::Usage(_))
                && failure.to_string().contains("'rust_offer many'")
        );
        assert!(!dir.path().join("results").exists());
        for line in ["offer", "offer x", "offer 1 x", "offer 1 2 3"] {
            assert_eq!(parse_bound(line), None, "{line}");
        }
    }
}
