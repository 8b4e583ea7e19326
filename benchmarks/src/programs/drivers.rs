//! Existing applications on media drivers.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::comparison::{Case, Comparison};
use crate::command_line::byte_size;
use crate::command_line::choice::Transport;
use crate::command_line::failure::Failure;
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::contenders::applications::{self, Application, Samples};
use crate::processes::aeron_c::AeronC;
use crate::processes::driver_process::{self, Host, Launch, Launcher, Settings};

/// Round trips over IPC for each one over UDP, which takes as many times as long. The kernel counts processor time in
/// hundredths of a second, so a run must last longer than some of these.
const IPC_ROUND_TRIPS: u32 = 1000;

/// Runs Aeron's sample programs, unchanged, on media drivers: the program media_driver, Aeron's own C driver aeronmd,
/// and Aeron's Java driver.
///
/// Each run starts a driver and two processes that send each other messages through it. All drivers have the same
/// settings. Processor time and memory are the driver's. Needs a C compiler and unzip. Linux only.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("measure", |arg| arg.default_value("2s")))]
pub struct DriversOptions {
    /// The drivers, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "DRIVERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,c,java"
    )]
    contenders: Vec<Host>,

    /// The applications, separated by commas
    #[arg(
        long,
        value_name = "APPLICATIONS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "java-stream,c-stream,java-ping,c-ping"
    )]
    applications: Vec<Application>,

    /// Transports of the messages, separated by commas
    #[arg(
        long,
        value_name = "TRANSPORTS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "ipc,udp"
    )]
    transports: Vec<Transport>,

    /// Threading mode and idle strategy of the drivers, or a preset such as low-latency
    #[arg(long, value_name = "MODE/STRATEGY|PRESET", default_value = "shared/backoff")]
    settings: Settings,

    /// Length of each message in bytes, from 8 to 1376: one fragment
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    message_length: usize,

    /// Length of a term buffer: a power of two from 64k to 1g [default: the drivers', 16m for UDP, 64m for IPC]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = byte_size::parse_term_length)]
    term_length: Option<usize>,

    /// Round trips over UDP in each run, and as many before; over IPC a thousand times as many
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5000",
          value_parser = RangedU64ValueParser::<u32>::new().range(100..=10_000_000))]
    round_trips: u32,

    /// Scheduling priority of the applications, which spin; with 0, a driver that wakes waits for milliseconds if there
    /// are only two cores
    #[arg(long, allow_hyphen_values = true, value_name = "0 TO 19", default_value = "19",
          value_parser = RangedU64ValueParser::<u8>::new().range(0..=19))]
    nice: u8,

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
pub fn run(options: &DriversOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let media_driver = driver_process::media_driver(options.media_driver.as_deref())?;
    let mut comparison = Comparison::start("drivers", &options.run)?;
    let interrupt = comparison.interrupt();
    let mut hosts = distinct(&options.contenders);
    let mut applications = distinct(&options.applications);
    let needs_java = hosts.contains(&Host::Java) || applications.iter().any(|it| it.is_java());
    let java = comparison.find_java(needs_java);
    if java.is_none() {
        hosts.retain(|host| *host != Host::Java);
        applications.retain(|application| !application.is_java());
    }
    let has_c = applications.iter().any(|application| !application.is_java());
    let (mut aeronmd, mut c_programs) = (None, Vec::new());
    if has_c || hosts.contains(&Host::C) {
        let aeron = AeronC::compile()?;
        aeronmd = Some(aeron.aeronmd()?);
        c_programs = applications::compile_samples(&aeron)?;
    }
    let launcher = Launcher {
        media_driver: &media_driver,
        aeronmd: aeronmd.as_deref(),
        java: java.as_ref(),
        term_length: options.term_length,
    };
    let mut cases = Vec::new();
    for application in applications {
        for transport in distinct(&options.transports) {
            cases.push(Case {
                name: format!("{application}, {}", transport.name()),
                conditions: (application, transport),
                contenders: hosts.clone(),
            });
        }
    }
    let mut numbers = 0..;
    comparison.compare(&cases, |&(application, transport), host| {
        let number = numbers.next().unwrap_or(u32::MAX);
        let launch = Launch {
            host,
            settings: &[options.settings],
            segmentation_offload: true,
            namespace: None,
            number,
        };
        let mut driver = launcher.start(&launch, &interrupt)?;
        let factor = if transport == Transport::Ipc { IPC_ROUND_TRIPS } else { 1 };
        let samples = Samples {
            c_programs: &c_programs,
            java: java.as_ref(),
            nice: options.nice,
            message_length: options.message_length,
            round_trips: options.round_trips.saturating_mul(factor),
            measure: options.run.measure,
        };
        let warmup = options.run.warmup_with(application.is_java() || host == Host::Java);
        let measured = samples.measure(application, transport, &driver, warmup, &interrupt);
        // If it has ended, its own words say more.
        driver.check()?;
        let measured = measured?;
        driver.end(&interrupt)?;
        Ok(measured)
    })?;
    comparison.finish()
}
