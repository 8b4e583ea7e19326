//! The program `benchmark_driver_resources`.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use rusteron_client::IdleStrategyKind;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::driver_options::idle_strategy;
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, JavaOptions, RunOptions};
use crate::contenders::latency::{Bench, Transport};
use crate::contenders::ping_pong::{self, Pace};
use crate::measuring::channel::Channel;
use crate::measuring::connection::Connection;
use crate::measuring::endpoints;
use crate::measuring::measurement;
use crate::measuring::statistics::Statistics;
use crate::processes::aeron_c::AeronC;
use crate::processes::driver_process::{self, DriverProcess, Host, Launch, Launcher, Settings};
use crate::processes::java::Java;
use crate::processes::process_usage::{self, Usage};
use crate::reports::chart::settings_note;
use crate::reports::host;
use crate::reports::resource_comparison::{self, Case, Run};
use crate::reports::results::{self, Results};

/// The first stream on every driver; each of them is used for one run.
const STREAM_ID: i32 = 5001;

/// Compares the resources that media drivers use, as processes of their own: the C driver in the program
/// media_driver, Aeron's own C driver aeronmd, and Aeron's Java driver.
///
/// Each run starts a driver and watches it in /proc in three phases: without clients; while two threads of this
/// process send each other messages at a fixed rate; and while they pass as many messages as go. All drivers
/// have the same settings, and so have their clients. The contenders take turns. Without Java its contender is left out.
/// Linux only.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
// Drivers have to be started anew for each run: fewer rounds, and longer.
#[command(
    name = "benchmark_driver_resources",
    version,
    mut_arg("runs", |arg| arg.default_value("3")),
    mut_arg("measure", |arg| arg.default_value("2s"))
)]
pub struct ResourceOptions {
    /// The contenders, separated by commas; ratios are of the others to the first
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,java"
    )]
    pub contenders: Vec<Host>,

    /// Threading modes and idle strategies of the drivers, or presets such as low-latency, separated by commas;
    /// dedicated/backoff is what drivers have by default
    #[arg(
        long,
        value_name = "MODE/STRATEGY|PRESET",
        value_delimiter = ',',
        num_args = 1,
        default_value = "dedicated/backoff,shared/backoff,shared/yield"
    )]
    pub settings: Vec<Settings>,

    /// Transport of the messages; over IPC the driver has little to do with them
    #[arg(long, value_name = "TRANSPORT", default_value = "udp")]
    pub transport: Transport,

    /// Round trips per second at the fixed rate
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10000",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000_000))]
    pub rate: u32,

    /// Length of each message in bytes, from 8 to 1376: one fragment
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    pub message_length: usize,

    /// Idle strategy of the clients' threads when there is nothing to do
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub idle: IdleStrategyKind,

    /// Length of a term buffer: a power of two from 64k to 1g [default: the drivers', 16m for UDP, 64m for IPC]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = byte_size::parse_term_length)]
    pub term_length: Option<usize>,

    /// The program media_driver [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    pub media_driver: Option<PathBuf>,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,

    /// Java.
    #[command(flatten)]
    pub java: JavaOptions,
}

impl ResourceOptions {
    fn ping_pong_plan(&self, warmup: Duration, timeout: Duration) -> ping_pong::Plan {
        ping_pong::Plan {
            message_length: self.message_length,
            idle: self.idle,
            pace: Pace::Fixed(Duration::from_secs(1) / self.rate),
            warmup,
            measure: self.run.measure,
            timeout,
        }
    }

