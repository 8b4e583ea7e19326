//! Round trips through a cluster of one member.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use hdrhistogram::Histogram;
use rusteron_client::{Aeron, IdleStrategy, IdleStrategyKind, OfferError};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

use super::comparison::{Case, Comparison, percentiles};
use crate::command_line::choice::{Language, Transport, display_in_words, idle_strategy};
use crate::command_line::run_options::{RunOptions, distinct};
use crate::contenders::ping_pong;
use crate::measuring::connection::Connection;
use crate::processes::cluster_node::ClusterNode;
use crate::processes::cores::Cores;
use crate::processes::java::{self, Java};
use crate::processes::process_usage;

/// A client or a service, which alone differs from the others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Contender {
    /// A client in Rust; the service is a thread of the member
    RustClient,
    /// Aeron's client; the service is a thread of the member
    JavaClient,
    /// A service in Rust, in a process of its own; the client is in Rust
    RustService,
    /// Aeron's service, in a process of its own; the client is in Rust
    JavaService,
}
display_in_words!(Contender);

impl Contender {
    fn client(self) -> Language {
        if self == Self::JavaClient { Language::Java } else { Language::Rust }
    }

    fn service(self) -> Option<Language> {
        match self {
            Self::RustClient | Self::JavaClient => None,
            Self::RustService => Some(Language::Rust),
            Self::JavaService => Some(Language::Java),
        }
    }
}

/// Compares round trips through a cluster of one Java member with an echo service, and their rate: clients in Rust and
/// Java, and services in Rust and Java.
///
/// Each run starts a member anew, with driver, archive and consensus module in one process, and warms it up. A message
/// is answered when the member has recorded it and its service has processed it. With a window of 1, a client sends the
/// next message after the answer. With a larger window, the rate is that of the whole way. Needs Java.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("warmup", |arg| arg.default_value("1s")),
    mut_arg("measure", |arg| arg.default_value("3s"))
)]
pub struct ClusterOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust-client,java-client,rust-service,java-service"
    )]
    contenders: Vec<Contender>,

    /// Transports of ingress and egress, separated by commas
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "udp,ipc")]
    transports: Vec<Transport>,

    /// How many messages wait for their answers at the most, separated by commas
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_delimiter = ',', num_args = 1,
          default_value = "1,256", value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000))]
    windows: Vec<u64>,

    /// Length of each message in bytes, from 8 to 1024
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1024))]
    message_length: usize,

    /// Idle strategy of the client's loop
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    idle: IdleStrategyKind,

    /// Idle strategy of all threads of the member, and of a service in a process of its own
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    node_idle: IdleStrategyKind,

    /// Cores of the member's process, and of all else
    #[arg(long, value_name = "CORES", default_value = "shared")]
    cores: Cores,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`] for everything
/// else.
pub fn run(options: &ClusterOptions) -> Result<(), Failure> {
    let mut comparison = Comparison::start("cluster", &options.run)?;
    let interrupt = comparison.interrupt();
    let java = comparison.require_java()?;
    let mut cases = Vec::new();
    for transport in distinct(&options.transports) {
        for window in distinct(&options.windows) {
            cases.push(Case {
                name: format!("{}, window {window}", transport.name()),
                conditions: (transport, window),
                contenders: distinct(&options.contenders),
            });
        }
    }
    comparison.compare(&cases, |&(transport, window), contender| {
        let idle = options.node_idle.name();
        let mut node =
            ClusterNode::start(&java, idle, options.cores, contender.service(), &interrupt)?;
        let (aeron_dir, ingress_endpoints) = (node.aeron_dir(), node.ingress_endpoints());
        let connection = Connection::to_driver(&aeron_dir)?;
        let bench = Bench {
            aeron: connection.aeron(),
            aeron_dir: &aeron_dir,
            ingress_endpoints: &ingress_endpoints,
            java: &java,
            interrupt: &interrupt,
        };
        let plan = Plan {
            transport,
            message_length: options.message_length,
            window,
            idle: options.idle,
            warmup: options.run.warmup_with(contender.client() == Language::Java),
            measure: options.run.measure,
        };
        // The Java machines of member and service get ready.
        let warm_up = Plan { measure: options.run.java_warmup, ..plan };
        let measured = bench
            .measure(Language::Rust, &warm_up)
            .and_then(|_| bench.measure(contender.client(), &plan));
        // If a process has ended, its own words say more.
        node.check()?;
        let outcome = measured.map_err(|failure| connection.explain(failure))?;
        let mut figures = vec![("answers/s", outcome.rate)];
        figures.extend(percentiles(&outcome.round_trips));
        // Where the system has no /proc, the memory is left out.
        if let Some((resident, shared)) =
            node.service().and_then(|service| process_usage::resident(service.pid()).ok())
        {
            figures.push(("private MiB", (resident - shared) as f64 / f64::from(1 << 20)));
        }
        Ok(figures)
    })?;
    comparison.finish()
}

/// How many fragments a poll receives at the most, as in Java's client.
const FRAGMENT_LIMIT: usize = 10;

/// How long a message may be on its way before that is an error.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A run: its messages and its duration.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// The way of the messages.
    transport: Transport,
    /// The length of each message in bytes, at least 8.
    message_length: usize,
    /// How many messages wait for their answers at the most.
    window: u64,
    /// Idle strategy of the client's loop.
    idle: IdleStrategyKind,
    /// How long to run before measuring.
    warmup: Duration,
    /// How long to measure.
    measure: Duration,
}

/// The measurements of a run.
#[derive(Debug, Clone)]
struct Outcome {
    /// Times from before the offer to the answer, in nanoseconds.
    round_trips: Histogram<u64>,
    /// Answers per second.
    rate: f64,
}

impl Outcome {
    fn new(round_trips: Histogram<u64>, answers: u64, elapsed: Duration) -> Self {
        Self { round_trips, rate: answers as f64 / elapsed.as_secs_f64().max(1e-9) }
    }
}

/// The member and the programs that runs are made with.
#[derive(Debug)]
struct Bench<'a> {
    /// A client of the member's media driver.
    aeron: &'a Aeron,
    /// Where that driver is.
    aeron_dir: &'a Path,
    /// The member's endpoint for clients over UDP.
    ingress_endpoints: &'a str,
    java: &'a Java,
    interrupt: &'a ShutdownSignal,
}

impl Bench<'_> {
    /// Opens a session and runs once.
    fn measure(&self, client: Language, plan: &Plan) -> Result<Outcome, Failure> {
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
        let [ingress, egress] = Self::channels(plan.transport);
        let mut context = ClusterContext::new();
        context
            .set_ingress_channel(ingress)?
            .set_egress_channel(egress)?
            .set_message_timeout(TIMEOUT)?;
        if plan.transport == Transport::Udp {
            context.set_ingress_endpoints(self.ingress_endpoints.parse()?)?;
        }
        let mut client = ClusterClient::connect(self.aeron, context)?;
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
            if self.interrupt.is_signalled() {
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
        while answers.received < sent && !self.interrupt.is_signalled() {
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
