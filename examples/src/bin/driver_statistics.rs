//! Statistics that a media driver publishes: counters, positions of its streams, errors and losses.
//!
//! Shows `CncFile`, which reads a driver's files without being its client. The driver does not notice,
//! and need not be alive. The program works for drivers in Rust, C and Java alike. It shows a little of
//! each of Aeron's own tools `AeronStat`, `StreamStat`, `ErrorStat` and `LossStat`.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use rusteron_client::{CncFile, Context, SystemCounter};

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

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            // The reader has closed the output, as in `… | head`.
            Some(io::ErrorKind::BrokenPipe) => ExitCode::SUCCESS,
            _ => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;
    let dir = options.aeron_dir.clone().unwrap_or_else(Context::default_dir);
    loop {
        // Opened anew each time: a driver that was started again has new files.
        let cnc = CncFile::open(&dir, DEADLINE)?;
        print(&cnc)?;
        let next = Instant::now() + Duration::from_secs(1);
        while Instant::now() < next {
            if !options.watch || !RUNNING.load(Ordering::Relaxed) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        writeln!(io::stdout())?;
    }
}

fn print(cnc: &CncFile) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout();
    writeln!(out, "File: {}", cnc.filename().display())?;
    let state = match cnc.heartbeat_age() {
        _ if cnc.is_active(DRIVER_TIMEOUT) => "active".to_owned(),
        Some(age) => format!("silent for {} s", age.as_secs()),
        None => "ended".to_owned(),
    };
    writeln!(
        out,
        "Driver: {state}, process {}, protocol {}, started {}",
        cnc.pid(),
        cnc.version(),
        ago(cnc.start_time())
    )?;

    // The counters that every driver has, in the order of their ids. An older driver lacks the last ones.
    let counters = cnc.counters();
    writeln!(out, "System counters:")?;
    for counter in SystemCounter::ALL {
        if let Some(value) = counter.read(&counters) {
            writeln!(out, "  {value:>20}  {counter}")?;
        }
    }

    // The rest: heartbeats of clients, channels, positions, and counters of applications.
    writeln!(out, "Other counters:")?;
    for counter in counters.iter() {
        let system = SystemCounter::from_id(counter.id).and_then(|system| system.read(&counters));
        if system.is_none() {
            writeln!(out, "  {counter}")?;
        }
    }

    writeln!(out, "Streams:")?;
    for stream in counters.stream_positions() {
        writeln!(out, "  {stream}")?;
        if let Some(backlog) = stream.subscriber_backlog() {
            writeln!(out, "    not yet read by the slowest subscriber: {backlog} bytes")?;
        }
    }

    writeln!(out, "Errors:")?;
    for error in cnc.errors() {
        let (count, last) = (error.observation_count, ago(error.last_observation));
        writeln!(out, "  {count} times, last {last}: {}", error.text)?;
    }

    writeln!(out, "Losses:")?;
    for loss in cnc.loss_report()? {
        writeln!(
            out,
            "  {} times, {} bytes, last {}: session {} stream {} {} from {}",
            loss.observation_count,
            loss.total_bytes_lost,
            ago(loss.last_observation),
            loss.session_id,
            loss.stream_id,
            loss.channel,
            loss.source
        )?;
    }
    Ok(())
}

fn ago(time: SystemTime) -> String {
    // A clock that was set back makes it now.
    let age = SystemTime::now().duration_since(time).unwrap_or_default();
    format!("{} s ago", age.as_secs())
}