    fn throughput_plan(&self, timeout: Duration) -> measurement::Plan {
        measurement::Plan {
            message_length: self.message_length,
            fragment_limit: 10,
            idle: self.idle,
            interval: RunOptions::SLICE,
            warmup: self.run.warmup,
            measured: Some(self.run.measure),
            timeout,
        }
    }
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &ResourceOptions) -> Result<(), Failure> {
    options.run.check()?;
    if !cfg!(target_os = "linux") {
        let text = "this program reads /proc, which Linux alone has; the other benchmarks run here";
        return Err(Failure::Run(text.to_owned()));
    }
    let (media_driver, version) = driver_process::media_driver(options.media_driver.as_deref())?;
    let results = Results::open(&options.run.results, "driver-resources")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);

    let mut hosts = run_options::distinct(&options.contenders);
    let java = Java::find_for(&mut hosts, |host| *host == Host::Java, &options.java, &interrupt);
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
    let bench = ResourceBench { options, launcher, interrupt: &interrupt };
    let cases = bench.compare(&hosts, &mut output)?;

    for case in &cases {
        for line in case.table() {
            output.line(line)?;
        }
    }
    let notes = notes(options, java.as_ref());
    resource_comparison::write_charts(&cases, &hosts, &notes, &results)?;
    output.line(results.write(&report(options, &cases, &version, java.as_ref()))?)
}

/// The settings and programs that runs are made with.
struct ResourceBench<'a> {
    options: &'a ResourceOptions,
    launcher: Launcher<'a>,
    interrupt: &'a Interrupt,
}

impl ResourceBench<'_> {
    /// Runs all drivers with all settings in turn, again and again, and prints each run.
    fn compare(&self, hosts: &[Host], output: &mut Output<'_>) -> Result<Vec<Case>, Failure> {
        let settings = run_options::distinct(&self.options.settings).into_iter();
        let mut cases: Vec<Case> = settings.map(|settings| Case::new(settings, hosts)).collect();
        let mut numbers = 0..;
        for round in 1..=self.options.run.runs {
            for case in &mut cases {
                let settings = case.settings;
                for contender in &mut case.contenders {
                    let number = numbers.next().unwrap_or(u32::MAX);
                    let measured = self.measure(contender.host, settings, number);
                    // Ctrl-C in a terminal ends the driver, too, perhaps before this process knows of it.
                    let grace =
                        if measured.is_err() { Duration::from_secs(1) } else { Duration::ZERO };
                    if self.interrupt.wait_until(Instant::now() + grace, || false) {
                        return Ok(cases);
                    }
                    if let Some(run) = measured? {
                        let (host, summary) = (contender.host, run.summary());
                        output.line(format_args!("Run {round}, {settings}, {host}: {summary}"))?;
                        contender.runs.push(run);
                    }
                }
            }
        }
        Ok(cases)
    }

    /// One run, from the start of a driver to its end; `None` if the interrupt is requested meanwhile.
    fn measure(&self, host: Host, settings: Settings, number: u32) -> Result<Option<Run>, Failure> {
        let launch = Launch {
            host,
            settings: &[settings],
            segmentation_offload: true,
            namespace: None,
            number,
        };
        let started = self.launcher.start(&launch, self.interrupt)?;
        let Some(mut driver) = started else { return Ok(None) };
        let measured = self.watch(host, &driver);
        // If it has ended, its own words say more.
        driver.check()?;
        let mut run = measured?;
        if self.interrupt.is_requested() {
            return Ok(None);
        }
        run.shutdown = driver.end(self.interrupt)?;
        Ok((!self.interrupt.is_requested()).then_some(run))
    }

    /// Watches a driver with and without load.
    fn watch(&self, host: Host, driver: &DriverProcess) -> Result<Run, Failure> {
        let RunOptions { warmup, measure, .. } = self.options.run;
        let (pid, interrupt) = (driver.pid(), self.interrupt);
        let idle = Usage::watch(pid, Instant::now() + warmup, measure, interrupt)?;

        let connection = Connection::to_driver(driver.aeron_dir())?;
        let explain = |failure| connection.explain(failure);
        let first_warmup = match host {
            Host::Rust | Host::C => warmup,
            Host::Java => self.options.java.java_warmup,
        };
        let bench = Bench { connection: &connection, java: None, java_warmup: warmup, interrupt };
        let (mut near, mut far) = bench.ends(self.options.transport, STREAM_ID).map_err(explain)?;
        let plan = self.options.ping_pong_plan(first_warmup, connection.timeout());
        let (paced, round_trips) = self.watch_under(pid, first_warmup, || {
            ping_pong::measure(&mut near, &mut far, &plan, interrupt).map_err(explain)
        })?;
        drop((near, far));

        let channel = channel(self.options.transport)?;
        let mut stream = connection.open(&channel, STREAM_ID + 2, interrupt).map_err(explain)?;
        let plan = self.options.throughput_plan(connection.timeout());
        let (full, measured) = self.watch_under(pid, warmup, || {
            let (publication, subscription) = (&mut stream.publication, &mut stream.subscription);
            measurement::measure(publication, subscription, &plan, interrupt, |_, _| Ok(()))
                .map_err(explain)
        })?;
        let rates = measured.slices.iter().map(measurement::Slice::messages_per_second);
        Ok(Run {
            start_up: driver.start_up(),
            shutdown: Duration::ZERO,
            idle,
            paced,
            full,
            round_trips,
            messages_per_second: Statistics::new(rates).map_or(0.0, |rates| rates.median()),
        })
    }

    /// Watches a driver while a load is on it that is measured for as long, after the warm-up.
    fn watch_under<T>(
        &self,
        pid: u32,
        warmup: Duration,
        load: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(Usage, T), Failure> {
        let from = Instant::now() + warmup;
        thread::scope(|scope| {
            let watch = || Usage::watch(pid, from, self.options.run.measure, self.interrupt);
            let watcher = thread::Builder::new()
                .name("watcher".to_owned())
                .spawn_scoped(scope, watch)
                .map_err(|error| Failure::run("cannot start the watcher's thread", error))?;
            let loaded = load();
            let watched = watcher
                .join()
                .map_err(|_| Failure::Run("the watcher's thread panicked".to_owned()))?;
            let loaded = loaded?;
            Ok((watched?, loaded))
        })
    }
}

