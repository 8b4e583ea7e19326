//! Round trips against processor time, by idle strategy and rate.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rusteron_client::{AnyIdleStrategy, Backoff, IdleStrategyKind};
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, ThreadingMode};

use super::comparison::{Comparison, cases, micros};
use crate::command_line::choice::{Contender, Transport};
use crate::command_line::run_options::{self, RunOptions};
use crate::contenders::latency::{self, RustEnd};
use crate::contenders::ping_pong::{self, Stop};
use crate::measuring::connection::Connection;
use crate::measuring::measurement::{self, Plan};
use crate::processes::environment::Environment;
use crate::reports::results::Figure;

/// The first stream of the first run; each further one has the next two.
const FIRST_STREAM_ID: u32 = 7001;

/// The longest sleep of the strategies with short ones.
const SHORT: Duration = Duration::from_micros(50);

/// How long the strategies that stay awake do.
const AWAKE: Duration = Duration::from_micros(500);

/// The share of the strategy that stays awake for a share of the time.
const PERCENT: u8 = 20;

/// Compares idle strategies of an echo service over IPC, by rate: how long a message takes there
/// and back, and how much processor time the service's thread takes.
///
/// Messages are sent at fixed times by a thread that yields, and latencies count from these times.
/// The media driver is embedded, with one thread that backs off. Linux only.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("measure", |arg| arg.default_value("2s")),
    mut_arg("warmup", |arg| arg.default_value("200ms"))
)]
pub struct IdlingOptions {
    /// The service's idle strategies, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "spin,yield,backoff,short,short-slack,awake,awake-share"
    )]
    strategies: Vec<Strategy>,

    /// Messages per second, separated by commas; at 0, only processor time is measured
    #[arg(long, value_name = "N", value_delimiter = ',',
          default_value = "0,10,100,1000,10000,100000",
          value_parser = RangedU64ValueParser::<u32>::new().range(0..=1_000_000))]
    rates: Vec<u32>,

    #[command(flatten)]
    run: RunOptions,
}

/// The service's idle strategy, or one with bounds of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Strategy {
    /// Spins
    Spin,
    /// Yields
    Yield,
    /// Backs off with Aeron's defaults, to sleeps of 1 ms
    Backoff,
    /// Backs off to sleeps of 50 µs
    Short,
    /// The same, on a thread with a timer slack of 1 ns
    ShortSlack,
    /// Backs off to sleeps of 50 µs when there has been no message for 500 µs
    Awake,
    /// The same, awake for a fifth of the time at most
    AwakeShare,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Backoff => "backoff",
            Self::Short => "sleeps of 50 µs",
            Self::ShortSlack => "sleeps of 50 µs, slack 1 ns",
            Self::Awake => "sleeps of 50 µs, awake 500 µs",
            Self::AwakeShare => "sleeps of 50 µs, awake 500 µs, 20 %",
        })
    }
}

impl Strategy {
    fn idle(self) -> AnyIdleStrategy {
        let short = Backoff::new(10, 20, Duration::from_micros(1), SHORT);
        match self {
            Self::Spin => IdleStrategyKind::BusySpin.new_strategy(),
            Self::Yield => IdleStrategyKind::Yielding.new_strategy(),
            Self::Backoff => IdleStrategyKind::Backoff.new_strategy(),
            Self::Short | Self::ShortSlack => AnyIdleStrategy::Backoff(short),
            Self::Awake => AnyIdleStrategy::Backoff(short.awake_for(AWAKE)),
            Self::AwakeShare => {
                AnyIdleStrategy::Backoff(short.awake_for(AWAKE).max_percent(PERCENT))
            }
        }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &IdlingOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let comparison = Comparison::start("idling", &options.run, &[])?;
    let environment = comparison.environment.clone();
    let mut context = DriverContext::new()?;
    context
        .set_threading_mode(ThreadingMode::Shared)?
        .set_shared_idle_strategy(IdleStrategyKind::Backoff)?;
    let connection = Connection::embedded(context)?;
    let rates = options.rates.iter().copied();
    let cases = cases(rates, |rate| format!("{rate} msgs/s"), &options.strategies);
    comparison.compare(&cases, |&rate, strategy, number| {
        let stream_id = (FIRST_STREAM_ID + 2 * number) as i32;
        let ends = latency::ends(&connection, Transport::Ipc, stream_id, &environment.interrupt)?;
        let measured = measure(ends, rate, strategy, connection.timeout(), &environment);
        measured.map_err(|failure| connection.explain(failure))
    })?;
    connection.warn();
    Ok(())
}

/// Runs a service on one end, and sends messages from the other.
fn measure(
    (mut near, mut far): (RustEnd, RustEnd),
    rate: u32,
    strategy: Strategy,
    timeout: Duration,
    environment: &Environment,
) -> Result<Vec<Figure>, Failure> {
    let (warming_up, running) = (AtomicBool::new(true), AtomicBool::new(true));
    let RunOptions { warmup, measure, .. } = environment.options;
    let idle = IdleStrategyKind::Yielding;
    let plan = environment.plan(Contender::Rust, ping_pong::MIN_MESSAGE_LENGTH, idle, timeout);
    let mut exchange = |duration: Duration| {
        let interval = Duration::from_secs(1).checked_div(rate);
        if interval.is_none() {
            environment.interrupt.wait_timeout(duration);
            return Ok(None);
        }
        let plan = Plan { warmup: Duration::ZERO, measure: duration, ..plan };
        ping_pong::ping(&mut near, &plan, interval, &running, &environment.interrupt).map(Some)
    };
    thread::scope(|scope| {
        // Ends the service however this thread ends.
        let stop = [Stop(&warming_up), Stop(&running)];
        let service = measurement::spawn(scope, "service", || {
            let _stop = Stop(&running);
            serve(&mut far, strategy, &warming_up, &running)
        })?;
        let exchanged = exchange(warmup).and_then(|_| {
            warming_up.store(false, Ordering::Relaxed);
            exchange(measure)
        });
        drop(stop);
        // Where both have failed, this is the cause.
        let mut figures = vec![("CPU %", measurement::join(service, "service")?)];
        if let Some(latencies) = exchanged? {
            figures.extend(
                [("p50 µs", 0.5), ("p99 µs", 0.99)]
                    .map(|(name, it)| (name, micros(&latencies, it))),
            );
        }
        Ok(figures)
    })
}

/// Sends messages back. Returns the thread's processor time after the warm-up, in percent of a
/// core.
fn serve(
    end: &mut RustEnd,
    strategy: Strategy,
    warming_up: &AtomicBool,
    running: &AtomicBool,
) -> Result<f64, Failure> {
    if strategy == Strategy::ShortSlack {
        lower_timer_slack()?;
    }
    let mut idle = strategy.idle();
    ping_pong::pong(end, &mut idle, warming_up)?;
    let (start, before) = (Instant::now(), processor_time());
    ping_pong::pong(end, &mut idle, running)?;
    let used = processor_time().saturating_sub(before);
    Ok(100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64())
}

/// Lets the system wake this thread 1 ns after the end of a sleep, rather than 50 µs.
fn lower_timer_slack() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN))
        .map_err(|error| Failure::run("cannot set the timer slack", error))?;
    Ok(())
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    #[cfg(unix)]
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)
        .try_into()
        .unwrap_or_default();
    #[cfg(not(unix))]
    let time = Duration::ZERO;
    time
}
