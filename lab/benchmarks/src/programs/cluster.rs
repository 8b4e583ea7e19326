//! Round trips through a cluster of one member.

use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::RangedU64ValueParser;
use hdrhistogram::Histogram;
use rusteron_client::{IdleStrategy, IdleStrategyKind, OfferError};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

use super::comparison::{Comparison, cases, pairs, percentiles};
use crate::command_line::choice::{Contender, Transport, among};
use crate::command_line::run_options::RunOptions;
use crate::contenders::ping_pong;
use crate::measuring::connection::Connection;
use crate::measuring::measurement::{FRAGMENT_LIMIT, Plan};
use crate::processes::cluster_members::{ClusterMembers, Member};
use crate::processes::cores::Cores;
use crate::processes::environment::Environment;
use crate::processes::java;
use crate::processes::process_usage::Usage;

/// How all threads of the client, the member and the service idle.
const IDLE: IdleStrategyKind = IdleStrategyKind::Yielding;

/// How long a message may be on its way before that is an error.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Compares round trips of 32 bytes through a cluster of one Java member with an echo service, and
/// their rate: clients in Rust and Java, and services in Rust and Java.
///
/// Each run starts a member anew, with driver, archive and consensus module in one process, and
/// warms it up. If clients are compared, the service is a thread of the member; a service that is
/// compared is a process of its own, and its client is in Rust. A message is answered when the
/// member has recorded it and its service has processed it. With a window of 1, a client sends the
/// next message after the answer. With a larger window, the rate is that of the whole way. All
/// loops yield. Needs Java.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("warmup", |arg| arg.default_value("1s")),
    mut_arg("measure", |arg| arg.default_value("3s"))
)]
pub struct ClusterOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',',
          default_value = "rust-client,java-client,rust-service,java-service",
          value_parser = among("rust-client,java-client,rust-service,java-service"))]
    contenders: Vec<Contender>,

    /// Transports of ingress and egress, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "udp,ipc")]
    transports: Vec<Transport>,

    /// How many messages wait for their answers at the most, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,256",
          value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000))]
    windows: Vec<u64>,

    /// Cores of the member's process, and of all else
    #[arg(long, value_name = "CORES", default_value = "shared")]
    cores: Cores,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &ClusterOptions) -> Result<(), Failure> {
    let comparison = Comparison::start_with_java("cluster", &options.run, &options.contenders)?;
    let environment = comparison.environment.clone();
    let name = |&(transport, window): &(Transport, u64)| format!("{transport}, window {window}");
    let conditions = pairs(&options.transports, &options.windows);
    let cases = cases(conditions, name, &comparison.contenders);
    comparison.compare(&cases, |&(transport, window), contender, _| {
        let (client, member) = match contender {
            Contender::JavaClient => (Contender::Java, Member::Java),
            Contender::RustService => (Contender::Rust, Member::RustService),
            Contender::JavaService => (Contender::Rust, Member::JavaService),
            _ => (Contender::Rust, Member::Java),
        };
        let mut members =
            ClusterMembers::start(member, 1, IDLE.name(), &[], options.cores, &environment)?;
        members.await_leader(&environment)?;
        let connection = Connection::to_driver(&members.aeron_dir())?;
        let bench = Bench {
            connection: &connection,
            members: &members,
            environment: &environment,
            transport,
            window,
        };
        let plan = environment.plan(client, 32, IDLE, TIMEOUT);
        // The Java machines of member and service get ready.
        let warm_up = Plan { measure: options.run.java_warmup, ..plan };
        let measured = bench.measure_rust(&warm_up).and_then(|_| match client {
            Contender::Java => bench.measure_java(&plan),
            _ => bench.measure_rust(&plan),
        });
        // If a process has ended, its own words say more.
        members.check()?;
        let (round_trips, answers, elapsed) =
            measured.map_err(|failure| connection.explain(failure))?;
        let mut figures = vec![("answers/s", answers as f64 / elapsed.as_secs_f64().max(1e-9))];
        figures.extend(percentiles(&round_trips));
        // Where the system has no /proc, the memory is left out.
        let service = members.last_pid().filter(|_| member != Member::Java);
        if let Some(usage) = service.and_then(|pid| Usage::of(pid).ok()) {
            figures.push(("private MiB", usage.private));
        }
        Ok(figures)
    })
}

