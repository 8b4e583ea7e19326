//! A cluster of one Java member with an echo service, as a process of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::measuring::endpoints;
use crate::processes::java::Java;
use crate::processes::program::Program;

/// How long the member may take to start.
const DEADLINE: Duration = Duration::from_secs(60);

/// A member in directories of its own, which go with it.
#[derive(Debug)]
pub struct ClusterNode {
    // Dropped in this order.
    program: Program,
    dir: TempDir,
    ingress: String,
}

impl ClusterNode {
    /// Starts a member whose threads idle by a strategy, and waits until it leads. Interrupts end the wait.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not start; [`Failure::Interrupted`].
    pub fn start(java: &Java, idle: &str, interrupt: &Interrupt) -> Result<Self, Failure> {
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let dir = tempfile::Builder::new().prefix("rusteron-cluster-").tempdir_in(&base).map_err(
            |error| Failure::run(format_args!("no directory in {}", base.display()), error),
        )?;
        let [archive, ingress, consensus, log] = endpoints::free_endpoints::<4>()?;
        let path = |name: &str| dir.path().join(name).display().to_string();
        let options = [
            format!("aeron.dir={}", path("driver")),
            format!("aeron.archive.dir={}", path("archive")),
            format!("aeron.cluster.dir={}", path("cluster")),
            format!("aeron.archive.control.channel=aeron:udp?endpoint={archive}"),
            format!("aeron.cluster.members=0,{ingress},{consensus},{log},localhost:0,{archive}"),
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
            "aeron.cluster.member.id=0".to_owned(),
        ]
        .map(|property| format!("-D{property}"));
        let arguments = ["EchoService", "stdin"].map(str::to_owned);
        let program = java.start("cluster/Node.java", &options, &arguments, DEADLINE)?;
        let mut node = Self { program, dir, ingress };
        while let Some(line) = node.program.line(interrupt)? {
            if line.ends_with("is LEADER") {
                return Ok(node);
            }
        }
        Err(Failure::Interrupted)
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
        self.program.check()
    }
}
