//! The ways that messages can go, and one run of each.
//!
//! A further way is a variant of [`Way`] and an arm in `Bench::measure_exclusive` or
//! `Bench::measure_concurrent`.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use rusteron_client::{PollError, Publisher, Subscription};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::contenders::batches::{self, Batches};
use crate::contenders::c_functions::{CConcurrentPublication, CPublication, CSubscription};
use crate::contenders::c_loops;
use crate::measuring::channel::Channel;
use crate::measuring::connection::{Connection, Stream};
use crate::measuring::measurement::{self, Measurement, Plan, Slice};
use crate::measuring::message_path::{Fragments, Publish};
use crate::measuring::publisher;
use crate::measuring::run::Run;
use crate::measuring::subscriber::{self, Received};
use crate::processes::driver_process::DriverDir;
use crate::processes::java::{self, Java};
use crate::processes::program::Program;

/// A way that messages can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// The Rust API: `offer` and `poll`
    Rust,
    /// The Rust API, 16 messages at once: `offer_batch` and `poll_batch`
    RustBatches,
    /// C's functions, called from the same loops in Rust
    CFunctions,
    /// Loops written in C, on the same threads
    CProgram,
    /// Loops in Java that yield, on the same driver
    Java,
    /// Aeron's sample EmbeddedExclusiveIpcThroughput, which spins, on a driver in Java
    JavaSample,
}

impl Way {
    /// Returns whether this way is a Java program.
    pub fn is_java(self) -> bool {
        matches!(self, Self::Java | Self::JavaSample)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rust => "Rust",
            Self::RustBatches => "Rust, batches",
            Self::CFunctions => "C functions",
            Self::CProgram => "C program",
            Self::Java => "Java",
            Self::JavaSample => "Java sample",
        })
    }
}

/// How many publish, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publishers {
    /// One, on an exclusive publication.
    Exclusive,
    /// So many threads, on one publication.
    Concurrent(usize),
}

impl Publishers {
    /// Returns whether these publishers have this way: Aeron's sample has only an exclusive publication.
    pub fn have(self, way: Way) -> bool {
        self == Self::Exclusive || way != Way::JavaSample
    }
}

