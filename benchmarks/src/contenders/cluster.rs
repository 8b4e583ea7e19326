//! Clients of a cluster: round trips through the log of a member, and their rate.

use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rusteron_client::{Aeron, IdleStrategy, IdleStrategyKind, OfferError};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress};

use crate::command_line::choice::{Language, Transport};
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::contenders::ping_pong;
use crate::processes::java::{self, Java};

/// How many fragments a poll receives at the most, as in Java's client.
const FRAGMENT_LIMIT: usize = 10;

/// How long a message may be on its way before that is an error.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A run: its messages and its duration.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The way of the messages.
    pub transport: Transport,
    /// The length of each message in bytes, at least 8.
    pub message_length: usize,
    /// How many messages wait for their answers at the most.
    pub window: u64,
    /// Idle strategy of the client's loop.
    pub idle: IdleStrategyKind,
    /// How long to run before measuring.
    pub warmup: Duration,
    /// How long to measure.
    pub measure: Duration,
}

/// The measurements of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Times from before the offer to the answer, in nanoseconds.
    pub round_trips: Histogram<u64>,
    /// Answers per second.
    pub rate: f64,
}

impl Outcome {
    fn new(round_trips: Histogram<u64>, answers: u64, elapsed: Duration) -> Self {
        Self { round_trips, rate: answers as f64 / elapsed.as_secs_f64().max(1e-9) }
    }
}

/// The member and the programs that runs are made with.
#[derive(Debug)]
pub struct Bench<'a> {
    /// A client of the member's media driver.
    pub aeron: &'a Aeron,
    /// Where that driver is.
    pub aeron_dir: &'a Path,
    /// The member's endpoint for clients over UDP.
    pub ingress_endpoints: &'a str,
    /// Java.
    pub java: &'a Java,
    /// Ends a run early.
    pub interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// Opens a session and runs once.
    ///
    /// # Errors
    /// [`Failure::Run`] if anything fails; [`Failure::Interrupted`].
    pub fn measure(&self, client: Language, plan: &Plan) -> Result<Outcome, Failure> {
        match client {
            Language::Rust => self.measure_rust(plan),
            Language::Java => self.measure_java(plan),
        }
    }

    /// The channels of ingress and egress.
    fn channels(transport: Transport) -> [&'static str; 2] {
        match transport {
            Transport::Ipc => ["aeron:ipc", "aeron:ipc"],
            Transport::Udp => ["aeron:udp", "aeron:udp?endpoint=localhost:0"],
        }
    }

    fn measure_rust(&self, plan: &Plan) -> Result<Outcome, Failure> {
        let failed = |error: rusteron_cluster::ClusterError| Failure::run("cluster client", error);
        let [ingress, egress] = Self::channels(plan.transport);
        let mut context = ClusterContext::new();
        context
            .set_ingress_channel(ingress)
            .set_egress_channel(egress)
            .set_message_timeout(TIMEOUT);
        if plan.transport == Transport::Udp {
            context.set_ingress_endpoints(self.ingress_endpoints.parse().map_err(failed)?);
        }
        let mut client = ClusterClient::connect(self.aeron, context).map_err(failed)?;
        self.run(&mut client, plan)
    }

    /// The same loop as in `java/benchmarks/ClusterPingPong.java`.
    fn run(&self, client: &mut ClusterClient, plan: &Plan) -> Result<Outcome, Failure> {
        let mut idle = plan.idle.new_strategy();
        let mut message = vec![0; plan.message_length];
        let mut sent = 0;
        let mut answers = Answers {
            start: Instant::now(),
            measure_from: plan.warmup,
            round_trips: ping_pong::histogram()?,
            received: 0,
        };
        let end = plan.warmup + plan.measure;
        let mut first = None;
        let mut last_work = Duration::ZERO;
        loop {
            let now = answers.start.elapsed();
            if self.interrupt.is_requested() {
                return Err(Failure::Interrupted);
            }
            if now >= end && !answers.round_trips.is_empty() {
                break;
            }
            if now >= plan.warmup {
                first.get_or_insert(answers.received);
            }
            let mut work = 0;
            while sent - answers.received < plan.window {
                let time = answers.start.elapsed().as_nanos() as u64;
                message[..size_of::<u64>()].copy_from_slice(&time.to_le_bytes());
                match client.offer(&message) {
                    Ok(_) => (),
                    Err(OfferError::BackPressured | OfferError::AdminAction) => break,
                    Err(error) => return Err(Failure::run("cannot offer to the cluster", error)),
                }
                sent += 1;
                work += 1;
            }
            work += answers.poll(client)?;
            if work > 0 {
                last_work = now;
            } else if now - last_work > TIMEOUT {
                return Err(Failure::Run("the cluster does not answer".to_owned()));
            }
            idle.idle(work);
        }
        let counted = answers.received - first.unwrap_or(0);
        let elapsed = answers.start.elapsed().saturating_sub(plan.warmup);
        while answers.received < sent && !self.interrupt.is_requested() {
            idle.idle(answers.poll(client)?);
        }
        Ok(Outcome::new(answers.round_trips, counted, elapsed))
    }

    fn measure_java(&self, plan: &Plan) -> Result<Outcome, Failure> {
        let [ingress, egress] = Self::channels(plan.transport);
        let endpoints = match plan.transport {
            Transport::Ipc => "-",
            Transport::Udp => self.ingress_endpoints,
        };
        let arguments = [
            self.aeron_dir.display().to_string(),
            ingress.to_owned(),
            endpoints.to_owned(),
            egress.to_owned(),
            plan.idle.name().to_owned(),
            plan.message_length.to_string(),
            plan.window.to_string(),
            plan.warmup.as_nanos().to_string(),
            plan.measure.as_nanos().to_string(),
        ];
        let timeout = TIMEOUT + plan.warmup + plan.measure;
        let mut program =
            self.java.start("benchmarks/ClusterPingPong.java", &[], &arguments, timeout)?;
        let (histogram, done) = ping_pong::read_histogram(&mut program, self.interrupt)?;
        let mut fields = done.split(' ').skip(1);
        let answers = java::number(&done, fields.next())?;
        let elapsed = Duration::from_nanos(java::number(&done, fields.next())?);
        program.finish(self.interrupt)?;
        Ok(Outcome::new(histogram, answers, elapsed))
    }
}

/// The answers of a run in Rust.
struct Answers {
    start: Instant,
    measure_from: Duration,
    round_trips: Histogram<u64>,
    received: u64,
}

impl Answers {
    fn poll(&mut self, client: &mut ClusterClient) -> Result<usize, Failure> {
        let handler = |_: &mut _, event: Egress<'_>| {
            let Egress::Message { payload, .. } = event else { return };
            let Some(sent_at) = payload.first_chunk().map(|it| u64::from_le_bytes(*it)) else {
                return;
            };
            let sent_at = Duration::from_nanos(sent_at);
            if sent_at >= self.measure_from {
                let round_trip = self.start.elapsed().saturating_sub(sent_at);
                self.round_trips.saturating_record((round_trip.as_nanos() as u64).max(1));
            }
            self.received += 1;
        };
        client
            .poll_egress(handler, FRAGMENT_LIMIT)
            .map_err(|error| Failure::run("cannot poll the egress", error))
    }
}
