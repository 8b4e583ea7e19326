//! A cluster of one Java member with an echo service, as processes of their own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rusteron_client::CncFile;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;

use tempfile::TempDir;

use crate::command_line::choice::Language;
use crate::measuring::connection::free_endpoints;
use crate::processes::cores::Cores;
use crate::processes::java::Java;

/// How long the member may take to start.
const DEADLINE: Duration = Duration::from_secs(60);

/// How often a wait for the member looks whether it is ready.
const TICK: Duration = Duration::from_millis(10);

/// The types of the member's counters for its role and its election, and their values when the member leads.
const LEADS: [(i32, i64); 2] = [(201, 2), (207, 17)];

/// A member in directories of its own, which go with it.
#[derive(Debug)]
pub struct ClusterNode {
    // Dropped in this order.
    service: Option<Process>,
    program: Process,
    dir: TempDir,
    ingress: String,
}

impl ClusterNode {
    /// Starts a member whose threads idle by a strategy, and waits until it leads. The echo service is one of the member's
    /// threads in Java, or a process of its own in a language.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not start; [`Failure::Interrupted`].
    pub fn start(
        java: &Java,
        idle: &str,
        cores: Cores,
        service: Option<Language>,
        interrupt: &ShutdownSignal,
    ) -> Result<Self, Failure> {
        let embedded = if service.is_none() { "EchoService" } else { "none" };
        let mut node = cores.start_member(|| Self::launch(java, idle, embedded))?;
        while !node.program.line(interrupt)?.ok_or(Failure::Interrupted)?.ends_with(" started") {}
        let dirs = [node.aeron_dir(), node.dir.path().join("cluster")];
        node.service = match service {
            None => None,
            Some(Language::Java) => {
                let [aeron, cluster] = dirs.map(|dir| dir.display().to_string());
                let options = [
                    format!("-Daeron.dir={aeron}"),
                    format!("-Daeron.cluster.dir={cluster}"),
                    format!("-Daeron.cluster.idle.strategy={idle}"),
                ];
                let arguments = ["EchoService".to_owned()];
                Some(java.start("cluster/Container.java", &options, &arguments, DEADLINE)?)
            }
            Some(Language::Rust) => Some(start_service(idle, &dirs[0], &dirs[1])?),
        };
        let start = Instant::now();
        while !node.leads() {
            node.check()?;
            if start.elapsed() >= DEADLINE {
                return Err(Failure::Run("the member does not lead".to_owned()));
            }
            if interrupt.wait_timeout(TICK) {
                return Err(Failure::Interrupted);
            }
        }
        Ok(node)
    }

    fn leads(&self) -> bool {
        let Ok(cnc) = CncFile::open(self.aeron_dir(), Duration::ZERO) else { return false };
        LEADS.iter().all(|&(type_id, value)| {
            cnc.counters().iter().any(|it| it.type_id == type_id && it.value == value)
        })
    }

    fn launch(java: &Java, idle: &str, service: &str) -> Result<Self, Failure> {
        let dir = member_dir()?;
        let [archive, ingress, consensus, log] = free_endpoints::<4>()?;
        let members = format!("0,{ingress},{consensus},{log},localhost:0,{archive}");
        let options = member_options(dir.path(), 0, &members, &archive, idle);
        let arguments = [service, "stdin"].map(str::to_owned);
        let program = java.start("cluster/Node.java", &options, &arguments, DEADLINE)?;
        Ok(Self { service: None, program, dir, ingress })
    }

    /// The service, if it is a process of its own.
    pub fn service(&self) -> Option<&Process> {
        self.service.as_ref()
    }

    /// Where its media driver is.
    pub fn aeron_dir(&self) -> PathBuf {
        self.dir.path().join("driver")
    }

    /// The member's id and UDP endpoint for clients, as in the setting of a client.
    pub fn ingress_endpoints(&self) -> String {
        format!("0={}", self.ingress)
    }

    /// Makes sure that it still runs.
    ///
    /// # Errors
    /// [`Failure::Run`] with the member's standard error.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.service.as_mut().map_or(Ok(()), Process::check)?;
        self.program.check()
    }
}

/// A directory for a member's files, in memory if the system has such a place.
pub(super) fn member_dir() -> Result<TempDir, Failure> {
    let shm = Path::new("/dev/shm");
    let base = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new()
        .prefix("rusteron-cluster-")
        .tempdir_in(&base)
        .map_err(|error| Failure::run(format_args!("no directory in {}", base.display()), error))
}

/// The settings of all parts of a member, as options of a Java machine. `members` has the endpoints of all members, and
/// `archive` is that of this one's archive.
pub(super) fn member_options(
    dir: &Path,
    id: usize,
    members: &str,
    archive: &str,
    idle: &str,
) -> Vec<String> {
    let path = |name: &str| dir.join(name).display().to_string();
    [
        format!("aeron.dir={}", path("driver")),
        format!("aeron.archive.dir={}", path("archive")),
        format!("aeron.cluster.dir={}", path("cluster")),
        format!("aeron.archive.control.channel=aeron:udp?endpoint={archive}"),
        format!("aeron.cluster.members={members}"),
        format!("aeron.cluster.member.id={id}"),
        format!("aeron.shared.idle.strategy={idle}"),
        format!("aeron.archive.idle.strategy={idle}"),
        format!("aeron.cluster.idle.strategy={idle}"),
        "aeron.threading.mode=SHARED".to_owned(),
        "aeron.archive.threading.mode=SHARED".to_owned(),
        "aeron.archive.recording.events.enabled=false".to_owned(),
        "aeron.archive.replication.channel=aeron:udp?endpoint=localhost:0".to_owned(),
        "aeron.cluster.replication.channel=aeron:udp?endpoint=localhost:0".to_owned(),
        "aeron.cluster.ingress.channel=aeron:udp".to_owned(),
        "aeron.cluster.ingress.ipc.allowed=true".to_owned(),
    ]
    .map(|property| format!("-D{property}"))
    .into()
}

/// Starts the echo service in Rust beside a member.
pub(super) fn start_service(
    idle: &str,
    aeron_dir: &Path,
    cluster_dir: &Path,
) -> Result<Process, Failure> {
    let program = env::current_exe()
        .map_err(|error| Failure::run("cannot tell where this program is", error))?;
    let mut command = Command::new(program);
    command.args(["echo-service", idle]).args([aeron_dir, cluster_dir]);
    Process::start("service in Rust".to_owned(), command, DEADLINE)
}