/// Times from before the offer to the answer in nanoseconds, the answers that were counted, and in
/// what time.
type Outcome = (Histogram<u64>, u64, Duration);

/// The member, and the conditions of a run.
#[derive(Debug)]
struct Bench<'a> {
    /// A client of the member's media driver.
    connection: &'a Connection,
    members: &'a ClusterMembers,
    environment: &'a Environment,
    /// The way of the messages.
    transport: Transport,
    /// How many messages wait for their answers at the most.
    window: u64,
}

impl Bench<'_> {
    /// The channels of ingress and egress.
    fn channels(&self) -> [&'static str; 2] {
        match self.transport {
            Transport::Ipc => ["aeron:ipc", "aeron:ipc"],
            Transport::Udp => ["aeron:udp", "aeron:udp?endpoint=localhost:0"],
        }
    }

    fn measure_rust(&self, plan: &Plan) -> Result<Outcome, Failure> {
        let [ingress, egress] = self.channels();
        let mut context = ClusterContext::new();
        context
            .set_ingress_channel(ingress)?
            .set_egress_channel(egress)?
            .set_message_timeout(TIMEOUT)?;
        if self.transport == Transport::Udp {
            context.set_ingress_endpoints(self.members.ingress_endpoints().parse()?)?;
        }
        let mut client = ClusterClient::connect(self.connection.aeron(), context)?;
        exchange(&mut client, plan, self.window, &self.environment.interrupt)
    }

    fn measure_java(&self, plan: &Plan) -> Result<Outcome, Failure> {
        let [ingress, egress] = self.channels();
        let endpoints = match self.transport {
            Transport::Ipc => "-",
            Transport::Udp => self.members.ingress_endpoints(),
        };
        let arguments = [
            self.members.aeron_dir().display().to_string(),
            ingress.to_owned(),
            endpoints.to_owned(),
            egress.to_owned(),
            plan.idle.name().to_owned(),
            plan.message_length.to_string(),
            self.window.to_string(),
            plan.warmup.as_nanos().to_string(),
            plan.measure.as_nanos().to_string(),
        ];
        let timeout = TIMEOUT + plan.warmup + plan.measure;
        let (java, interrupt) = (self.environment.java()?, &self.environment.interrupt);
        let mut program =
            java.start("benchmarks/ClusterPingPong.java", &[], &arguments, timeout)?;
        let (histogram, done) = ping_pong::read_histogram(&mut program, interrupt)?;
        let mut fields = done.split(' ').skip(1);
        let answers = java::number(&done, fields.next())?;
        let elapsed = Duration::from_nanos(java::number(&done, fields.next())?);
        program.finish(interrupt)?;
        Ok((histogram, answers, elapsed))
    }
}

/// The same loop as in `java/benchmarks/ClusterPingPong.java`.
fn exchange(
    client: &mut ClusterClient,
    plan: &Plan,
    window: u64,
    interrupt: &ShutdownSignal,
) -> Result<Outcome, Failure> {
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
        if interrupt.is_signalled() {
            return Err(Failure::Interrupted);
        }
        if now >= end && !answers.round_trips.is_empty() {
            break;
        }
        if now >= plan.warmup {
            first.get_or_insert(answers.received);
        }
        let mut work = 0;
        while sent - answers.received < window {
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
    while answers.received < sent && !interrupt.is_signalled() {
        idle.idle(answers.poll(client)?);
    }
    Ok((answers.round_trips, counted, elapsed))
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
