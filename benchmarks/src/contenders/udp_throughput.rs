//! The drivers whose UDP throughput is compared, and one run of them.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rusteron_client::{CncFile, IdleStrategyKind};
use rusteron_media_driver::Preset;

use crate::command_line::choice::{Threading, display_in_words};
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::run_options::RunOptions;
use crate::measuring::connection::Connection;
use crate::measuring::endpoints;
use crate::measuring::measurement::{self, Phase, Plan, Slice};
use crate::measuring::numbered::{
    Lengths, NUMBER_LENGTH, NumberedPublication, NumberedSubscription, Payload,
};
use crate::processes::driver_process::{DriverProcess, Host, Launch, Launcher, Settings};
use crate::processes::driver_totals::DriverTotals;
use crate::processes::network_namespaces::{Network, NetworkNamespaces};
use crate::reports::results::Figure;

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
pub enum Contender {
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
pub enum Buffers {
    /// The driver's own
    Default,
    /// Those of the preset throughput
    Throughput,
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
pub struct Conditions {
    /// The network.
    pub network: Network,
    /// The threads of each driver.
    pub threading: Threading,
    /// The buffers of each driver.
    pub buffers: Buffers,
    /// The messages.
    pub length: MessageLength,
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
    /// Warm-up and time of a run.
    pub options: &'a RunOptions,
    /// The interrupt that ends a run early.
    pub interrupt: &'a Interrupt,
}

/// The counts at a point in time.
struct Sample {
    at: Instant,
    payload: u64,
    totals: DriverTotals,
}

impl Bench<'_> {
    /// Starts a contender's drivers, passes messages, and ends the drivers.
    ///
    /// # Errors
    /// [`Failure::Run`] if a driver does not start or end, or if a message is lost, repeated or changed;
    /// [`Failure::Interrupted`].
    pub fn measure(
        &self,
        contender: Contender,
        conditions: &Conditions,
        numbers: &mut impl Iterator<Item = u32>,
    ) -> Result<Vec<Figure>, Failure> {
        let mut settings = vec![Settings::Threads(conditions.threading, self.driver_idle)];
        if conditions.buffers == Buffers::Throughput {
            settings.push(Settings::Preset(Preset::Throughput));
        }
        // One driver for each end; `None` is this process's own network.
        let namespaces = match (conditions.network, self.namespaces) {
            (Network::Namespaces, Some(namespaces)) => namespaces.names().map(Some).to_vec(),
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
        let warmup = self.options.warmup_with(contender == Contender::Java);
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
            idle: self.idle,
            interval: RunOptions::SLICE,
            warmup,
            measured: self.options.measure,
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

fn channel(network: Network) -> Result<String, Failure> {
    let endpoint = match network {
        Network::Loopback => {
            let [endpoint] = endpoints::free_endpoints()?;
            endpoint
        }
        Network::Namespaces => {
            SocketAddr::from((NetworkNamespaces::ADDRESSES[1], PORT)).to_string()
        }
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
