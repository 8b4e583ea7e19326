//! The drivers whose UDP throughput is compared, and one run of them.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rusteron_client::{CncFile, IdleStrategyKind};
use rusteron_media_driver::Preset;

use crate::command_line::driver_options::Threading;
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::measuring::channel::Channel;
use crate::measuring::connection::Connection;
use crate::measuring::endpoints;
use crate::measuring::measurement::{self, Phase, Plan, Slice};
use crate::measuring::numbered::{
    Lengths, NUMBER_LENGTH, NumberedPublication, NumberedSubscription, Payload,
};
use crate::processes::driver_process::{DriverProcess, Host, Launch, Launcher, Settings};
use crate::processes::driver_totals::DriverTotals;
use crate::processes::network_namespaces::{Network, NetworkNamespaces};
use crate::processes::system_calls::SystemCalls;

/// The stream of the first length; each further one has the next.
const FIRST_STREAM_ID: i32 = 6001;

/// The receiver's port in its namespace, where no other program is.
const PORT: u16 = 20121;

/// How many fragments a poll receives at the most, as in Aeron's samples.
const FRAGMENT_LIMIT: usize = 10;

/// For how long system calls are counted, after the measurement.
const COUNTED: Duration = Duration::from_millis(300);

/// How long the stream goes on before that.
const BEFORE_COUNTED: Duration = Duration::from_millis(50);

/// The shortest and the longest message of the mix.
const MIX: (usize, usize) = (32, 1344);

/// The longest message that is one fragment.
const MAX_MESSAGE_LENGTH: usize = 1376;

/// A media driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Contender {
    /// The program media_driver, with segmentation offload
    Rust,
    /// The same program without it: Aeron's C driver with Aeron's own transport
    C,
    /// Aeron's Java driver
    Java,
}

impl Contender {
    /// The name, as the option calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::Java => "java",
        }
    }

    fn host(self) -> Host {
        if self == Self::Java { Host::Java } else { Host::Rust }
    }
}

/// Vectors, socket buffers and receiver window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Buffers {
    /// The driver's own
    Default,
    /// Those of the preset throughput
    Throughput,
}

impl Buffers {
    /// The name, as the option calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Throughput => "throughput",
        }
    }
}

/// The lengths of a stream's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageLength {
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
        let length = text
            .parse()
            .ok()
            .filter(|length| (NUMBER_LENGTH..=MAX_MESSAGE_LENGTH).contains(length));
        length.map(Self::Fixed).ok_or_else(|| {
            format!(
                "expected a number of bytes from {NUMBER_LENGTH} to {MAX_MESSAGE_LENGTH}, or mix"
            )
        })
    }
}

/// The conditions of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// The network.
    pub network: Network,
    /// The threads of each driver.
    pub threading: Threading,
    /// The buffers of each driver.
    pub buffers: Buffers,
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, threading, buffers } = self;
        write!(f, "{}, {}, {} buffers", network.name(), threading.name(), buffers.name())
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Messages per second, of each slice.
    pub rates: Vec<f64>,
    /// Payload bytes that arrived in the measured time.
    pub payload: u64,
    /// The measured time.
    pub elapsed: Duration,
    /// Counts of the drivers in the measured time.
    pub totals: DriverTotals,
    /// Datagrams and system calls of a time after the measured one, if they can be counted.
    pub calls: Option<SystemCalls>,
}

impl Run {
    /// Payload bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.payload as f64 / self.elapsed.max(Duration::from_nanos(1)).as_secs_f64()
    }

    /// Seconds of processor time of the drivers for each GB (10⁹ bytes) of payload; `None` if nothing arrived.
    pub fn cpu_seconds_per_gigabyte(&self) -> Option<f64> {
        (self.payload > 0).then(|| self.totals.cpu.as_secs_f64() * 1e9 / self.payload as f64)
    }
}

/// Makes runs.
#[derive(Debug)]
pub struct Bench<'a> {
    /// Starts the drivers.
    pub launcher: Launcher<'a>,
    /// The network of [`Network::Namespaces`].
    pub namespaces: Option<&'a NetworkNamespaces>,
    /// Idle strategy of publisher and subscriber.
    pub idle: IdleStrategyKind,
    /// Idle strategy of the drivers' threads.
    pub driver_idle: IdleStrategyKind,
    /// How long a slice is.
    pub slice: Duration,
    /// How long each run goes on before it is measured.
    pub warmup: Duration,
    /// The same for the first run of a Java driver.
    pub java_warmup: Duration,
    /// How long to measure.
    pub measure: Duration,
    /// `true` if system calls are to be counted.
    pub counts_calls: bool,
    /// The interrupt that ends a run early.
    pub interrupt: &'a Interrupt,
}

