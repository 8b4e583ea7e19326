//! Round trips between two threads.

use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rusteron_client::IdleStrategyKind;
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, ThreadingMode};

use super::comparison::{Case, Comparison, percentiles};
use crate::command_line::choice::{Transport, idle_strategy};
use crate::command_line::run_options::{RunOptions, distinct};
use crate::contenders::latency::{self, Pair};
use crate::contenders::ping_pong::{Pace, Plan};
use crate::measuring::connection::Connection;

/// The first stream of the first run; each further one has the next two.
const FIRST_STREAM_ID: i32 = 3001;

/// When messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Each as soon as the last one is back
    Closed,
    /// At a fixed rate, with latencies from the times at which messages should have been sent
    Paced,
}

/// Compares how long messages take from one thread to another and back, over IPC and UDP loopback: with the Rust API,
/// with C's functions called from Rust, and with Java.
///
/// All use the same embedded media driver with one thread, and have streams of their own. With fewer than three cores
/// all threads have to yield, and a round trip contains the operating system's switching between them.
#[derive(Debug, Clone, Args)]
// As long as Java's: the first pass over a log meets pages that the system has not allocated yet.
#[command(mut_arg("warmup", |arg| arg.default_value("3s")))]
pub struct LatencyOptions {
    /// The pairs, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "rust,c-functions,java")]
    contenders: Vec<Pair>,

    /// Transports of the messages, separated by commas
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "ipc")]
    transports: Vec<Transport>,

    /// When messages are sent, separated by commas
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "closed")]
    modes: Vec<Mode>,

    /// Messages per second in the paced mode
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10000",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000_000))]
    rate: u32,

    /// Length of each message in bytes, from 8 to 1376: one fragment
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    message_length: usize,

    /// Idle strategies of both threads, separated by commas
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',', num_args = 1, default_value = "yield",
          value_parser = idle_strategy())]
    idle: Vec<IdleStrategyKind>,

    /// Idle strategy of the driver's thread
    #[arg(long, value_name = "STRATEGY", default_value = "backoff", value_parser = idle_strategy())]
    driver_idle: IdleStrategyKind,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &LatencyOptions) -> Result<(), Failure> {
    let mut comparison = Comparison::start("ipc-latency", &options.run)?;
    let interrupt = comparison.interrupt();
    let mut pairs = distinct(&options.contenders);
    let java = comparison.java_for(&mut pairs, |pair| *pair == Pair::Java);
    let mut context = DriverContext::new()?;
    context
        .set_threading_mode(ThreadingMode::Shared)?
        .set_shared_idle_strategy(options.driver_idle)?;
    let connection = Connection::embedded(context)?;
    let mut cases = Vec::new();
    for transport in distinct(&options.transports) {
        for mode in distinct(&options.modes) {
            for idle in distinct(&options.idle) {
                let paced = if mode == Mode::Paced { ", paced" } else { "" };
                cases.push(Case {
                    name: format!("{}{paced}, {}", transport.name(), idle.name()),
                    conditions: (transport, mode, idle),
                    contenders: pairs.clone(),
                });
            }
        }
    }
    let mut stream_ids = (FIRST_STREAM_ID..).step_by(2);
    comparison.compare(&cases, |&(transport, mode, idle), pair| {
        let plan = Plan {
            message_length: options.message_length,
            idle,
            pace: match mode {
                Mode::Closed => Pace::Closed,
                Mode::Paced => Pace::Fixed(Duration::from_secs(1) / options.rate),
            },
            warmup: options.run.warmup_with(pair == Pair::Java),
            measure: options.run.measure,
            timeout: connection.timeout(),
        };
        let stream_id = stream_ids.next().unwrap_or(FIRST_STREAM_ID);
        let programs = (&connection, java.as_ref());
        let measured = latency::measure(pair, transport, &plan, stream_id, programs, &interrupt);
        Ok(percentiles(&measured.map_err(|failure| connection.explain(failure))?))
    })?;
    connection.warn();
    comparison.finish()
}
