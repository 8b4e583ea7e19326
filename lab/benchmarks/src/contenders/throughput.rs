//! The ways that messages can go over IPC, and one run of each.

use std::time::Duration;

use rusteron_client::{ExclusivePublication, OfferError, PollError, Publication, Subscription};
use rusteron_core::program::Failure;

use crate::command_line::choice::Contender;
use crate::command_line::run_options::SLICE;
use crate::contenders::batches::{self, Batches};
use crate::contenders::c_functions::{CConcurrentPublication, CPublication, CSubscription};
use crate::contenders::c_loops;
use crate::measuring::connection::Connection;
use crate::measuring::measurement::{self, FRAGMENT_LIMIT, Plan, median};
use crate::measuring::message_path::{Fragments, Publish};
use crate::measuring::publisher;
use crate::measuring::run::Run;
use crate::measuring::subscriber;
use crate::processes::environment::Environment;
use crate::processes::java;
use crate::processes::program::temporary_dir;

/// How many publish, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publishers {
    /// One, on an exclusive publication.
    Exclusive,
    /// So many threads, on one publication.
    Concurrent(usize),
}

impl Publishers {
    /// Returns whether these publishers have this contender: the loops in C and Aeron's sample have
    /// only an exclusive publication.
    pub fn have(self, contender: Contender) -> bool {
        self == Self::Exclusive || !matches!(contender, Contender::CProgram | Contender::JavaSample)
    }
}

/// The loop of a publisher, for a thread of its own.
type Publisher<'a> = Box<dyn FnOnce(&Run) -> Result<u64, OfferError> + Send + 'a>;

/// The client of a driver, and what runs share.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The client, and the driver.
    pub connection: &'a Connection,
    /// The options, Java, and the signal that ends runs early.
    pub environment: &'a Environment,
}

impl Bench<'_> {
    /// One run: the median of its slices' rates, in messages per second.
    ///
    /// # Errors
    /// [`Failure::Run`] if anything fails; [`Failure::Interrupted`].
    pub fn measure(
        &self,
        contender: Contender,
        publishers: Publishers,
        plan: &Plan,
        channel: &str,
        stream_id: i32,
    ) -> Result<f64, Failure> {
        let (connection, interrupt) = (self.connection, &self.environment.interrupt);
        let aeron = connection.aeron();
        match (contender, publishers) {
            (Contender::JavaSample, _) => self.measure_java_sample(plan),
            (Contender::Java, _) => self.measure_java(publishers, plan, channel, stream_id),
            (_, Publishers::Exclusive) => {
                let publication = aeron.add_exclusive_publication(channel, stream_id)?;
                let subscription =
                    connection.subscribe(&publication, connection, channel, interrupt)?;
                let longest = publication.constants().max_payload_length;
                let message = plan.message();
                let publishers = vec![exclusive(contender, publication, &message, plan)];
                self.run(contender, publishers, subscription, longest, plan)
            }
            (_, Publishers::Concurrent(count)) => {
                let publication = aeron.add_publication(channel, stream_id)?;
                let subscription =
                    connection.subscribe(&publication, connection, channel, interrupt)?;
                let longest = publication.constants().max_payload_length;
                let message = plan.message();
                let publisher = |_| concurrent(contender, &publication, &message, plan);
                let publishers = (0..count).map(publisher).collect();
                self.run(contender, publishers, subscription, longest, plan)
            }
        }
    }

    fn run(
        &self,
        contender: Contender,
        publishers: Vec<Publisher<'_>>,
        subscription: Subscription,
        max_payload_length: usize,
        plan: &Plan,
    ) -> Result<f64, Failure> {
        let is_fragmented = plan.message_length > max_payload_length;
        let receive = |run: &Run| receive(contender, subscription, is_fragmented, plan, run);
        let interrupt = &self.environment.interrupt;
        measurement::measure_loops(publishers, receive, plan, interrupt, || Ok(()))
    }

    /// A run of `java/benchmarks/Throughput.java` on our driver.
    fn measure_java(
        &self,
        publishers: Publishers,
        plan: &Plan,
        channel: &str,
        stream_id: i32,
    ) -> Result<f64, Failure> {
        let count = match publishers {
            Publishers::Exclusive => 0,
            Publishers::Concurrent(count) => count,
        };
        let arguments = [
            self.connection.aeron_dir().display().to_string(),
            channel.to_owned(),
            stream_id.to_string(),
            plan.message_length.to_string(),
            FRAGMENT_LIMIT.to_string(),
            plan.idle.name().to_owned(),
            count.to_string(),
            plan.warmup.as_nanos().to_string(),
            plan.measure.as_nanos().to_string(),
            SLICE.as_nanos().to_string(),
        ];
        let timeout = plan.timeout + plan.warmup;
        let java = self.environment.java()?;
        let mut program = java.start("benchmarks/Throughput.java", &[], &arguments, timeout)?;
        let mut rates = Vec::new();
        loop {
            let line = program.line(&self.environment.interrupt)?;
            let mut fields = line.split(' ');
            if fields.next() != Some("slice") {
                check_sum(&line, plan.message_length)?;
                program.finish(&self.environment.interrupt)?;
                return Ok(median(&rates).unwrap_or(0.0));
            }
            let nanos: u64 = java::number(&line, fields.next())?;
            let bytes: u64 = java::number(&line, fields.next())?;
            rates.push(bytes as f64 / plan.message_length as f64 * 1e9 / nanos.max(1) as f64);
        }
    }

    /// A run of Aeron's sample, which prints a rate each second until it is stopped.
    fn measure_java_sample(&self, plan: &Plan) -> Result<f64, Failure> {
        let dir = temporary_dir(None)?;
        let options = [
            format!("-Daeron.dir={}", dir.path().join("driver").display()),
            format!("-Daeron.sample.messageLength={}", plan.message_length),
            format!("-Daeron.sample.frameCountLimit={}", FRAGMENT_LIMIT),
            // Digits and commas.
            "-Duser.language=en".to_owned(),
            "-Duser.country=US".to_owned(),
        ];
        let main = "io.aeron.samples.EmbeddedExclusiveIpcThroughput";
        let mut program = self.environment.java()?.start(main, &options, &[], plan.timeout)?;
        // At least the first second is the start's.
        let warmup = seconds(plan.warmup).max(1);
        let wanted = warmup + seconds(plan.measure).max(1);
        let mut rates = Vec::new();
        while rates.len() < wanted {
            rates.extend(parse_sample_rate(&program.line(&self.environment.interrupt)?));
        }
        // Killed, it leaves its directory behind, which goes at the end of this function.
        drop(program);
        Ok(median(&rates[warmup..]).unwrap_or(0.0))
    }
}

