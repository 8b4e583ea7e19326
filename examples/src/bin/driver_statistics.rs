//! Statistics that a media driver publishes: counters, positions of its streams, errors and losses.
//!
//! Shows `CncFile`, which reads a driver's files without being its client. The driver does not notice,
//! and need not be alive. The program works for drivers in Rust, C and Java alike. It shows a little of
//! each of Aeron's own tools `AeronStat`, `StreamStat`, `ErrorStat` and `LossStat`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use rusteron_client::{CncFile, Context, SystemCounter};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;

/// Prints the statistics of a media driver
#[derive(Debug, Parser)]
#[command(name = "driver_statistics", version)]
struct Options {
    /// Directory of the media driver [default: Aeron's default directory]
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Print every second until Ctrl-C, instead of once
    #[arg(long)]
    watch: bool,
}

/// How long to wait for a driver that is about to make its files.
const DEADLINE: Duration = Duration::from_secs(1);
/// After how long a silence a driver counts as dead, as it does for its clients.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    failure::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let dir = options.aeron_dir.clone().unwrap_or_else(Context::default_dir);
    loop {
        // Opened anew each time: a driver that was started again has new files.
        let cnc = CncFile::open(&dir, DEADLINE)?;
        print(&cnc, &mut output)?;
        let next = Instant::now() + Duration::from_secs(1);
        if !options.watch || interrupt.wait_until(next, || false) {
            return Ok(());
        }
        output.line("")?;
    }
}

fn print(cnc: &CncFile, output: &mut Output<'_>) -> Result<(), Failure> {
    output.line(format_args!("File: {}", cnc.filename().display()))?;
    let state = match cnc.heartbeat_age() {
        _ if cnc.is_active(DRIVER_TIMEOUT) => "active".to_owned(),
        Some(age) => format!("silent for {} s", age.as_secs()),
        None => "ended".to_owned(),
    };
    output.line(format_args!(
        "Driver: {state}, process {}, protocol {}, started {}",
        cnc.pid(),
        cnc.version(),
        ago(cnc.start_time())
    ))?;

    // The counters that every driver has, in the order of their ids. An older driver lacks the last ones.
    let counters = cnc.counters();
    output.line("System counters:")?;
    for counter in SystemCounter::ALL {
        if let Some(value) = counter.read(&counters) {
            output.line(format_args!("  {value:>20}  {counter}"))?;
        }
    }

    // The rest: heartbeats of clients, channels, positions, and counters of applications.
    output.line("Other counters:")?;
    for counter in counters.iter() {
        let system = SystemCounter::from_id(counter.id).and_then(|system| system.read(&counters));
        if system.is_none() {
            output.line(format_args!("  {counter}"))?;
        }
    }

    output.line("Streams:")?;
    for stream in counters.stream_positions() {
        output.line(format_args!("  {stream}"))?;
        if let Some(backlog) = stream.subscriber_backlog() {
            output.line(format_args!(
                "    not yet read by the slowest subscriber: {backlog} bytes"
            ))?;
        }
    }

    output.line("Errors:")?;
    for error in cnc.errors() {
        let (count, last) = (error.observation_count, ago(error.last_observation));
        output.line(format_args!("  {count} times, last {last}: {}", error.text))?;
    }

    output.line("Losses:")?;
    for loss in cnc.loss_report()? {
        output.line(format_args!(
            "  {} times, {} bytes, last {}: session {} stream {} {} from {}",
            loss.observation_count,
            loss.total_bytes_lost,
            ago(loss.last_observation),
            loss.session_id,
            loss.stream_id,
            loss.channel,
            loss.source
        ))?;
    }
    Ok(())
}

fn ago(time: SystemTime) -> String {
    // A clock that was set back makes it now.
    let age = SystemTime::now().duration_since(time).unwrap_or_default();
    format!("{} s ago", age.as_secs())
}
