//! The pairs between which messages go there and back, and one run of each.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::ValueEnum;
use hdrhistogram::Histogram;
use rusteron_client::{ExclusivePublication, Subscription};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::contenders::c_functions::{CPublication, CSubscription};
use crate::contenders::ping_pong::{self, End, Pace, Plan};
use crate::contenders::tokio_task;
use crate::measuring::channel::Channel;
use crate::measuring::connection::Connection;
use crate::measuring::endpoints;
use crate::processes::java::{self, Java};
use crate::processes::program::Program;

/// The sender of the messages, and the program that sends them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pair {
    /// The Rust API on both sides, two threads of this process
    Rust,
    /// C's functions, called from the same loops in Rust, two threads of this process
    CFunctions,
    /// Java on both sides, two threads of another process
    Java,
    /// Rust sends, and another process, in Java, sends back
    RustJava,
    /// Rust sends, and a tokio task sends back, with a polling thread between Aeron and the task
    RustTokio,
}

impl Pair {
    /// Returns whether the pair needs Java.
    pub fn needs_java(self) -> bool {
        matches!(self, Self::Java | Self::RustJava)
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rust => "Rust",
            Self::CFunctions => "C functions",
            Self::Java => "Java",
            Self::RustJava => "Rust-Java",
            Self::RustTokio => "Rust-tokio",
        })
    }
}

/// The transport of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Shared memory
    Ipc,
    /// UDP over the loopback interface
    Udp,
}

impl Transport {
    /// The name of the option's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipc => "ipc",
            Self::Udp => "udp",
        }
    }
}

/// The two streams of a round trip.
#[derive(Debug)]
struct Streams {
    pings: (Channel, i32),
    pongs: (Channel, i32),
}

impl Streams {
    fn new(transport: Transport, stream_id: i32) -> Result<Self, Failure> {
        let [pings, pongs] = match transport {
            Transport::Ipc => ["aeron:ipc".to_owned(), "aeron:ipc".to_owned()],
            Transport::Udp => endpoints::free_endpoints::<2>()?
                .map(|endpoint| format!("aeron:udp?endpoint={endpoint}")),
        };
        Ok(Self {
            pings: (pings.parse().map_err(Failure::Run)?, stream_id),
            pongs: (pongs.parse().map_err(Failure::Run)?, stream_id + 1),
        })
    }
}