fn exclusive<'a>(
    contender: Contender,
    mut publication: ExclusivePublication,
    message: &'a [u8],
    plan: &'a Plan,
) -> Publisher<'a> {
    match contender {
        Contender::CProgram => {
            Box::new(move |run| c_loops::publish(&mut publication, message, plan, run))
        }
        Contender::CFunctions => publisher(CPublication(publication), message, plan),
        Contender::RustBatches => in_batches(publication, message, plan),
        _ => publisher(publication, message, plan),
    }
}

fn concurrent<'a>(
    contender: Contender,
    publication: &'a Publication,
    message: &'a [u8],
    plan: &'a Plan,
) -> Publisher<'a> {
    match contender {
        Contender::CFunctions => publisher(CConcurrentPublication(publication), message, plan),
        Contender::RustBatches => in_batches(publication, message, plan),
        _ => publisher(publication, message, plan),
    }
}

fn publisher<'a, P: Publish + 'a>(
    mut publication: P,
    message: &'a [u8],
    plan: &'a Plan,
) -> Publisher<'a> {
    Box::new(move |run| {
        publisher::publish(&mut publication, message, &mut plan.idle.new_strategy(), run)
    })
}

fn in_batches<'a, P: rusteron_client::Publisher + 'a>(
    mut publication: P,
    message: &'a [u8],
    plan: &'a Plan,
) -> Publisher<'a> {
    Box::new(move |run| {
        batches::publish(&mut publication, message, &mut plan.idle.new_strategy(), run)
    })
}

/// The loop of a subscriber. C and Java get the fragments of a message that is longer than one
/// fragment. So do the loops in Rust: no contender assembles them.
fn receive(
    contender: Contender,
    mut subscription: Subscription,
    is_fragmented: bool,
    plan: &Plan,
    run: &Run,
) -> Result<u64, PollError> {
    let mut idle = plan.idle.new_strategy();
    match contender {
        Contender::CProgram => c_loops::receive(subscription, plan, run),
        Contender::CFunctions => {
            subscriber::receive(&mut CSubscription(subscription), 0, plan, &mut idle, run)
        }
        _ if is_fragmented => {
            subscriber::receive(&mut Fragments(subscription), 0, plan, &mut idle, run)
        }
        Contender::RustBatches => {
            subscriber::receive(&mut Batches(subscription), 0, plan, &mut idle, run)
        }
        _ => subscriber::receive(&mut subscription, 0, plan, &mut idle, run),
    }
}

/// Whole seconds, rounded up: the unit of the sample's measurement.
fn seconds(duration: Duration) -> usize {
    duration.as_secs_f64().ceil() as usize
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

/// The rate in a line such as `Duration 1001ms - 54,995,204 messages - 1,759,846,528 payload
/// bytes`.
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
    fn lines_of_java_are_understood() {
        let line = "Duration 1250ms - 50,000,000 messages - 1,600,000,000 payload bytes";
        assert_eq!(parse_sample_rate(line), Some(40e6));
        for line in ["", "Duration 0ms - 0 messages", "Publisher back pressure ratio: 0.1"] {
            assert_eq!(parse_sample_rate(line), None);
        }
        assert_eq!(check_sum("done 2 64", 32), Ok(()));
        for line in ["done 2 63", "done 2", "x"] {
            assert!(check_sum(line, 32).is_err(), "{line}");
        }
    }
}
