//! Memory and start of a cluster's members, and the time until a killed leader is replaced.

use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_cluster::{ClusterClient, ClusterContext, Egress};
use rusteron_core::program::Failure;
use rusteron_media_driver::DriverContext;

use super::comparison::{Comparison, cases};
use crate::command_line::choice::{Contender, among};
use crate::command_line::run_options::{self, RunOptions};
use crate::measuring::connection::Connection;
use crate::processes::archive_process::archiving_media_driver;
use crate::processes::cluster_members::{ClusterMembers, Member};
use crate::processes::cores::Cores;
use crate::processes::environment::Environment;
use crate::processes::process_usage::MEBIBYTE;
use crate::reports::results::Figure;

/// How long a cluster may take to answer.
const DEADLINE: Duration = Duration::from_secs(60);

/// How often a client sends while it waits for the answer to a message after a kill.
const INTERVAL: Duration = Duration::from_millis(1);

/// How often an idle client sends. The cluster closes a session after ten silent seconds.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// The settings that this benchmark adds to those of all members.
const PROPERTIES: [&str; 6] = [
    // A dead leader is missed early. Aeron's defaults are 10 s, 200 ms and 1 s.
    "cluster.leader.heartbeat.timeout=1s",
    "cluster.leader.heartbeat.interval=50ms",
    "cluster.election.timeout=500ms",
    "term.buffer.length=1m",
    "ipc.term.buffer.length=1m",
    "term.buffer.sparse.file=true",
];

/// Compares members of a cluster whose only Java machine has the consensus module, with members in
/// Java.
///
/// In Rust, a member is the program archiving_media_driver, a Java machine with the consensus
/// module, and a service in Rust; in Java, it is one Java machine. Each run starts a cluster anew:
/// the time from the first process to the first answer to a client, the memory of a member and of
/// each of its processes after the time of --measure, and, with several members, the time from the
/// kill of the leader's processes to the answer to a message that was sent later. A leader is
/// missed after a second, and an election waits half a second. The service echoes, and all threads
/// back off. Needs Java; Linux only.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("measure", |arg| arg.default_value("5s")))]
pub struct ClusterNodesOptions {
    /// The members, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', default_value = "rust,java",
          value_parser = among("rust,java"))]
    contenders: Vec<Contender>,

    /// How many members a cluster has, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,3",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=3))]
    members: Vec<usize>,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &ClusterNodesOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let archiving_media_driver = archiving_media_driver()?;
    let named = &options.contenders;
    let comparison = Comparison::start_with_java("cluster-nodes", &options.run, named)?;
    let environment = comparison.environment.clone();
    let counts = options.members.iter().copied();
    let cases = cases(counts, |count| format!("members: {count}"), &comparison.contenders);
    comparison.compare(&cases, |&count, contender, _| {
        let connection = Connection::embedded(DriverContext::new()?)?;
        let member = match contender {
            Contender::Java => Member::Java,
            _ => Member::Rust(&archiving_media_driver),
        };
        let (cores, start) = (Cores::Shared, Instant::now());
        let mut members =
            ClusterMembers::start(member, count, "backoff", &PROPERTIES, cores, &environment)?;
        let measured = Client::connect(&connection, &members, &environment)
            .and_then(|client| measure(client, &mut members, count, start));
        // If a process has ended, its own words say more.
        members.check()?;
        measured.map_err(|failure| connection.explain(failure))
    })
}

fn measure(
    mut client: Client<'_>,
    members: &mut ClusterMembers,
    count: usize,
    start: Instant,
) -> Result<Vec<Figure>, Failure> {
    client.await_answer()?;
    let started_in = start.elapsed();
    client.stay(client.environment.options.measure)?;
    let of_processes = members.mean_private()?;
    let private = of_processes.iter().sum::<f64>() / MEBIBYTE;
    let mut figures = vec![
        ("first answer ms", started_in.as_secs_f64() * 1e3),
        ("private MiB a member", private),
        ("members a GiB", 1024.0 / private),
    ];
    let names: &[_] = match of_processes.len() {
        1 => &["JVM MiB"],
        _ => &["archive MiB", "JVM MiB", "service MiB"],
    };
    figures.extend(names.iter().copied().zip(of_processes.iter().map(|bytes| bytes / MEBIBYTE)));
    if count > 1 {
        let leader = usize::try_from(client.session.leader_member_id().get());
        members.kill(leader.map_err(|error| Failure::run("no leader", error))?);
        let killed = Instant::now();
        client.await_answer()?;
        figures.push(("failover ms", killed.elapsed().as_secs_f64() * 1e3));
    }
    Ok(figures)
}

/// A client that has a media driver of its own, which no kill ends.
struct Client<'a> {
    session: ClusterClient,
    /// The number of the last message.
    sent: u64,
    environment: &'a Environment,
}

impl<'a> Client<'a> {
    /// Connects as soon as the cluster has a leader.
    fn connect(
        connection: &Connection,
        members: &ClusterMembers,
        environment: &'a Environment,
    ) -> Result<Self, Failure> {
        let start = Instant::now();
        loop {
            let mut context = ClusterContext::new();
            context
                .set_ingress_channel("aeron:udp")?
                .set_ingress_endpoints(members.ingress_endpoints().parse()?)?
                .set_egress_channel("aeron:udp?endpoint=localhost:0")?
                .set_message_timeout(DEADLINE)?
                .set_new_leader_timeout(Some(DEADLINE))?;
            match ClusterClient::connect(connection.aeron(), context) {
                Ok(session) => return Ok(Self { session, sent: 0, environment }),
                Err(error) if start.elapsed() > DEADLINE => {
                    return Err(Failure::run("cannot connect to the cluster", error));
                }
                Err(_) => environment.sleep(Duration::ZERO)?,
            }
        }
    }

    /// Keeps the session open for some time.
    fn stay(&mut self, duration: Duration) -> Result<(), Failure> {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            // Without a connection, it is sent a second later.
            let _ = self.session.send_keep_alive();
            self.session
                .poll_egress(|_, _| {}, 10)
                .map_err(|error| Failure::run("cannot poll the egress", error))?;
            let next = end.min(Instant::now() + KEEP_ALIVE_INTERVAL);
            self.environment.sleep(next.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }

    /// Sends messages until one of them is answered.
    fn await_answer(&mut self) -> Result<(), Failure> {
        let (start, first) = (Instant::now(), self.sent + 1);
        let mut answered = 0;
        while answered < first {
            if self.session.offer(&(self.sent + 1).to_le_bytes()).is_ok() {
                self.sent += 1;
            }
            let handler = |_: &mut _, event: Egress<'_>| {
                let Egress::Message { payload, .. } = event else { return };
                if let Some(number) = payload.first_chunk() {
                    answered = answered.max(u64::from_le_bytes(*number));
                }
            };
            self.session
                .poll_egress(handler, 10)
                .map_err(|error| Failure::run("cannot poll the egress", error))?;
            if start.elapsed() > DEADLINE {
                return Err(Failure::Run("the cluster does not answer".to_owned()));
            }
            self.environment.sleep(INTERVAL)?;
        }
        Ok(())
    }
}
