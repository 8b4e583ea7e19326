//! The resources of media drivers.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_client::IdleStrategyKind;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

use super::comparison::{Case, Comparison};
use crate::command_line::choice::{Transport, idle_strategy};
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::contenders::latency;
use crate::contenders::ping_pong::{self, Pace};
use crate::measuring::connection::Connection;
use crate::measuring::measurement;
use crate::processes::aeron_c::AeronC;
use crate::processes::driver_process::{self, DriverProcess, Host, Launch, Launcher, Settings};
use crate::processes::process_usage::Usage;
use crate::reports::results::Figure;

/// The first stream on every driver; each of them is used for one run.
const STREAM_ID: i32 = 5001;

const MEBIBYTE: f64 = (1 << 20) as f64;

/// Compares the resources that media drivers use, as processes of their own: the program media_driver, Aeron's own C
/// driver aeronmd, and Aeron's Java driver.
///
/// Each run starts a driver and watches it in /proc in three phases: idle, without clients; paced, while two threads of
/// this process send each other messages at a fixed rate; and full, while they pass as many messages as go. All drivers
/// have the same settings, and so have their clients. Linux only.
#[derive(Debug, Clone, Args)]
// Drivers have to be started anew for each run: fewer rounds, and longer.
#[command(
    mut_arg("runs", |arg| arg.default_value("3")),
    mut_arg("measure", |arg| arg.default_value("2s"))
)]
pub struct ResourceOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "rust,c,java")]
    contenders: Vec<Host>,

    /// Threading modes and idle strategies of the drivers, or presets such as low-latency, separated by commas;
    /// dedicated/backoff is what drivers have by default
    #[arg(
        long,
        value_name = "MODE/STRATEGY|PRESET",
        value_delimiter = ',',
        num_args = 1,
        default_value = "dedicated/backoff,shared/backoff,shared/yield"
    )]
    settings: Vec<Settings>,

    /// Transport of the messages; over IPC the driver has little to do with them
    #[arg(long, value_name = "TRANSPORT", default_value = "udp")]
    transport: Transport,

    /// Round trips per second at the fixed rate
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10000",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000_000))]
    rate: u32,

    /// Length of each message in bytes, from 8 to 1376: one fragment
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    message_length: usize,

    /// Idle strategy of the clients' threads
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    idle: IdleStrategyKind,

    /// Length of a term buffer: a power of two from 64k to 1g [default: the drivers', 16m for UDP, 64m for IPC]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = run_options::parse_term_length)]
    term_length: Option<usize>,

    /// The program media_driver [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    media_driver: Option<PathBuf>,

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
    let media_driver = driver_process::media_driver(options.media_driver.as_deref())?;
    let mut comparison = Comparison::start("driver-resources", &options.run)?;
    let interrupt = comparison.interrupt();
    let mut hosts = distinct(&options.contenders);
    let java = comparison.java_for(&mut hosts, |host| *host == Host::Java);
    let aeronmd = match hosts.contains(&Host::C) {
        true => Some(AeronC::compile()?.aeronmd()?),
        false => None,
    };
    let launcher = Launcher {
        media_driver: &media_driver,
        aeronmd: aeronmd.as_deref(),
        java: java.as_ref(),
        term_length: options.term_length,
    };
    let case = |settings: Settings| Case {
        name: settings.to_string(),
        conditions: settings,
        contenders: hosts.clone(),
    };
    let cases: Vec<_> = distinct(&options.settings).into_iter().map(case).collect();
    let mut numbers = 0..;
    comparison.compare(&cases, |&settings, host| {
        let number = numbers.next().unwrap_or(u32::MAX);
        let launch = Launch {
            host,
            settings: &[settings],
            segmentation_offload: true,
            namespace: None,
            number,
        };
        let mut driver = launcher.start(&launch, &interrupt)?;
        let measured = options.watch(host, &driver, &interrupt);
        // If it has ended, its own words say more.
        driver.check()?;
        let mut figures = measured?;
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        figures.push(("start-up ms", millis(driver.start_up())));
        figures.push(("shutdown ms", millis(driver.end(&interrupt)?)));
        Ok(figures)
    })?;
    comparison.finish()
}

impl ResourceOptions {
    /// Watches a driver with and without load.
    fn watch(
        &self,
        host: Host,
        driver: &DriverProcess,
        interrupt: &ShutdownSignal,
    ) -> Result<Vec<Figure>, Failure> {
        let RunOptions { warmup, measure, .. } = self.run;
        let pid = driver.pid();
        let idle = Usage::watch(pid, Instant::now() + warmup, measure, interrupt)?;

        let connection = Connection::to_driver(driver.aeron_dir())?;
        let explain = |failure| connection.explain(failure);
        let plan = ping_pong::Plan {
            message_length: self.message_length,
            idle: self.idle,
            pace: Pace::Fixed(Duration::from_secs(1) / self.rate),
            warmup: self.run.warmup_with(host == Host::Java),
            measure,
            timeout: connection.timeout(),
        };
        let (mut near, mut far) =
            latency::ends(&connection, self.transport, STREAM_ID, interrupt).map_err(explain)?;
        let (paced, round_trips) = watch_under(pid, plan.warmup, measure, interrupt, || {
            ping_pong::measure(&mut near, &mut far, &plan, interrupt).map_err(explain)
        })?;
        drop((near, far));

        let plan = measurement::Plan {
            message_length: self.message_length,
            fragment_limit: 10,
            idle: self.idle,
            interval: RunOptions::SLICE,
            warmup,
            measured: measure,
            timeout: connection.timeout(),
        };
        let [channel, _] = latency::channels(self.transport)?;
        let mut stream = connection.open(&channel, STREAM_ID + 2, interrupt).map_err(explain)?;
        let (full, measured) = watch_under(pid, warmup, measure, interrupt, || {
            let (publication, subscription) = (&mut stream.publication, &mut stream.subscription);
            measurement::measure(publication, subscription, &plan, interrupt, |_, _| Ok(()))
                .map_err(explain)
        })?;
        let micros = |quantile| round_trips.value_at_quantile(quantile) as f64 / 1e3;
        Ok(vec![
            ("idle CPU %", idle.cpu),
            ("paced CPU %", paced.cpu),
            ("full CPU %", full.cpu),
            ("idle private MiB", (idle.resident - idle.shared) / MEBIBYTE),
            ("full resident MiB", full.resident / MEBIBYTE),
            ("threads", idle.threads),
            ("paced p50 µs", micros(0.5)),
            ("paced p99 µs", micros(0.99)),
            ("full msgs/s", measurement::median_rate(&measured.slices)),
        ])
    }
}

/// Watches a driver while a load is on it that is measured for as long, after the warm-up.
fn watch_under<T>(
    pid: u32,
    warmup: Duration,
    measure: Duration,
    interrupt: &ShutdownSignal,
    load: impl FnOnce() -> Result<T, Failure>,
) -> Result<(Usage, T), Failure> {
    let from = Instant::now() + warmup;
    thread::scope(|scope| {
        let watcher =
            measurement::spawn(scope, "watcher", || Usage::watch(pid, from, measure, interrupt))?;
        let loaded = load();
        let watched =
            watcher.join().map_err(|_| Failure::Run("the watcher's thread panicked".to_owned()))?;
        let loaded = loaded?;
        Ok((watched?, loaded))
    })
}
