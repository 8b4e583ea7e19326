//! Messages a second over UDP.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rusteron_client::{CncFile, IdleStrategyKind, SystemCounter};
use rusteron_core::program::Failure;
use rusteron_media_driver::Preset;
use rusteron_test_support::networks::Network;
use rusteron_test_support::udp_channel;

use super::comparison::{Comparison, cases, pairs};
use crate::command_line::choice::{Contender, Route, among, option_name};
use crate::command_line::run_options::{self, RunOptions};
use crate::measuring::connection::Connection;
use crate::measuring::measurement;
use crate::measuring::numbered::{
    Lengths, NUMBER_LENGTH, NumberedPublication, NumberedSubscription, Payload,
};
use crate::processes::driver_process::{DriverProcess, Launcher, of_preset, threads};
use crate::processes::environment::Environment;
use crate::processes::process_usage::Usage;
use crate::reports::results::Figure;

/// Compares messages a second of media drivers over UDP: the program media_driver with segmentation
/// offload, the same without it (Aeron's C driver with Aeron's own transport), and Aeron's Java
/// driver.
///
/// An exclusive publication and a subscription of this process pass as many messages as go, on one
/// driver (loopback) or on two in network namespaces of their own, which have one thread each.
/// Every message has its number, and a lost, repeated or changed one is a failure. Processor time
/// is that of the drivers, and NAKs are the requests for lost packets that the receiver's driver
/// has sent. Linux only.
#[derive(Debug, Clone, Args)]
pub struct UdpThroughputOptions {
    /// The drivers, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', default_value = "rust,c,java",
          value_parser = among("rust,c,java"))]
    contenders: Vec<Contender>,

    /// The networks, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "loopback,namespaces")]
    networks: Vec<Route>,

    /// Vectors, socket buffers and receiver window of the drivers, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "default,throughput")]
    buffers: Vec<Buffers>,

    /// Lengths of messages in bytes, from 8 to 1376, or mix, separated by commas; mix is random
    /// lengths from 32 to 1344, evenly spread, the same in each run
    #[arg(long, value_name = "LENGTHS", value_delimiter = ',', default_value = "32,288,1344,mix")]
    message_lengths: Vec<MessageLength>,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &UdpThroughputOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let comparison = Comparison::start("udp-throughput", &options.run, &options.contenders)?;
    let environment = comparison.environment.clone();
    let namespaces = Route::networks(&options.networks)?;
    let launcher = Launcher::new(None, &environment)?;
    let bench = Bench { launcher, namespaces: namespaces.as_ref(), environment: &environment };
    let drivers = pairs(&options.networks, &options.buffers);
    let conditions = pairs(&drivers, &options.message_lengths)
        .into_iter()
        .map(|((network, buffers), length)| Conditions { network, buffers, length });
    let cases = cases(conditions, Conditions::name, &comparison.contenders);
    comparison.compare(&cases, |conditions, contender, _| bench.measure(contender, conditions))
}

const STREAM_ID: i32 = 6001;

/// The receiver's port in its namespace, where no other program is.
const PORT: u16 = 20121;

/// The shortest and the longest message of the mix.
const MIX: (usize, usize) = (32, 1344);

/// The longest message that is one fragment.
const MAX_MESSAGE_LENGTH: usize = 1376;

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
    /// The buffers of each driver.
    buffers: Buffers,
    /// The messages.
    length: MessageLength,
}

impl Conditions {
    fn name(&self) -> String {
        let (network, buffers) = (option_name(&self.network), option_name(&self.buffers));
        format!("{network}, shared, {buffers}, {}", self.length)
    }
}

/// Makes runs.
#[derive(Debug)]
struct Bench<'a> {
    /// Starts the drivers.
    launcher: Launcher<'a>,
    /// The network of [`Route::Namespaces`].
    namespaces: Option<&'a [Network; 2]>,
    environment: &'a Environment,
}

