//! A cluster on this machine, whose members echo and are groups of processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rusteron_client::CncFile;
use rusteron_core::program::Failure;
use rusteron_test_support::cluster::Ports;
use rusteron_test_support::programs::Process;
use tempfile::TempDir;

use crate::processes::archive_process::start_archiving_media_driver;
use crate::processes::cores::Cores;
use crate::processes::environment::Environment;
use crate::processes::process_usage;
use crate::processes::program::{own_program, temporary_dir};

/// How long a process may be silent, and a member may take to lead.
const DEADLINE: Duration = Duration::from_secs(60);

/// How often a wait for a member looks whether it is ready.
const TICK: Duration = Duration::from_millis(10);

/// The types of a member's counters for its role and its election, and their values when the member
/// leads.
const LEADS: [(i32, i64); 2] = [(201, 2), (207, 17)];

/// The settings of all members.
const PROPERTIES: [&str; 7] = [
    "threading.mode=SHARED",
    "archive.threading.mode=SHARED",
    "archive.recording.events.enabled=false",
    "archive.replication.channel=aeron:udp?endpoint=localhost:0",
    "cluster.replication.channel=aeron:udp?endpoint=localhost:0",
    "cluster.ingress.channel=aeron:udp",
    "cluster.ingress.ipc.allowed=true",
];

/// The processes of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member<'a> {
    /// Driver, archive, consensus module and service in one Java machine.
    Java,
    /// The same with the service in another Java machine.
    JavaService,
    /// The same with a service in Rust.
    RustService,
    /// Our `archiving_media_driver` at a path, the consensus module in a Java machine, and a
    /// service in Rust.
    Rust(&'a Path),
}

/// The members of a cluster, in directories of their own, which go with them.
#[derive(Debug)]
pub struct ClusterMembers {
    members: Vec<Processes>,
    ingress_endpoints: String,
}

#[derive(Debug)]
struct Processes {
    // Dropped in this order.
    programs: Vec<Process>,
    dir: TempDir,
}

impl ClusterMembers {
    /// Starts members whose threads idle by a strategy, with further properties. They elect a
    /// leader by themselves. `cores` are for members whose driver, archive and consensus module are
    /// in one Java machine.
    ///
    /// # Errors
    /// [`Failure::Run`] if a process cannot be started; [`Failure::Interrupted`].
    pub fn start(
        member: Member<'_>,
        count: usize,
        idle: &str,
        properties: &[&str],
        cores: Cores,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let ports: Vec<_> = (0..count).map(|_| Ports::new()).collect();
        let start = |id| {
            let dir = temporary_dir(None)?;
            let mut options = vec![format!("-Daeron.dir={}", dir.path().join("driver").display())];
            options.extend(
                Ports::properties(&ports, id, dir.path()).map(|property| format!("-D{property}")),
            );
            options.extend(
                ["shared", "archive", "cluster"]
                    .map(|it| format!("-Daeron.{it}.idle.strategy={idle}")),
            );
            options.extend(PROPERTIES.iter().chain(properties).map(|it| format!("-Daeron.{it}")));
            Processes::start(member, dir, &options, idle, cores, environment)
        };
        let members = (0..count).map(start).collect::<Result<_, _>>()?;
        Ok(Self { members, ingress_endpoints: Ports::ingress_endpoints(&ports) })
    }

    /// Waits until the only member leads.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not; [`Failure::Interrupted`].
    pub fn await_leader(&mut self, environment: &Environment) -> Result<(), Failure> {
        let deadline = Instant::now() + DEADLINE;
        let leads = |cnc: CncFile| {
            LEADS.iter().all(|&(type_id, value)| {
                cnc.counters().iter().any(|it| it.type_id == type_id && it.value == value)
            })
        };
        while !CncFile::open(self.aeron_dir(), Duration::ZERO).is_ok_and(leads) {
            self.check()?;
            if Instant::now() >= deadline {
                return Err(Failure::Run("the member does not lead".to_owned()));
            }
            environment.sleep(TICK)?;
        }
        Ok(())
    }

    /// The members' ids and UDP endpoints for clients, as in the setting of a client.
    pub fn ingress_endpoints(&self) -> &str {
        &self.ingress_endpoints
    }

    /// Where the media driver of the first member is.
    pub fn aeron_dir(&self) -> PathBuf {
        self.members[0].dir.path().join("driver")
    }

    /// The last process of the first member.
    pub fn last_pid(&self) -> Option<u32> {
        self.members[0].programs.last().map(Process::pid)
    }

    /// Kills all processes of a member.
    pub fn kill(&mut self, member_id: usize) {
        if let Some(member) = self.members.get_mut(member_id) {
            member.programs.clear();
        }
    }

    /// The memory of each process of a member in bytes, without the files that all share: the means
    /// of all members, in the order in which [`Member`] lists the processes.
    ///
    /// # Errors
    /// [`Failure::Run`] if a process is gone, or this is not Linux.
    pub fn mean_private(&self) -> Result<Vec<f64>, Failure> {
        let mean = |index: usize| {
            let programs = self.members.iter().filter_map(|member| member.programs.get(index));
            let bytes = programs
                .map(|program| process_usage::proportional(program.pid()))
                .sum::<Result<u64, Failure>>()?;
            Ok(bytes as f64 / self.members.len() as f64)
        };
        (0..self.members[0].programs.len()).map(mean).collect()
    }

    /// Makes sure that all processes still run.
    ///
    /// # Errors
    /// [`Failure::Run`] with the standard error of one that does not.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.members.iter_mut().flat_map(|it| &mut it.programs).try_for_each(Process::check)
    }
}

impl Processes {
    fn start(
        member: Member<'_>,
        dir: TempDir,
        options: &[String],
        idle: &str,
        cores: Cores,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let java = environment.java()?;
        let service = || start_service(idle, dir.path());
        let programs = if let Member::Rust(archiving_media_driver) = member {
            vec![
                start_archiving_media_driver(archiving_media_driver, options)?,
                java.start("io.aeron.cluster.ConsensusModule", options, &[], DEADLINE)?,
                service()?,
            ]
        } else {
            let embedded = if member == Member::Java { "EchoService" } else { "none" };
            let arguments = [embedded, "stdin"].map(str::to_owned);
            let start = || java.start("cluster/Node.java", options, &arguments, DEADLINE);
            let mut node = cores.start_member(start)?;
            if member == Member::Java {
                vec![node]
            } else {
                while !node.line(&environment.interrupt)?.ends_with(" started") {}
                let arguments = ["EchoService".to_owned()];
                let service = match member {
                    Member::RustService => service()?,
                    _ => java.start("cluster/Container.java", options, &arguments, DEADLINE)?,
                };
                vec![node, service]
            }
        };
        Ok(Self { programs, dir })
    }
}

/// Starts the echo service in Rust beside a member.
fn start_service(idle: &str, dir: &Path) -> Result<Process, Failure> {
    let mut command = Command::new(own_program()?);
    command.args(["echo-service", idle]).args(["driver", "cluster"].map(|name| dir.join(name)));
    Process::start("service in Rust", command, DEADLINE)
}
