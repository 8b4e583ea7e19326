//! Messages a second over UDP.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rusteron_client::{CncFile, IdleStrategyKind};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_media_driver::Preset;
use rusteron_test_support::networks::Network;

use super::comparison::{Case, Comparison};
use crate::command_line::choice::{Route, Threading, display_in_words, idle_strategy, in_words};
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::measuring::connection::{Connection, free_endpoints};
use crate::measuring::measurement::{self, Phase, Plan, Slice};
use crate::measuring::numbered::{
    Lengths, NUMBER_LENGTH, NumberedPublication, NumberedSubscription, Payload,
};
use crate::processes::driver_process::{self, DriverProcess, Host, Launch, Launcher, Settings};
use crate::processes::driver_totals::DriverTotals;
use crate::reports::results::Figure;

/// Compares messages a second of media drivers over UDP: the program media_driver with segmentation offload, the same
/// without it (Aeron's C driver), and Aeron's Java driver.
///
/// An exclusive publication and a subscription of this process pass as many messages as go, on one driver (loopback) or
/// on two in network namespaces of their own. Every message has its number, and a lost, repeated or changed one is a
/// failure. Processor time is that of the drivers. Linux only.
#[derive(Debug, Clone, Args)]
pub struct UdpThroughputOptions {
    /// The drivers, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "rust,c,java")]
    contenders: Vec<Contender>,

    /// The networks, separated by commas
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "loopback,namespaces")]
    networks: Vec<Route>,

    /// Threading modes of the drivers, separated by commas
    #[arg(
        long,
        value_name = "MODES",
        value_delimiter = ',',
        num_args = 1,
        default_value = "shared"
    )]
    threading: Vec<Threading>,

    /// Vectors, socket buffers and receiver window of the drivers, separated by commas
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "default,throughput")]
    buffers: Vec<Buffers>,

    /// Lengths of messages in bytes, from 8 to 1376, or mix, separated by commas; mix is random lengths from 32 to
    /// 1344, evenly spread, the same in each run
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "LENGTHS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "32,288,1344,mix"
    )]
    message_lengths: Vec<MessageLength>,

    /// Idle strategy of publisher and subscriber
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    idle: IdleStrategyKind,

    /// Idle strategy of the drivers' threads
    #[arg(long, value_name = "STRATEGY", default_value = "backoff", value_parser = idle_strategy())]
    driver_idle: IdleStrategyKind,

    /// Length of a term buffer: a power of two from 64k to 1g [default: the drivers', 16m]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = run_options::parse_term_length)]
    term_length: Option<usize>,

    /// The program media_driver [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    media_driver: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

impl UdpThroughputOptions {
    fn cases(&self, contenders: &[Contender]) -> Vec<Case<Conditions, Contender>> {
        let mut cases = Vec::new();
        for network in distinct(&self.networks) {
            for threading in distinct(&self.threading) {
                for buffers in distinct(&self.buffers) {
                    cases.extend(distinct(&self.message_lengths).into_iter().map(|length| Case {
                        name: format!(
                            "{}, {}, {}, {length}",
                            network.name(),
                            threading.name(),
                            in_words(&buffers).to_lowercase()
                        ),
                        conditions: Conditions { network, threading, buffers, length },
                        contenders: contenders.to_vec(),
                    }));
                }
            }
        }
        cases
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &UdpThroughputOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let media_driver = driver_process::media_driver(options.media_driver.as_deref())?;
    let mut comparison = Comparison::start("udp-throughput", &options.run)?;
    let namespaces = Route::networks(&options.networks)?;
    let interrupt = comparison.interrupt();
    let mut contenders = distinct(&options.contenders);
    let java = comparison.java_for(&mut contenders, |contender| *contender == Contender::Java);
    let bench = Bench {
        launcher: Launcher {
            media_driver: &media_driver,
            aeronmd: None,
            java: java.as_ref(),
            term_length: options.term_length,
        },
        namespaces: namespaces.as_ref(),
        options,
        interrupt: &interrupt,
    };
    let mut numbers = 0..;
    comparison.compare(&options.cases(&contenders), |conditions, contender| {
        bench.measure(contender, conditions, &mut numbers)
    })?;
    comparison.finish()
}

const STREAM_ID: i32 = 6001;

/// The receiver's port in its namespace, where no other program is.
const PORT: u16 = 20121;

/// How many fragments a poll receives at the most, as in Aeron's samples.
const FRAGMENT_LIMIT: usize = 10;

/// The shortest and the longest message of the mix.
const MIX: (usize, usize) = (32, 1344);

/// The longest message that is one fragment.
const MAX_MESSAGE_LENGTH: usize = 1376;

/// A media driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Contender {
    /// The program media_driver, with segmentation offload
    Rust,
    /// The same program without it: Aeron's C driver with Aeron's own transport
    C,
    /// Aeron's Java driver
    Java,
}
display_in_words!(Contender);