impl Bench<'_> {
    /// Starts a contender's drivers, passes messages, and ends the drivers.
    fn measure(
        &self,
        contender: Contender,
        conditions: &Conditions,
    ) -> Result<Vec<Figure>, Failure> {
        let mut properties = threads("shared/backoff");
        if conditions.buffers == Buffers::Throughput {
            properties.extend(of_preset(Preset::Throughput));
        }
        if contender == Contender::C {
            properties.push("rusteron.segmentation.offload=off".to_owned());
        }
        // One driver for each end; `None` is this process's own network.
        let namespaces = match (conditions.network, self.namespaces) {
            (Route::Namespaces, Some(namespaces)) => namespaces.iter().map(Some).collect(),
            _ => vec![None],
        };
        let host = if contender == Contender::Java { contender } else { Contender::Rust };
        let start = |namespace| self.launcher.start(host, &properties, namespace);
        let mut drivers = namespaces.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let measured = self.measure_stream(contender, &drivers, conditions);
        // If one has ended, its own words say more.
        drivers.iter_mut().try_for_each(DriverProcess::check)?;
        let figures = measured?;
        for driver in drivers {
            driver.end(&self.environment.interrupt)?;
        }
        Ok(figures)
    }

    /// A stream from the first driver to the last, which may be the same.
    fn measure_stream(
        &self,
        contender: Contender,
        drivers: &[DriverProcess],
        conditions: &Conditions,
    ) -> Result<Vec<Figure>, Failure> {
        let interrupt = &self.environment.interrupt;
        let connections = drivers.iter().map(|driver| Connection::to_driver(driver.aeron_dir()));
        let connections = connections.collect::<Result<Vec<_>, _>>()?;
        let (Some(sender), Some(receiver)) = (connections.first(), connections.last()) else {
            return Err(Failure::Run("there is no driver".to_owned()));
        };
        let channel = channel(conditions.network);
        let mut publication = sender.aeron().add_exclusive_publication(&channel, STREAM_ID)?;
        let mut subscription = sender.subscribe(&publication, receiver, &channel, interrupt)?;
        let lengths = conditions.length.lengths();
        let payload = Payload::default();
        let mut publication = NumberedPublication::new(&mut publication, &lengths);
        let mut subscription = NumberedSubscription::new(&mut subscription, &lengths, &payload);
        let counts = CncFile::open(receiver.aeron_dir(), Duration::ZERO)?;
        // A sample has payload in GB, the drivers' processor time, and the receiver's NAKs.
        let mut samples = Vec::new();
        let sample = || {
            let mut cpu = Duration::ZERO;
            for driver in drivers {
                cpu += Usage::of(driver.pid())?.cpu;
            }
            let naks = SystemCounter::NakMessagesSent.read(&counts.counters()).unwrap_or(0);
            samples.push((payload.bytes() as f64 / 1e9, cpu, naks));
            Ok(())
        };
        let (idle, timeout) = (IdleStrategyKind::Yielding, sender.timeout());
        // Messages are counted, and not their bytes.
        let plan = self.environment.plan(contender, 1, idle, timeout);
        let rate =
            measurement::measure(&mut publication, &mut subscription, &plan, interrupt, sample)
                .map_err(|failure| receiver.explain(sender.explain(failure)))?;
        subscription.check(&publication)?;
        let [first, last] = samples[..] else {
            return Err(Failure::Interrupted);
        };
        let gigabytes = (last.0 - first.0).max(f64::MIN_POSITIVE);
        let cpu = last.1.saturating_sub(first.1).as_secs_f64();
        let naks = (last.2 - first.2) as f64;
        Ok(vec![("msgs/s", rate), ("CPU s/GB", cpu / gigabytes), ("NAKs", naks)])
    }
}

fn channel(network: Route) -> String {
    match network {
        Route::Loopback => udp_channel(),
        Route::Namespaces => {
            format!("aeron:udp?endpoint={}", SocketAddr::from((Network::PAIR[1], PORT)))
        }
    }
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
