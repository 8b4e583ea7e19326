//! README's command in turn with C and Java.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use rusteron_core::program::Failure;
use rusteron_core::scan;
use rusteron_test_support::programs::Process;

use super::comparison::{Comparison, cases};
use crate::command_line::choice::{Contender, option_name};
use crate::command_line::run_options::{self, RunOptions};
use crate::processes::environment::Environment;
use crate::processes::program::own_program;
use crate::reports::results::Results;

/// Term lengths and idle strategies of C's contenders, of which the best counts.
const SETTINGS: [&str; 4] = ["64m/backoff", "64m/yield", "16m/yield", "8m/yield"];

/// How long a program may be silent.
const DEADLINE: Duration = Duration::from_secs(60);

/// Compares README's command with C's functions, with loops in C, and with Aeron's Java sample.
///
/// C's contenders are runs of `benchmark ipc-throughput` on a driver that cleans terms as Aeron's
/// does, in several settings. With --lto, they also come from a program that is linked with C's
/// client at link time.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("runs", |arg| arg.default_value("20")),
    mut_arg("measure", |arg| arg.default_value("500ms"))
)]
pub struct HeadlineOptions {
    /// Lengths of messages in bytes, separated by commas
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "32",
          value_parser = run_options::parse_message_length)]
    message_lengths: Vec<usize>,

    /// The program benchmark, compiled with link-time optimisation of C
    #[arg(long, value_name = "FILE")]
    lto: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// A program of the comparison.
#[derive(Debug, Clone, Copy)]
enum Program {
    Readme,
    /// A contender of `benchmark ipc-throughput`, with terms and idle strategy, linked with C's
    /// client or not.
    IpcThroughput(Contender, &'static str, bool),
}

const JAVA_SAMPLE: Program = Program::IpcThroughput(Contender::JavaSample, "", false);

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::IpcThroughput(contender, settings, lto) = self else {
            return f.write_str("README's command");
        };
        let (lto, comma) =
            (if *lto { ", LTO" } else { "" }, if settings.is_empty() { "" } else { ", " });
        write!(f, "{contender}{lto}{comma}{settings}")
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used; [`Failure::Run`] if a program is missing or
/// fails.
pub fn run(options: &HeadlineOptions) -> Result<(), Failure> {
    let comparison = Comparison::start("headline", &options.run, &[Contender::JavaSample])?;
    let environment = comparison.environment.clone();
    let own = own_program()?;
    let dir = tempfile::tempdir().map_err(|error| Failure::run("temporary directory", error))?;
    let mut programs = vec![Program::Readme];
    for lto in [false, true].into_iter().filter(|lto| !lto || options.lto.is_some()) {
        for contender in [Contender::CFunctions, Contender::CProgram] {
            programs.extend(SETTINGS.map(|it| Program::IpcThroughput(contender, it, lto)));
        }
    }
    programs.extend(environment.java().map(|_| JAVA_SAMPLE));
    let lengths = options.message_lengths.iter().copied();
    let cases = cases(lengths, |length| format!("{length} B"), &programs);
    comparison.compare(&cases, |&length, program, _| {
        let rate = match program {
            Program::Readme => readme(&own, length, &environment)?,
            Program::IpcThroughput(contender, settings, lto) => {
                let path = options.lto.as_ref().filter(|_| lto).unwrap_or(&own);
                ipc_throughput(path, contender, settings, length, dir.path(), &environment)?
            }
        };
        Ok(vec![("msgs/s", rate)])
    })
}

/// A run of README's command, beside this program: the mean rate that it prints at the end.
fn readme(own: &Path, length: usize, environment: &Environment) -> Result<f64, Failure> {
    let RunOptions { warmup, measure, .. } = environment.options;
    let mut command = Command::new(own.with_file_name("embedded_exclusive_ipc_throughput"));
    command.args(["--message-length", &length.to_string()]);
    command.args(["--warmup", &scan::format_duration(warmup)]);
    // Its rate is a mean, not a median of slices, so it gets a second at least.
    let time = warmup + measure.max(Duration::from_secs(1));
    command.args(["--duration", &scan::format_duration(time)]).env_remove("AERON_DIR");
    let mut program = Process::start("README's command", command, DEADLINE)?;
    loop {
        if let Some(rate) = parse_rate(&program.line(&environment.interrupt)?) {
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
    contender: Contender,
    settings: &str,
    length: usize,
    dir: &Path,
    environment: &Environment,
) -> Result<f64, Failure> {
    let RunOptions { warmup, measure, java_warmup, java_option, .. } = &environment.options;
    let name = option_name(&contender);
    let mut command = Command::new(program);
    command.args(["ipc-throughput", "--runs", "1", "--publications", "exclusive"]);
    command.args(["--message-lengths", &length.to_string(), "--contenders", &name]);
    if let Some((terms, idle)) = settings.split_once('/') {
        command.args(["--term-lengths", terms, "--idle", idle]);
    }
    for (option, time) in
        [("--measure", measure), ("--warmup", warmup), ("--java-warmup", java_warmup)]
    {
        command.args([option, &scan::format_duration(*time)]);
    }
    for option in java_option {
        command.args(["--java-option", option]);
    }
    command.arg("--results").arg(dir).env("RUSTERON_TERM_CLEANING", "cached");
    let program = Process::start(format!("{name} {settings}"), command, DEADLINE)?;
    program.finish(&environment.interrupt)?;
    let results = Results::read(&dir.join("ipc-throughput.json"))?;
    let values = results.rows.first().and_then(|row| row.measures.get("msgs/s")?.summary());
    values.map(|values| values[1]).ok_or(Failure::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_their_settings_in_their_names() {
        let c = Program::IpcThroughput(Contender::CFunctions, "64m/yield", true);
        assert_eq!(c.to_string(), "C functions, LTO, 64m/yield");
        assert_eq!(JAVA_SAMPLE.to_string(), "Java sample");
        let line = "Throughput: 36,859,281 msgs/sec, 1,179,496,981 bytes/sec";
        assert_eq!(parse_rate(line), Some(36_859_281.0));
        assert_eq!(parse_rate("Warm-up: 1 msgs/sec, 32 bytes/sec"), None);
    }
}