/// Vectors, socket buffers and receiver window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Buffers {
    /// The driver's own
    Default,
    /// Those of the preset throughput
    Throughput,
}

/// The lengths of a stream's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageLength {
    /// All messages have this one, in bytes.
    Fixed(usize),
    /// Random lengths from 32 to 1344 bytes, evenly spread, the same in each run.
    Mix,
}

impl MessageLength {
    fn lengths(self) -> Lengths {
        match self {
            Self::Fixed(length) => Lengths::fixed(length),
            Self::Mix => Lengths::random(MIX.0, MIX.1),
        }
    }
}

impl fmt::Display for MessageLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(length) => f.pad(&format!("{length} B")),
            Self::Mix => f.pad("mix"),
        }
    }
}

impl FromStr for MessageLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "mix" {
            return Ok(Self::Mix);
        }
        let lengths = NUMBER_LENGTH..=MAX_MESSAGE_LENGTH;
        let length = text.parse().ok().filter(|length| lengths.contains(length));
        length.map(Self::Fixed).ok_or_else(|| {
            format!(
                "expected a number of bytes from {NUMBER_LENGTH} to {MAX_MESSAGE_LENGTH}, or mix"
            )
        })
    }
}

/// The conditions of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Conditions {
    network: Route,
    /// The threads of each driver.
    threading: Threading,
    /// The buffers of each driver.
    buffers: Buffers,
    /// The messages.
    length: MessageLength,
}

/// Makes runs.
#[derive(Debug)]
struct Bench<'a> {
    /// Starts the drivers.
    launcher: Launcher<'a>,
    /// The network of [`Route::Namespaces`].
    namespaces: Option<&'a [Network; 2]>,
    options: &'a UdpThroughputOptions,
    interrupt: &'a ShutdownSignal,
}

/// The counts at a point in time.
struct Sample {
    at: Instant,
    payload: u64,
    totals: DriverTotals,
}

