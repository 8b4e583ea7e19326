//! README's command in turn with C and Java.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_core::scan;
use rusteron_test_support::programs::Process;

use super::comparison::{Case, Comparison};
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::reports::results::Results;

/// Term lengths and idle strategies of C's contenders, of which the best counts.
const SETTINGS: [&str; 4] = ["64m/backoff", "64m/yield", "16m/yield", "8m/yield"];

/// How long a program may be silent.
const DEADLINE: Duration = Duration::from_secs(60);

/// Compares README's command with C's functions, with loops in C, and with Aeron's Java sample.
///
/// C's contenders are runs of `benchmark ipc-throughput` on a driver that cleans terms as Aeron's does, in several
/// settings. With --lto, they also come from a program that is linked with C's client at link time.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("runs", |arg| arg.default_value("20")),
    mut_arg("measure", |arg| arg.default_value("500ms"))
)]
pub struct HeadlineOptions {
    /// Lengths of messages in bytes, separated by commas
    #[arg(long, value_name = "BYTES", value_delimiter = ',', num_args = 1, default_value = "32",
          value_parser = run_options::parse_message_length)]
    message_lengths: Vec<usize>,

    /// The program benchmark, compiled with link-time optimisation of C
    #[arg(long, value_name = "FILE")]
    lto: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// A program of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contender {
    Readme,
    C { way: &'static str, settings: &'static str, lto: bool },
    JavaSample,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Readme => f.write_str("README's command"),
            Self::JavaSample => f.write_str("Java sample"),
            Self::C { way, settings, lto } => {
                let way = way.replace("c-", "C ");
                write!(f, "{way}{}, {settings}", if *lto { ", LTO" } else { "" })
            }
        }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used; [`Failure::Run`] if a program is missing or fails.
pub fn run(options: &HeadlineOptions) -> Result<(), Failure> {
    let mut comparison = Comparison::start("headline", &options.run)?;
    let interrupt = comparison.interrupt();
    let own = std::env::current_exe()
        .map_err(|error| Failure::run("cannot tell where this program is", error))?;
    let dir = tempfile::tempdir().map_err(|error| Failure::run("temporary directory", error))?;
    let mut contenders = vec![Contender::Readme];
    for lto in [false, true] {
        for way in ["c-functions", "c-program"] {
            contenders.extend(SETTINGS.map(|settings| Contender::C { way, settings, lto }));
        }
    }
    contenders.push(Contender::JavaSample);
    contenders.retain(|it| options.lto.is_some() || !matches!(it, Contender::C { lto: true, .. }));
    contenders.retain(|it| *it != Contender::JavaSample || comparison.find_java(true).is_some());
    let case = |length: usize| Case {
        name: format!("{length} B"),
        conditions: length,
        contenders: contenders.clone(),
    };
    let cases: Vec<_> = distinct(&options.message_lengths).into_iter().map(case).collect();
    comparison.compare(&cases, |&length, contender| {
        let rate = match (contender, &options.lto) {
            (Contender::Readme, _) => readme(&own, length, &options.run, &interrupt)?,
            (Contender::JavaSample, _) => {
                let way = ["--contenders", "java-sample"];
                ipc_throughput(&own, &way, length, dir.path(), &options.run, &interrupt)?
            }
            (Contender::C { way, settings, lto }, path) => {
                let program = path.as_ref().filter(|_| lto).unwrap_or(&own);
                let (terms, idle) = settings.split_once('/').unwrap_or((settings, "yield"));
                let arguments = ["--contenders", way, "--term-lengths", terms, "--idle", idle];
                ipc_throughput(program, &arguments, length, dir.path(), &options.run, &interrupt)?
            }
        };
        Ok(vec![("msgs/s", rate)])
    })?;
    comparison.finish()
}

/// A run of README's command, beside this program: the mean rate that it prints at the end.
fn readme(
    own: &Path,
    length: usize,
    run: &RunOptions,
    interrupt: &ShutdownSignal,
) -> Result<f64, Failure> {
    let mut command = Command::new(own.with_file_name("embedded_exclusive_ipc_throughput"));
    command.args(["--message-length", &length.to_string()]);
    command.args(["--warmup", &scan::format_duration(run.warmup)]);
    // Its rate is a mean, not a median of slices, so it gets a second at least.
    let time = run.warmup + run.measure.max(Duration::from_secs(1));
    command.args(["--duration", &scan::format_duration(time)]).env_remove("AERON_DIR");
    let mut program = Process::start("README's command".to_owned(), command, DEADLINE)?;
    loop {
        let line = program.line(interrupt)?.ok_or(Failure::Interrupted)?;
        if let Some(rate) = parse_rate(&line) {
            return Ok(rate);
        }
    }
}

/// The rate in a line such as `Throughput: 36,859,281 msgs/sec, 1,179,496,981 bytes/sec`.
fn parse_rate(line: &str) -> Option<f64> {
    let (rate, _) = line.strip_prefix("Throughput: ")?.split_once(" msgs/sec")?;
    rate.replace(',', "").parse().ok()
}

/// A run of the program `benchmark` with one contender.
fn ipc_throughput(
    program: &Path,
    arguments: &[&str],
    length: usize,
    dir: &Path,
    run: &RunOptions,
    interrupt: &ShutdownSignal,
) -> Result<f64, Failure> {
    let mut command = Command::new(program);
    command.args(["ipc-throughput", "--runs", "1", "--publications", "exclusive"]);
    command.args(["--message-lengths", &length.to_string()]).args(arguments);
    command.args(["--measure", &scan::format_duration(run.measure)]);
    command.args(["--warmup", &scan::format_duration(run.warmup)]);
    command.args(["--java-warmup", &scan::format_duration(run.java_warmup)]);
    for option in &run.java_option {
        command.args(["--java-option", option]);
    }
    command.arg("--results").arg(dir).env("RUSTERON_TERM_CLEANING", "cached");
    let program = Process::start(arguments.join(" "), command, DEADLINE)?;
    program.finish(interrupt)?;
    let results = Results::read(&dir.join("ipc-throughput.json"))?;
    let values = results.rows.first().and_then(|row| row.measures.get("msgs/s")?.summary());
    values.map(|values| values[1]).ok_or(Failure::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_have_their_settings_in_their_names() {
        let c = Contender::C { way: "c-functions", settings: "64m/yield", lto: true };
        assert_eq!(c.to_string(), "C functions, LTO, 64m/yield");
        let line = "Throughput: 36,859,281 msgs/sec, 1,179,496,981 bytes/sec";
        assert_eq!(parse_rate(line), Some(36_859_281.0));
        assert_eq!(parse_rate("Warm-up: 1 msgs/sec, 32 bytes/sec"), None);
    }
}