/// The settings and programs that runs are made with.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The client, and the driver.
    pub connection: &'a Connection,
    /// Java, if it is there and wanted.
    pub java: Option<&'a Java>,
    /// How long a pair with Java runs before it is measured.
    pub java_warmup: Duration,
    /// Ends a run early.
    pub interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// Runs once, on the stream and the next stream, and returns the latencies. If the interrupt is requested
    /// when this function returns, the latencies are of no use.
    ///
    /// # Errors
    /// [`Failure::Run`] if anything fails.
    pub fn measure(
        &self,
        pair: Pair,
        transport: Transport,
        plan: &Plan,
        stream_id: i32,
    ) -> Result<Histogram<u64>, Failure> {
        let streams = Streams::new(transport, stream_id)?;
        match (pair, self.java) {
            (Pair::Java, Some(java)) => {
                let plan = Plan { warmup: self.java_warmup, ..*plan };
                self.measure_java(java, &streams, &plan)
            }
            (Pair::RustJava, Some(java)) => {
                let plan = Plan { warmup: self.java_warmup, ..*plan };
                self.measure_rust_java(java, &streams, &plan)
            }
            (Pair::Java | Pair::RustJava, None) => ping_pong::histogram(),
            (Pair::RustTokio, _) => {
                let (mut near, far) = self.connect_ends(&streams)?;
                tokio_task::measure(&mut near, far, plan, self.interrupt)
            }
            (Pair::Rust | Pair::CFunctions, _) => {
                let (mut near, mut far) = self.connect_ends(&streams)?;
                if pair == Pair::Rust {
                    return ping_pong::measure(&mut near, &mut far, plan, self.interrupt);
                }
                let [mut near, mut far] = [near, far].map(|end| End {
                    publication: CPublication(end.publication),
                    subscription: CSubscription(end.subscription),
                });
                ping_pong::measure(&mut near, &mut far, plan, self.interrupt)
            }
        }
    }

    /// Both ends of a round trip in Rust, on the stream and the next stream. They are connected unless the
    /// interrupt is requested when this function returns.
    ///
    /// # Errors
    /// [`Failure::Run`] if the driver refuses the channels, or in case of a timeout.
    pub fn ends(
        &self,
        transport: Transport,
        stream_id: i32,
    ) -> Result<(RustEnd, RustEnd), Failure> {
        self.connect_ends(&Streams::new(transport, stream_id)?)
    }

    fn connect_ends(&self, streams: &Streams) -> Result<(RustEnd, RustEnd), Failure> {
        let (near, far) = (self.near(streams)?, self.far(streams)?);
        self.await_connected(streams, &near, Some(&far))?;
        Ok((near, far))
    }

    fn near(&self, streams: &Streams) -> Result<RustEnd, Failure> {
        self.end(&streams.pings, &streams.pongs)
    }

    fn far(&self, streams: &Streams) -> Result<RustEnd, Failure> {
        self.end(&streams.pongs, &streams.pings)
    }

    fn end(&self, to: &(Channel, i32), from: &(Channel, i32)) -> Result<RustEnd, Failure> {
        let aeron = self.connection.aeron();
        Ok(End {
            publication: aeron.add_exclusive_publication(to.0.as_str(), to.1)?,
            subscription: aeron.add_subscription(from.0.as_str(), from.1)?,
        })
    }

    fn await_connected(
        &self,
        streams: &Streams,
        near: &RustEnd,
        far: Option<&RustEnd>,
    ) -> Result<(), Failure> {
        let (channel, stream_id) = &streams.pings;
        let is_connected =
            |end: &RustEnd| end.publication.is_connected() && end.subscription.is_connected();
        self.connection.await_connected(channel, *stream_id, self.interrupt, || {
            is_connected(near) && far.is_none_or(is_connected)
        })
    }

    fn start_java(
        &self,
        java: &Java,
        role: &str,
        streams: &Streams,
        plan: &Plan,
    ) -> Result<Program, Failure> {
        let interval = match plan.pace {
            Pace::Closed => Duration::ZERO,
            Pace::Fixed(interval) => interval,
        };
        let arguments = [
            role.to_owned(),
            self.connection.aeron_dir().display().to_string(),
            streams.pings.0.to_string(),
            streams.pings.1.to_string(),
            streams.pongs.0.to_string(),
            streams.pongs.1.to_string(),
            plan.idle.name().to_owned(),
            plan.message_length.to_string(),
            plan.warmup.as_nanos().to_string(),
            plan.measure.as_nanos().to_string(),
            interval.as_nanos().to_string(),
        ];
        let timeout = plan.timeout + plan.warmup + plan.measure;
        java.start("PingPong.java", &[], &arguments, timeout)
    }

    fn measure_java(
        &self,
        java: &Java,
        streams: &Streams,
        plan: &Plan,
    ) -> Result<Histogram<u64>, Failure> {
        let mut program = self.start_java(java, "both", streams, plan)?;
        let mut histogram = ping_pong::histogram()?;
        while let Some(line) = program.line(self.interrupt)? {
            let mut fields = line.split(' ');
            match fields.next() {
                Some("latency") => {
                    let nanos = java::number(&line, fields.next())?;
                    histogram.saturating_record_n(nanos, java::number(&line, fields.next())?);
                }
                Some("done") => {
                    program.finish(self.interrupt)?;
                    break;
                }
                _ => return Err(Failure::Run(format!("not understood: Java prints {line:?}"))),
            }
        }
        Ok(histogram)
    }

    fn measure_rust_java(
        &self,
        java: &Java,
        streams: &Streams,
        plan: &Plan,
    ) -> Result<Histogram<u64>, Failure> {
        let mut near = self.near(streams)?;
        let mut program = self.start_java(java, "pong", streams, plan)?;
        // It prints that it is ready.
        if program.line(self.interrupt)?.is_none() {
            return ping_pong::histogram();
        }
        let connected = self.await_connected(streams, &near, None);
        // If it has ended, its own words say more.
        program.check()?;
        connected?;
        let running = AtomicBool::new(true);
        let measured = ping_pong::ping(&mut near, plan, &running, self.interrupt);
        program.check()?;
        measured
    }
}

/// Where a thread sends to and receives from through Rust.
pub type RustEnd = End<ExclusivePublication, Subscription>;