impl Bench<'_> {
    /// Starts a contender's drivers, passes messages, and ends the drivers.
    fn measure(
        &self,
        contender: Contender,
        conditions: &Conditions,
        numbers: &mut impl Iterator<Item = u32>,
    ) -> Result<Vec<Figure>, Failure> {
        let mut settings = vec![Settings::Threads(conditions.threading, self.options.driver_idle)];
        if conditions.buffers == Buffers::Throughput {
            settings.push(Settings::Preset(Preset::Throughput));
        }
        // One driver for each end; `None` is this process's own network.
        let namespaces = match (conditions.network, self.namespaces) {
            (Route::Namespaces, Some(namespaces)) => namespaces.iter().map(Some).collect(),
            _ => vec![None],
        };
        let start = |namespace| {
            let launch = Launch {
                host: if contender == Contender::Java { Host::Java } else { Host::Rust },
                settings: &settings,
                segmentation_offload: contender == Contender::Rust,
                namespace,
                number: numbers.next().unwrap_or(u32::MAX),
            };
            self.launcher.start(&launch, self.interrupt)
        };
        let mut drivers = namespaces.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let warmup = self.options.run.warmup_with(contender == Contender::Java);
        let measured = self.measure_stream(&drivers, conditions, warmup);
        // If one has ended, its own words say more.
        drivers.iter_mut().try_for_each(DriverProcess::check)?;
        let figures = measured?;
        for driver in drivers {
            driver.end(self.interrupt)?;
        }
        Ok(figures)
    }

    /// A stream from the first driver to the last, which may be the same.
    fn measure_stream(
        &self,
        drivers: &[DriverProcess],
        conditions: &Conditions,
        warmup: Duration,
    ) -> Result<Vec<Figure>, Failure> {
        let connections = drivers.iter().map(|driver| Connection::to_driver(driver.aeron_dir()));
        let connections = connections.collect::<Result<Vec<_>, _>>()?;
        let (Some(sender), Some(receiver)) = (connections.first(), connections.last()) else {
            return Err(Failure::Run("there is no driver".to_owned()));
        };
        let counts = drivers.iter().map(|driver| CncFile::open(driver.aeron_dir(), Duration::ZERO));
        let counts = counts.collect::<Result<Vec<_>, _>>()?;
        let totals = || DriverTotals::read(drivers.iter().zip(&counts));

        let interrupt = self.interrupt;
        let mut stream =
            sender.open_to(receiver, &channel(conditions.network)?, STREAM_ID, interrupt)?;
        let lengths = conditions.length.lengths();
        let payload = Payload::default();
        let mut publication = NumberedPublication::new(&mut stream.publication, &lengths);
        let mut subscription =
            NumberedSubscription::new(&mut stream.subscription, &lengths, &payload);
        let sample = || {
            let totals = totals()?;
            Ok::<_, Failure>(Sample { at: Instant::now(), payload: payload.bytes(), totals })
        };
        let plan = Plan {
            // Messages are counted, and not their bytes.
            message_length: 1,
            fragment_limit: FRAGMENT_LIMIT,
            idle: self.options.idle,
            interval: RunOptions::SLICE,
            warmup,
            measured: self.options.run.measure,
            timeout: sender.timeout(),
        };
        let mut first = sample()?;
        let mut last = None;
        let mut measured = Duration::ZERO;
        let observe = |phase, slice: &Slice| {
            match phase {
                Phase::WarmUp => first = sample()?,
                Phase::Measured => {
                    measured += slice.elapsed;
                    // Samples take time: only at the end.
                    if measured + RunOptions::SLICE / 2 >= plan.measured {
                        last = Some(sample()?);
                    }
                }
            }
            Ok(())
        };
        let measurement =
            measurement::measure(&mut publication, &mut subscription, &plan, interrupt, observe)
                .map_err(|failure| receiver.explain(sender.explain(failure)))?;
        subscription.check(&publication)?;
        let last = last.map_or_else(sample, Ok)?;
        let gigabytes = (last.payload - first.payload) as f64 / 1e9;
        let totals = last.totals - first.totals;
        Ok(vec![
            ("msgs/s", measurement::median_rate(&measurement.slices)),
            ("MB/s", gigabytes * 1e3 / last.at.duration_since(first.at).as_secs_f64()),
            ("CPU s/GB", totals.cpu.as_secs_f64() / gigabytes.max(f64::MIN_POSITIVE)),
            ("NAKs", totals.naks as f64),
            ("gaps B", totals.gap_bytes as f64),
            ("overruns", totals.overruns as f64),
        ])
    }
}

fn channel(network: Route) -> Result<String, Failure> {
    let endpoint = match network {
        Route::Loopback => {
            let [endpoint] = free_endpoints()?;
            endpoint
        }
        Route::Namespaces => SocketAddr::from((Network::PAIR[1], PORT)).to_string(),
    };
    Ok(format!("aeron:udp?endpoint={endpoint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_range_and_mix_are_read() {
        assert_eq!("mix".parse(), Ok(MessageLength::Mix));
        for length in [8, 1376] {
            assert_eq!(length.to_string().parse(), Ok(MessageLength::Fixed(length)));
        }
        for text in ["", "7", "1377", "32 B", "Mix", "-1", "1k"] {
            let error = text.parse::<MessageLength>().expect_err(text);
            assert!(error.contains("from 8 to 1376, or mix"), "{text}: {error}");
        }
    }
}
