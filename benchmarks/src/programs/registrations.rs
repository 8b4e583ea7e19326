//! The program `benchmark_registrations`.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use rusteron_media_driver::{Context as DriverContext, MediaDriver, ThreadingMode};
use serde_json::{Value, json};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::number::Grouped;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, JavaOptions};
use crate::contenders::registration::{Bench, CHANNEL, Client, PAUSES, STEPS, Times};
use crate::contenders::restart;
use crate::measuring::statistics::Statistics;
use crate::processes::driver_process::media_driver;
use crate::processes::java::Java;
use crate::reports::comparison::{self, Case};
use crate::reports::host;
use crate::reports::results::Results;

/// The stream of the first repetition.
const FIRST_STREAM_ID: i32 = 10_001;

/// How far apart the first streams of two runs are: more than a run has repetitions, warm-up included.
const STREAMS_OF_A_RUN: usize = 100_000;

/// Compares how long it takes to connect a client, to add a publication and a subscription, to get the
/// subscription's image, and to close all of it: with the Rust API, with C's functions, and with Java. Lower
/// is better.
///
/// All clients have their default idle strategy, and use the same embedded media driver, which has one
/// thread. The contenders take turns, each time with a client of its own for each repetition and a stream of its
/// own over IPC. Before each step but the first, the client idles for 0 to 19 ms. So a step meets a sleeping
/// conductor at every point of its sleep. Terms of 64 KiB make the driver's allocation of files short.
/// Without Java its contender is left out.
///
/// Then a driver in a process of its own is killed and started again, and a client in Rust makes new streams. That
/// time counts from the kill to the first message.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns).
#[derive(Debug, Clone, Parser)]
#[command(name = "benchmark_registrations", version)]
pub struct RegistrationsOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,c,java"
    )]
    pub contenders: Vec<Client>,

    /// How many rounds: in each, every contender has one run, one after the other
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub runs: u32,

    /// How many clients come and go in a run
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "40",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub repetitions: u32,

    /// How often a driver, a process of its own, is killed and started again; 0 for never
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "20",
          value_parser = RangedU64ValueParser::<u32>::new().range(0..=1000))]
    pub restarts: u32,

    /// Directory for the result as JSON; it is created if necessary
    #[arg(long, value_name = "DIR", default_value = "target/benchmarks")]
    pub results: PathBuf,

    /// Java.
    #[command(flatten)]
    pub java: JavaOptions,
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &RegistrationsOptions) -> Result<(), Failure> {
    let results = Results::open(&options.results, "registrations")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);

    let mut clients = run_options::distinct(&options.contenders);
    let is_java = |client: &Client| *client == Client::Java;
    let java = Java::find_for(&mut clients, is_java, &options.java, &interrupt);
    let mut context = DriverContext::new()?;
    context.set_threading_mode(ThreadingMode::Shared)?;
    let driver = MediaDriver::launch_embedded_with(context)
        .map_err(|error| Failure::run("cannot launch the media driver", error))?;
    let bench = Bench {
        dir: driver.aeron_dir(),
        java: java.as_ref(),
        java_warmup: options.java.java_warmup,
        repetitions: options.repetitions,
        interrupt: &interrupt,
    };
    let cases = compare(options, &clients, &bench, &mut output)?;
    let restarts = match options.restarts {
        0 => Vec::new(),
        count => restart::measure(&media_driver(None)?.0, count, &interrupt)?,
    };

    for line in comparison::table(&cases, "µs, lower is better") {
        output.line(line)?;
    }
    let times = Statistics::new(restarts.iter().copied());
    if let Some(times) = &times {
        let (least, median, most) = (times.min(), times.median(), times.max());
        output.line(format_args!(
            "Driver killed, until the first message by its successor: lowest {least:.1}, median {median:.1}, highest \
             {most:.1} ms"
        ))?;
    }
    let mut report = report(options, &cases, java.as_ref());
    report["restarts_milliseconds"] = json!(restarts);
    output.line(results.write(&report)?)
}

/// Runs all contenders in turn, again and again, and prints each run.
fn compare(
    options: &RegistrationsOptions,
    clients: &[Client],
    bench: &Bench<'_>,
    output: &mut Output<'_>,
) -> Result<Vec<Case>, Failure> {
    let mut cases = STEPS.map(|step| Case::new(step, clients.iter().map(Client::to_string)));
    let mut stream_ids = (FIRST_STREAM_ID..).step_by(STREAMS_OF_A_RUN);
    for run in 1..=options.runs {
        for (contender, client) in comparison::in_turn(clients.iter().enumerate(), run) {
            let stream_id = stream_ids.next().unwrap_or(FIRST_STREAM_ID);
            let times = match bench.measure(*client, stream_id) {
                Ok(times) => times,
                // A run that was cut short would not be comparable with the others.
                Err(Failure::Interrupted) => return Ok(cases.into()),
                Err(failure) => return Err(failure),
            };
            output.line(format_args!("Run {run}, {client}: {} µs", medians(&times)))?;
            for (step, case) in cases.iter_mut().enumerate() {
                case.contenders[contender]
                    .runs
                    .push(times.iter().map(|times| times[step]).collect());
            }
        }
    }
    Ok(cases.into())
}

/// The median of each step, in words.
fn medians(times: &[Times]) -> String {
    let medians = STEPS.iter().enumerate().filter_map(|(step, name)| {
        let median = Statistics::new(times.iter().map(|times| times[step]))?.median();
        Some(format!("{name} {}", Grouped::rounded(median)))
    });
    medians.collect::<Vec<_>>().join(", ")
}

fn report(options: &RegistrationsOptions, cases: &[Case], java: Option<&Java>) -> Value {
    let mut versions = host::versions();
    versions["java"] = json!(java.map(Java::versions));
    json!({
        "program": "benchmark_registrations",
        "versions": versions,
        "host": host::describe(),
        "settings": {
            "runs": options.runs,
            "repetitions": options.repetitions,
            "channel": CHANNEL,
            "pauses_milliseconds": [PAUSES.start, PAUSES.end - 1],
            "threading_mode": "shared",
            "java_warmup_seconds": options.java.java_warmup.as_secs_f64(),
            "java_options": options.java.java_option,
        },
        "unit": "microseconds, lower is better",
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        RegistrationsOptions::command().debug_assert();
    }

    #[test]
    fn there_are_streams_for_all_runs() {
        let most = 1000 * 3 * STREAMS_OF_A_RUN;
        assert!(i32::try_from(most + FIRST_STREAM_ID as usize).is_ok());
    }

    #[test]
    fn a_run_is_told_by_the_median_of_each_step() {
        let times = [[1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 4.0, 5.0, 6.0, 2_007.0]];
        let expected =
            "connect 2, add publication 3, add subscription 4, until its image 5, close 1,006";
        assert_eq!(medians(&times), expected);
        assert_eq!(medians(&[]), "");
    }
}