fn channel(transport: Transport) -> Result<Channel, Failure> {
    let channel = match transport {
        Transport::Ipc => "aeron:ipc".to_owned(),
        Transport::Udp => {
            let [endpoint] = endpoints::free_endpoints()?;
            format!("aeron:udp?endpoint={endpoint}")
        }
    };
    channel.parse().map_err(Failure::Run)
}

fn notes(options: &ResourceOptions, java: Option<&Java>) -> Vec<String> {
    let mut notes = results::notes();
    notes.extend(java.map(|java| java.versions().to_owned()));
    notes.push(settings_note(&[
        ("transport", &options.transport.name()),
        ("messages", &format_args!("{} B", options.message_length)),
        ("paced", &format_args!("{} round trips per second", options.rate)),
        ("clients' idle", &options.idle.name()),
        ("runs", &options.run.runs),
    ]));
    notes
}

fn report(
    options: &ResourceOptions,
    cases: &[Case],
    media_driver: &str,
    java: Option<&Java>,
) -> Value {
    let mut versions = host::versions();
    versions["media_driver"] = json!(media_driver);
    versions["java"] = json!(java.map(Java::versions));
    let mut settings = options.run.to_json();
    settings["slice_seconds"] = json!(process_usage::SLICE.as_secs_f64());
    settings["java_warmup_seconds"] = json!(options.java.java_warmup.as_secs_f64());
    settings["java_options"] = json!(options.java.java_option);
    settings["transport"] = json!(options.transport.name());
    settings["rate"] = json!(options.rate);
    settings["message_length"] = json!(options.message_length);
    settings["term_length"] = json!(options.term_length);
    settings["idle"] = json!(options.idle.name());
    json!({
        "program": "benchmark_driver_resources",
        "versions": versions,
        "host": host::describe(),
        "settings": settings,
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        ResourceOptions::command().debug_assert();
    }

    #[test]
    fn default_rounds_can_be_changed() {
        let options = ResourceOptions::try_parse_from(["program"]).expect("valid arguments");
        assert_eq!((options.run.runs, options.run.measure), (3, Duration::from_secs(2)));
        let arguments = ["program", "--runs", "7", "--measure", "3s"];
        let options = ResourceOptions::try_parse_from(arguments).expect("valid arguments");
        assert_eq!((options.run.runs, options.run.measure), (7, Duration::from_secs(3)));
    }
}