/// The counts at a point in time.
struct Sample {
    at: Instant,
    payload: u64,
    totals: DriverTotals,
}

/// The drivers of a contender, and the clients of them.
struct Path<'a> {
    drivers: &'a [DriverProcess],
    counts: Vec<CncFile>,
    sender: Connection,
    /// `None` if the sending driver also receives.
    receiver: Option<Connection>,
    channel: Channel,
}

impl Path<'_> {
    fn receiver(&self) -> &Connection {
        self.receiver.as_ref().unwrap_or(&self.sender)
    }

    fn totals(&self) -> Result<DriverTotals, Failure> {
        DriverTotals::read(self.drivers.iter().zip(&self.counts))
    }

    /// The processes of the driver that sends, and of the one that receives.
    fn pids(&self) -> (u32, u32) {
        let pid = |driver: Option<&DriverProcess>| driver.map_or(0, DriverProcess::pid);
        (pid(self.drivers.first()), pid(self.drivers.last()))
    }

    fn explain(&self, failure: Failure) -> Failure {
        self.receiver().explain(self.sender.explain(failure))
    }
}

impl Bench<'_> {
    /// Starts a contender's drivers, makes a run of each length, and ends the drivers; `None` if the interrupt is
    /// requested meanwhile.
    ///
    /// # Errors
    /// [`Failure::Run`] if a driver does not start or end, or if a message is lost, repeated or changed.
    pub fn measure(
        &self,
        contender: Contender,
        conditions: Conditions,
        lengths: &[MessageLength],
        numbers: &mut impl Iterator<Item = u32>,
    ) -> Result<Option<Vec<Run>>, Failure> {
        let mut settings = vec![Settings::Threads(conditions.threading, self.driver_idle)];
        if conditions.buffers == Buffers::Throughput {
            settings.push(Settings::Preset(Preset::Throughput));
        }
        let mut drivers = Vec::new();
        for namespace in self.namespaces_of(conditions.network) {
            let launch = Launch {
                host: contender.host(),
                settings: &settings,
                segmentation_offload: contender == Contender::Rust,
                namespace,
                number: numbers.next().unwrap_or(u32::MAX),
            };
            let Some(driver) = self.launcher.start(&launch, self.interrupt)? else {
                return Ok(None);
            };
            drivers.push(driver);
        }
        let measured = self.measure_lengths(contender, conditions.network, lengths, &drivers);
        // If one has ended, its own words say more.
        drivers.iter_mut().try_for_each(DriverProcess::check)?;
        let Some(runs) = measured? else { return Ok(None) };
        for driver in drivers {
            driver.end(self.interrupt)?;
        }
        Ok((!self.interrupt.is_requested()).then_some(runs))
    }

    /// One for each driver of a network; `None` is this process's own.
    fn namespaces_of(&self, network: Network) -> Vec<Option<&str>> {
        match (network, self.namespaces) {
            (Network::Namespaces, Some(namespaces)) => namespaces.names().map(Some).to_vec(),
            _ => vec![None],
        }
    }

    fn measure_lengths(
        &self,
        contender: Contender,
        network: Network,
        lengths: &[MessageLength],
        drivers: &[DriverProcess],
    ) -> Result<Option<Vec<Run>>, Failure> {
        let [sending, rest @ ..] = drivers else { return Ok(None) };
        let counts = drivers.iter().map(|driver| CncFile::open(driver.aeron_dir(), Duration::ZERO));
        let path = Path {
            drivers,
            counts: counts.collect::<Result<_, _>>()?,
            sender: Connection::to_driver(sending.aeron_dir())?,
            receiver: rest
                .first()
                .map(|driver| Connection::to_driver(driver.aeron_dir()))
                .transpose()?,
            channel: channel(network)?,
        };
        let mut runs = Vec::new();
        for (length, stream_id) in lengths.iter().zip(FIRST_STREAM_ID..) {
            let is_cold = contender == Contender::Java && runs.is_empty();
            let warmup = if is_cold { self.java_warmup } else { self.warmup };
            let measured = self.measure_stream(&path, &length.lengths(), stream_id, warmup);
            match measured.map_err(|failure| path.explain(failure))? {
                Some(run) => runs.push(run),
                None => return Ok(None),
            }
        }
        path.sender.warn();
        path.receiver().warn();
        Ok(Some(runs))
    }

    fn measure_stream(
        &self,
        path: &Path<'_>,
        lengths: &Lengths,
        stream_id: i32,
        warmup: Duration,
    ) -> Result<Option<Run>, Failure> {
        let (channel, interrupt) = (&path.channel, self.interrupt);
        let mut stream = path.sender.open_to(path.receiver(), channel, stream_id, interrupt)?;
        if interrupt.is_requested() {
            return Ok(None);
        }
        let payload = Payload::default();
        let mut publication = NumberedPublication::new(&mut stream.publication, lengths);
        let mut subscription =
            NumberedSubscription::new(&mut stream.subscription, lengths, &payload);
        let sample = || {
            let totals = path.totals()?;
            Ok::<_, Failure>(Sample { at: Instant::now(), payload: payload.bytes(), totals })
        };
        let plan = Plan {
            // Messages are counted, and not their bytes.
            message_length: 1,
            fragment_limit: FRAGMENT_LIMIT,
            idle: self.idle,
            interval: self.slice,
            warmup,
            measured: Some(self.measure),
            timeout: path.sender.timeout(),
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
                    if measured + self.slice / 2 >= self.measure {
                        last = Some(sample()?);
                    }
                }
            }
            Ok(())
        };
        let measurement =
            measurement::measure(&mut publication, &mut subscription, &plan, interrupt, observe)?;
        subscription.check(&publication)?;
        if interrupt.is_requested() {
            return Ok(None);
        }
        let last = last.map_or_else(sample, Ok)?;
        let calls = if self.counts_calls {
            let counted = count_calls(&mut publication, &mut subscription, &plan, path.pids());
            // Ctrl-C in a terminal ends perf, too.
            if interrupt.is_requested() {
                return Ok(None);
            }
            Some(counted?)
        } else {
            None
        };
        Ok(Some(Run {
            rates: measurement.slices.iter().map(Slice::messages_per_second).collect(),
            payload: last.payload - first.payload,
            elapsed: last.at - first.at,
            totals: last.totals - first.totals,
            calls,
        }))
    }
}