/// The settings and programs that runs are made with.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The client, and the driver.
    pub connection: &'a Connection,
    /// Java, if it is there and wanted.
    pub java: Option<&'a Java>,
    /// How long a Java program runs before it is measured.
    pub java_warmup: Duration,
    /// Ends a run early.
    pub interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// One run: the rates of its slices, in messages per second. They are of no use if the interrupt
    /// is requested when it returns.
    ///
    /// # Errors
    /// [`Failure::Run`] if anything fails.
    pub fn measure(
        &self,
        way: Way,
        publishers: Publishers,
        plan: &Plan,
        stream_id: i32,
    ) -> Result<Vec<f64>, Failure> {
        match (way, self.java) {
            (Way::JavaSample, Some(java)) => self.measure_java_sample(java, plan, stream_id),
            (Way::Java, Some(java)) => self.measure_java(java, publishers, plan, stream_id),
            (Way::Java | Way::JavaSample, None) => Ok(Vec::new()),
            _ => {
                let measurement = match publishers {
                    Publishers::Exclusive => self.measure_exclusive(way, plan, stream_id)?,
                    Publishers::Concurrent(count) => {
                        self.measure_concurrent(way, count, plan, stream_id)?
                    }
                };
                Ok(measurement.slices.iter().map(Slice::messages_per_second).collect())
            }
        }
    }

    fn measure_exclusive(
        &self,
        way: Way,
        plan: &Plan,
        stream_id: i32,
    ) -> Result<Measurement, Failure> {
        let Stream { mut publication, subscription } =
            self.connection.open(&ipc()?, stream_id, self.interrupt)?;
        let message = plan.message();
        let is_fragmented = plan.message_length > publication.constants().max_payload_length;
        match way {
            Way::CProgram => self.run(
                vec![|run: &Run<'_>| {
                    c_loops::publish_exclusively(&mut publication, &message, plan, run)
                }],
                |run| c_loops::receive(subscription, plan, run),
                plan,
            ),
            Way::CFunctions => {
                let mut publication = CPublication(publication);
                self.run(
                    vec![publishing(&mut publication, &message, plan)],
                    |run| receive_with_c_functions(subscription, plan, run),
                    plan,
                )
            }
            Way::RustBatches => self.run(
                vec![publishing_batches(&mut publication, &message, plan)],
                |run| receive_batches(subscription, is_fragmented, plan, run),
                plan,
            ),
            _ => self.run(
                vec![publishing(&mut publication, &message, plan)],
                |run| receive_with_rust(subscription, is_fragmented, plan, run),
                plan,
            ),
        }
    }

    fn measure_concurrent(
        &self,
        way: Way,
        count: usize,
        plan: &Plan,
        stream_id: i32,
    ) -> Result<Measurement, Failure> {
        let Stream { publication, subscription } =
            self.connection.open_concurrent(&ipc()?, stream_id, self.interrupt)?;
        let (publication, message) = (&publication, plan.message());
        let is_fragmented = plan.message_length > publication.constants().max_payload_length;
        match way {
            Way::CProgram => {
                let publish =
                    |run: &Run<'_>| c_loops::publish_concurrently(publication, &message, plan, run);
                let receive = |run: &Run<'_>| c_loops::receive(subscription, plan, run);
                self.run(vec![publish; count], receive, plan)
            }
            Way::CFunctions => {
                let mut publications = vec![CConcurrentPublication(publication); count];
                let publishers = publications
                    .iter_mut()
                    .map(|publication| publishing(publication, &message, plan))
                    .collect();
                let receive = |run: &Run<'_>| receive_with_c_functions(subscription, plan, run);
                self.run(publishers, receive, plan)
            }
            Way::RustBatches => {
                let mut publications = vec![publication; count];
                let publishers = publications
                    .iter_mut()
                    .map(|publication| publishing_batches(publication, &message, plan))
                    .collect();
                let receive =
                    |run: &Run<'_>| receive_batches(subscription, is_fragmented, plan, run);
                self.run(publishers, receive, plan)
            }
            _ => {
                let mut publications = vec![publication; count];
                let publishers = publications
                    .iter_mut()
                    .map(|publication| publishing(publication, &message, plan))
                    .collect();
                let receive =
                    |run: &Run<'_>| receive_with_rust(subscription, is_fragmented, plan, run);
                self.run(publishers, receive, plan)
            }
        }
    }

    fn run<P, S>(
        &self,
        publishers: Vec<P>,
        subscriber: S,
        plan: &Plan,
    ) -> Result<Measurement, Failure>
    where
        P: FnOnce(&Run<'_>) -> Result<publisher::Published, rusteron_client::OfferError> + Send,
        S: FnOnce(&Run<'_>) -> Result<Received, PollError> + Send,
    {
        measurement::measure_loops(publishers, subscriber, plan, self.interrupt, |_, _| Ok(()))
    }

    /// A run of `java/Throughput.java` on our driver.
    fn measure_java(
        &self,
        java: &Java,
        publishers: Publishers,
        plan: &Plan,
        stream_id: i32,
    ) -> Result<Vec<f64>, Failure> {
        let count = match publishers {
            Publishers::Exclusive => 0,
            Publishers::Concurrent(count) => count,
        };
        let arguments = [
            self.connection.aeron_dir().display().to_string(),
            stream_id.to_string(),
            plan.message_length.to_string(),
            plan.fragment_limit.to_string(),
            plan.idle.name().to_owned(),
            count.to_string(),
            self.java_warmup.as_nanos().to_string(),
            plan.measured.unwrap_or_default().as_nanos().to_string(),
            plan.interval.as_nanos().to_string(),
        ];
        let timeout = self.connection.timeout() + self.java_warmup;
        let mut program = java.start("Throughput.java", &[], &arguments, timeout)?;
        let mut rates = Vec::new();
        while let Some(line) = program.line(self.interrupt)? {
            let mut fields = line.split(' ');
            match fields.next() {
                Some("slice") => {
                    let nanos: u64 = java::number(&line, fields.next())?;
                    let bytes: u64 = java::number(&line, fields.next())?;
                    let messages = bytes as f64 / plan.message_length as f64;
                    rates.push(messages * 1e9 / nanos.max(1) as f64);
                }
                _ => {
                    check_sum(&line, plan.message_length)?;
                    program.finish(self.interrupt)?;
                    break;
                }
            }
        }
        Ok(rates)
    }

    /// A run of Aeron's sample, which prints a rate each second until it is stopped.
    fn measure_java_sample(
        &self,
        java: &Java,
        plan: &Plan,
        stream_id: i32,
    ) -> Result<Vec<f64>, Failure> {
        // Streams are numbered through.
        let dir = DriverDir::new(stream_id.unsigned_abs());
        let options = [
            format!("-Daeron.dir={}", dir.path().display()),
            format!("-Daeron.sample.messageLength={}", plan.message_length),
            format!("-Daeron.sample.frameCountLimit={}", plan.fragment_limit),
            // Digits and commas.
            "-Duser.language=en".to_owned(),
            "-Duser.country=US".to_owned(),
        ];
        let timeout = self.connection.timeout();
        let main = "io.aeron.samples.EmbeddedExclusiveIpcThroughput";
        let mut program = java.start(main, &options, &[], timeout)?;
        // At least the first second is the start's.
        let warmup = seconds(self.java_warmup).max(1);
        let mut rates = Vec::new();
        for second in 0..warmup + seconds(plan.measured.unwrap_or_default()).max(1) {
            let Some(rate) = sample_rate(&mut program, self.interrupt)? else { break };
            if second >= warmup {
                rates.push(rate);
            }
        }
        // Killed, it leaves its directory behind, which goes at the end of this function.
        drop(program);
        Ok(rates)
    }
}

/// The loop of a publisher in Rust.
fn publishing<'a, P: Publish>(
    publication: &'a mut P,
    message: &'a [u8],
    plan: &'a Plan,
) -> impl FnOnce(&Run<'_>) -> Result<publisher::Published, rusteron_client::OfferError> + Send + 'a
{
    |run| publisher::publish(publication, message, &mut plan.idle.new_strategy(), run)
}

/// The loop of a publisher in Rust that offers batches.
fn publishing_batches<'a, P: Publisher>(
    publication: &'a mut P,
    message: &'a [u8],
    plan: &'a Plan,
) -> impl FnOnce(&Run<'_>) -> Result<publisher::Published, rusteron_client::OfferError> + Send + 'a
{
    |run| batches::publish(publication, message, &mut plan.idle.new_strategy(), run)
}

/// The loop of a subscriber in Rust that receives all available fragments at once. For messages in several
/// fragments it is as [`receive_with_rust`].
fn receive_batches(
    subscription: Subscription,
    is_fragmented: bool,
    plan: &Plan,
    run: &Run<'_>,
) -> Result<Received, PollError> {
    if is_fragmented {
        return receive_with_rust(subscription, is_fragmented, plan, run);
    }
    let mut batches = Batches(subscription);
    subscriber::receive(&mut batches, plan.expectation(), &mut plan.idle.new_strategy(), run)
}

/// The loop of a subscriber in Rust. C and Java get the fragments of a message that is longer than one
/// fragment. So does this loop: no contender assembles them.
fn receive_with_rust(
    mut subscription: Subscription,
    is_fragmented: bool,
    plan: &Plan,
    run: &Run<'_>,
) -> Result<Received, PollError> {
    let mut idle = plan.idle.new_strategy();
    if is_fragmented {
        let mut fragments = Fragments(subscription);
        subscriber::receive(&mut fragments, plan.expectation(), &mut idle, run)
    } else {
        subscriber::receive(&mut subscription, plan.expectation(), &mut idle, run)
    }
}

fn receive_with_c_functions(
    subscription: Subscription,
    plan: &Plan,
    run: &Run<'_>,
) -> Result<Received, PollError> {
    let mut subscription = CSubscription(subscription);
    let mut idle = plan.idle.new_strategy();
    subscriber::receive(&mut subscription, plan.expectation(), &mut idle, run)
}

fn ipc() -> Result<Channel, Failure> {
    "aeron:ipc".parse().map_err(Failure::Run)
}

/// Whole seconds, rounded up: the unit of the sample's measurement.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Checks that all messages have arrived, by the last line of `Throughput.java`.
fn check_sum(line: &str, message_length: usize) -> Result<(), Failure> {
    let mut fields = line.strip_prefix("done ").into_iter().flat_map(|line| line.split(' '));
    let messages: u64 = java::number(line, fields.next())?;
    let bytes: u64 = java::number(line, fields.next())?;
    if bytes == messages * message_length as u64 {
        return Ok(());
    }
    Err(Failure::Run(format!("Java has received {bytes} bytes of {messages} messages")))
}

/// The next rate that Aeron's sample prints.
fn sample_rate(program: &mut Program, interrupt: &Interrupt) -> Result<Option<f64>, Failure> {
    while let Some(line) = program.line(interrupt)? {
        if let Some(rate) = parse_sample_rate(&line) {
            return Ok(Some(rate));
        }
    }
    Ok(None)
}

/// The rate in a line such as `Duration 1001ms - 54,995,204 messages - 1,759,846,528 payload bytes`.
fn parse_sample_rate(line: &str) -> Option<f64> {
    let (millis, rest) = line.strip_prefix("Duration ")?.split_once("ms - ")?;
    let (messages, _) = rest.split_once(" messages")?;
    let parse = |number: &str| number.replace(',', "").parse::<f64>().ok();
    let rate = parse(messages)? * 1e3 / parse(millis)?;
    rate.is_finite().then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_line_is_understood() {
        let line = "Duration 1250ms - 50,000,000 messages - 1,600,000,000 payload bytes";
        assert_eq!(parse_sample_rate(line), Some(40e6));
        for line in ["", "Duration 0ms - 0 messages", "Publisher back pressure ratio: 0.1"] {
            assert_eq!(parse_sample_rate(line), None);
        }
    }

    #[test]
    fn messages_that_are_missing_are_an_error() {
        assert_eq!(check_sum("done 2 64", 32), Ok(()));
        for line in ["done 2 63", "done 2", "x"] {
            assert!(check_sum(line, 32).is_err(), "{line}");
        }
    }

    #[test]
    fn parts_of_seconds_are_whole_ones() {
        let cases = [(0, 0), (1, 1), (1000, 1), (1001, 2)];
        for (millis, expected) in cases {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }
}
