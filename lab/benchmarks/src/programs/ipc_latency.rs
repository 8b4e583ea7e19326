//! Round trips between two threads.

use clap::Args;
use rusteron_client::IdleStrategyKind;
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, ThreadingMode};

use super::comparison::{Comparison, cases, percentiles};
use crate::command_line::choice::{Contender, among, idle_strategy};
use crate::command_line::run_options::RunOptions;
use crate::contenders::latency;
use crate::measuring::connection::Connection;

/// The first stream of the first run; each further one has the next two.
const FIRST_STREAM_ID: u32 = 3001;

/// Compares how long messages of 32 bytes take from one thread to another and back over IPC: with
/// the Rust API, with C's functions called from Rust, and with Java.
///
/// All use the same embedded media driver with one thread, and have streams of their own. The next
/// message goes when the last is back. With fewer than three cores all threads have to yield, and a
/// round trip contains the operating system's switching between them.
#[derive(Debug, Clone, Args)]
// As long as Java's: the first pass over a log meets pages that the system has not allocated yet.
#[command(mut_arg("warmup", |arg| arg.default_value("3s")))]
pub struct LatencyOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', default_value = "rust,c-functions,java",
          value_parser = among("rust,c-functions,java"))]
    contenders: Vec<Contender>,

    /// Idle strategies of both threads, separated by commas
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',', default_value = "yield",
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
    let comparison = Comparison::start("ipc-latency", &options.run, &options.contenders)?;
    let environment = comparison.environment.clone();
    let mut context = DriverContext::new()?;
    context
        .set_threading_mode(ThreadingMode::Shared)?
        .set_shared_idle_strategy(options.driver_idle)?;
    let connection = Connection::embedded(context)?;
    let name = |idle: &IdleStrategyKind| format!("IPC, {}", idle.name());
    let cases = cases(options.idle.iter().copied(), name, &comparison.contenders);
    comparison.compare(&cases, |&idle, contender, number| {
        let plan = environment.plan(contender, 32, idle, connection.timeout());
        let stream_id = (FIRST_STREAM_ID + 2 * number) as i32;
        let measured = latency::measure(contender, &plan, &connection, stream_id, &environment);
        Ok(percentiles(&measured.map_err(|failure| connection.explain(failure))?))
    })?;
    connection.warn();
    Ok(())
}
