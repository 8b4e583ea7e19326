//! The resources of media drivers.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use rusteron_client::IdleStrategyKind;
use rusteron_core::program::Failure;

use super::comparison::{Comparison, cases, micros};
use crate::command_line::choice::{Contender, Transport, among};
use crate::command_line::run_options::{self, RunOptions};
use crate::contenders::{latency, ping_pong};
use crate::measuring::connection::Connection;
use crate::measuring::measurement::{self, Plan};
use crate::processes::driver_process::{DriverProcess, Launcher, threads};
use crate::processes::environment::Environment;
use crate::processes::process_usage::Usage;
use crate::reports::results::Figure;

/// The first stream on every driver; each of them is used for one run.
const STREAM_ID: i32 = 5001;

/// The time between two samples of a driver, roughly.
const SLICE: Duration = Duration::from_millis(250);

/// Threading modes and idle strategies of the drivers.
const SETTINGS: [&str; 3] = ["dedicated/backoff", "shared/backoff", "shared/yield"];

/// Round trips at the fixed rate, a second.
const RATE: u32 = 10_000;

/// Compares the resources that media drivers use, as processes of their own: the program
/// media_driver and Aeron's Java driver.
///
/// Each run starts a driver and watches it in /proc in three phases: idle, without clients; paced,
/// while two threads of this process make 10,000 round trips of 32 bytes a second over UDP
/// loopback; and full, while they pass as many messages as go. Both drivers have the same settings,
/// and their clients yield. Linux only.
#[derive(Debug, Clone, Args)]
// Drivers have to be started anew for each run, so there are fewer rounds, and longer ones.
#[command(
    mut_arg("runs", |arg| arg.default_value("3")),
    mut_arg("measure", |arg| arg.default_value("2s"))
)]
pub struct ResourceOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', default_value = "rust,java",
          value_parser = among("rust,java"))]
    contenders: Vec<Contender>,

    /// Threading modes and idle strategies of the drivers, separated by commas; dedicated/backoff
    /// is what drivers have by default
    #[arg(long, value_name = "MODE/STRATEGY", value_delimiter = ',',
          default_value = "dedicated/backoff,shared/backoff,shared/yield",
          value_parser = PossibleValuesParser::new(SETTINGS))]
    settings: Vec<String>,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &ResourceOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let comparison = Comparison::start("driver-resources", &options.run, &options.contenders)?;
    let environment = comparison.environment.clone();
    let launcher = Launcher::new(None, &environment)?;
    let cases = cases(&options.settings, |settings| (*settings).clone(), &comparison.contenders);
    comparison.compare(&cases, |settings, host, _| {
        let mut driver = launcher.start(host, &threads(settings), None)?;
        let measured = watch(host, &driver, &environment);
        // If it has ended, its own words say more.
        driver.check()?;
        let mut figures = measured?;
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        figures.push(("start-up ms", millis(driver.start_up())));
        figures.push(("shutdown ms", millis(driver.end(&environment.interrupt)?)));
        Ok(figures)
    })
}

/// Watches a driver with and without load.
fn watch(
    host: Contender,
    driver: &DriverProcess,
    environment: &Environment,
) -> Result<Vec<Figure>, Failure> {
    let interrupt = &environment.interrupt;
    let pid = driver.pid();
    let plan = |host, timeout| environment.plan(host, 32, IdleStrategyKind::Yielding, timeout);
    let (idle_cpu, idle) = usage(pid, &plan(Contender::Rust, Duration::ZERO), environment)?;

    let connection = Connection::to_driver(driver.aeron_dir())?;
    let explain = |failure| connection.explain(failure);
    let (mut near, mut far) =
        latency::ends(&connection, Transport::Udp, STREAM_ID, interrupt).map_err(explain)?;
    let paced = plan(host, connection.timeout());
    let ((paced_cpu, _), round_trips) = usage_under(pid, &paced, environment, || {
        let interval = Some(Duration::from_secs(1) / RATE);
        ping_pong::measure(&mut near, &mut far, &paced, interval, interrupt).map_err(explain)
    })?;
    drop((near, far));

    let full = plan(Contender::Rust, connection.timeout());
    let channel = &latency::channels(Transport::Udp)[0];
    let mut publication = connection.aeron().add_exclusive_publication(channel, STREAM_ID + 2)?;
    let mut subscription =
        connection.subscribe(&publication, &connection, channel, interrupt).map_err(explain)?;
    let ((full_cpu, loaded), rate) = usage_under(pid, &full, environment, || {
        measurement::measure(&mut publication, &mut subscription, &full, interrupt, || Ok(()))
            .map_err(explain)
    })?;
    Ok(vec![
        ("idle CPU %", idle_cpu),
        ("paced CPU %", paced_cpu),
        ("full CPU %", full_cpu),
        ("idle private MiB", idle.private),
        ("full resident MiB", loaded.resident),
        ("threads", idle.threads),
        ("paced p50 µs", micros(&round_trips, 0.5)),
        ("paced p99 µs", micros(&round_trips, 0.99)),
        ("full msgs/s", rate),
    ])
}

/// Watches a driver during the measured time of a plan. Returns its processor time in percent of a
/// core, and the means of its memory with the most threads that were seen.
fn usage(pid: u32, plan: &Plan, environment: &Environment) -> Result<(f64, Usage), Failure> {
    let start = Instant::now();
    let slices = u32::try_from(plan.measure.as_nanos() / SLICE.as_nanos()).unwrap_or(u32::MAX);
    let slices = slices.max(1);
    let mut samples = Vec::new();
    for number in 0..=slices {
        // If the machine is busy, a sample is late, but the next ones need not be.
        let at = plan.warmup + plan.measure / slices * number;
        environment.sleep(at.saturating_sub(start.elapsed()))?;
        samples.push(Usage::of(pid)?);
    }
    let usage = Usage::of_samples(&samples);
    Ok((usage.cpu_since(&samples[0]), usage))
}

/// Watches a driver as [`usage`] does while a load is on it that fulfils the plan.
fn usage_under<T>(
    pid: u32,
    plan: &Plan,
    environment: &Environment,
    load: impl FnOnce() -> Result<T, Failure>,
) -> Result<((f64, Usage), T), Failure> {
    thread::scope(|scope| {
        let watcher = measurement::spawn(scope, "watcher", || usage(pid, plan, environment))?;
        let loaded = load();
        let watched = measurement::join(watcher, "watcher");
        let loaded = loaded?;
        Ok((watched?, loaded))
    })
}