/// Lets the stream go on while system calls are counted. Counting would slow the measured time.
fn count_calls(
    publication: &mut NumberedPublication<'_>,
    subscription: &mut NumberedSubscription<'_>,
    plan: &Plan,
    (sender, receiver): (u32, u32),
) -> Result<SystemCalls, Failure> {
    let counted = Interrupt::default();
    let plan = Plan { warmup: Duration::ZERO, measured: None, ..*plan };
    let calls = thread::scope(|scope| {
        let counter = measurement::spawn(scope, "counter", || {
            thread::sleep(BEFORE_COUNTED);
            let calls = SystemCalls::count(sender, receiver, COUNTED);
            counted.request();
            calls
        })?;
        measurement::measure(publication, subscription, &plan, &counted, |_, _| Ok(()))?;
        counter.join().map_err(|_| Failure::Run("the counter's thread panicked".to_owned()))?
    })?;
    subscription.check(publication)?;
    Ok(calls)
}

fn channel(network: Network) -> Result<Channel, Failure> {
    let endpoint = match network {
        Network::Loopback => {
            let [endpoint] = endpoints::free_endpoints()?;
            endpoint
        }
        Network::Namespaces => {
            SocketAddr::from((NetworkNamespaces::ADDRESSES[1], PORT)).to_string()
        }
    };
    format!("aeron:udp?endpoint={endpoint}").parse().map_err(Failure::Run)
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

    #[test]
    fn run_has_rates_per_payload() {
        let totals = DriverTotals { cpu: Duration::from_millis(300), ..DriverTotals::default() };
        let run = Run {
            rates: vec![1.0],
            payload: 200_000_000,
            elapsed: Duration::from_secs(2),
            totals,
            calls: None,
        };
        assert_eq!(run.bytes_per_second(), 1e8);
        assert_eq!(run.cpu_seconds_per_gigabyte(), Some(1.5));
        assert_eq!(Run { payload: 0, ..run }.cpu_seconds_per_gigabyte(), None);
    }
}
