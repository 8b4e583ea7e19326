//! Ends of the processes around a container: each with its own cause.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rusteron_client::{CloseCause, CncFile};
use rusteron_cluster::codec::mark_file::{ENDED, MarkFileHeader, VERSION};
use rusteron_cluster::{ServiceContainer, ServiceContext, TerminationCause};
use rusteron_test_support::cluster::{AeronVersion, MemberArchive, Options, SERVICE_CLOSED_FIRST};
use rusteron_test_support::{ChildProcess, await_some, await_that, free_port, has_java, java_run};
use tempfile::TempDir;

use super::Node;
use super::probe::{Handle, Probe};

#[test]
fn killed_consensus_module_is_the_cause() {
    let Some(mut node) = SplitNode::launch() else { return };
    node.consensus_module.kill();
    assert_eq!(node.await_service(), TerminationCause::ConsensusModuleGone);
    node.assert_ended_in_order();
}

/// As a supervisor restarts it: beside the archive that has recorded for its predecessor.
#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn consensus_module_returns_to_its_archive() {
    let Some(mut node) = SplitNode::launch() else { return };
    for _ in 0..2 {
        node.consensus_module.kill();
        assert_eq!(node.await_service(), TerminationCause::ConsensusModuleGone);
        node.restart_module();
    }
}

#[test]
fn killed_driver_is_the_cause() {
    let Some(mut node) = SplitNode::launch() else { return };
    node.driver.kill();
    let cause = node.await_service();
    assert!(
        matches!(
            cause,
            TerminationCause::ClientClosed(
                CloseCause::DriverTimeout { .. } | CloseCause::DriverGone { .. }
            )
        ),
        "{cause:?}"
    );
    node.assert_ended_in_order();
}

#[test]
fn sigterm_of_the_member_ends_in_order() {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, service)) = node else { return };
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "echo before");
    node.cluster.node_mut(0).stop();
    let cause = node.await_service();
    // The consensus module closes before the media driver. A machine under load shows both at once.
    assert!(
        matches!(cause, TerminationCause::ConsensusModuleGone | TerminationCause::ClientClosed(_)),
        "{cause:?}"
    );
    assert_eq!((service.count("terminate"), service.count("snapshot")), (1, 0));
    let path = node.cluster.node(0).cluster_dir().join("cluster-mark-service-0.dat");
    let header = MarkFileHeader::decode(&fs::read(path).expect("a mark file"));
    let header = header.expect("a mark file");
    assert_eq!((header.version, header.activity_timestamp), (VERSION, ENDED));
    drop(client);
    let after = node.restart_probe();
    assert_eq!(after.count("echo before"), 1);
}

/// The fault campaign tells by this text which process of a member has ended first.
#[test]
fn stopped_service_is_the_modules_reason() {
    stop_service(AeronVersion::Maven);
}

#[test]
#[ignore = "compiles Aeron's Java code of the C release first; `just test-cluster` runs it"]
fn stopped_service_ends_a_compiled_module() {
    stop_service(AeronVersion::Compiled);
}

fn stop_service(version: AeronVersion) {
    let options = Options { versions: vec![version], ..Options::default() };
    let Some(mut node) = Node::launch_with(options, ServiceContext::new()) else { return };
    drop(node.container.take());
    let member = node.cluster.node_mut(0);
    member.await_end();
    let log = member.log();
    assert!(log.contains(SERVICE_CLOSED_FIRST), "{log}");
}

/// The roles of services, and the leader's.
const ROLE: i32 = 201;
/// A consensus module waits for its services.
const RECOVERY: i32 = 204;
const LEADER: i64 = 2;

/// A member whose consensus module, media driver and archive are different processes, and a service of ours.
pub(super) struct SplitNode {
    container: Option<ServiceContainer>,
    service: Handle,
    properties: Vec<String>,
    pub(super) consensus_module: ChildProcess,
    /// `None` if it is in the driver's process.
    _archive: Option<ChildProcess>,
    pub(super) driver: ChildProcess,
    root: TempDir,
}

impl SplitNode {
    /// Starts the processes, and waits until the member leads. `None` without Java.
    pub(super) fn launch() -> Option<Self> {
        if !has_java() {
            return None;
        }
        let base = Path::new("/dev/shm");
        let mut builder = tempfile::Builder::new();
        builder.prefix("rusteron-split-node-");
        let root = if base.is_dir() { builder.tempdir_in(base) } else { builder.tempdir() };
        let root = root.expect("a directory");
        let [ingress, consensus, log, archive] = std::array::from_fn(|_| free_port());
        let path = |name: &str| root.path().join(name).display().to_string();
        let properties = vec![
            format!("aeron.dir={}", path("driver")),
            "aeron.dir.delete.on.start=true".to_owned(),
            "aeron.threading.mode=SHARED".to_owned(),
            "aeron.shared.idle.strategy=backoff".to_owned(),
            "aeron.archive.threading.mode=SHARED".to_owned(),
            "aeron.term.buffer.sparse.file=true".to_owned(),
            "aeron.term.buffer.length=1m".to_owned(),
            "aeron.ipc.term.buffer.length=1m".to_owned(),
            "aeron.archive.segment.file.length=4m".to_owned(),
            "aeron.archive.recording.events.enabled=false".to_owned(),
            "aeron.archive.replication.channel=aeron:udp?endpoint=localhost:0".to_owned(),
            "aeron.cluster.replication.channel=aeron:udp?endpoint=localhost:0".to_owned(),
            "aeron.cluster.ingress.channel=aeron:udp".to_owned(),
            "aeron.cluster.log.channel=aeron:udp?term-length=1m".to_owned(),
            "aeron.cluster.election.timeout=1s".to_owned(),
            "aeron.cluster.service.count=1".to_owned(),
            // The driver notices the end of its clients after this time.
            "aeron.client.liveness.timeout=10s".to_owned(),
            format!("aeron.archive.dir={}", path("archive")),
            format!("aeron.archive.control.channel=aeron:udp?endpoint=localhost:{archive}"),
            format!("aeron.cluster.dir={}", path("cluster")),
            "aeron.cluster.member.id=0".to_owned(),
            format!(
                "aeron.cluster.members=0,localhost:{ingress},localhost:{consensus},\
                 localhost:{log},localhost:0,localhost:{archive}"
            ),
        ];
        let start = |program, log| start(program, &properties, root.path().join(log));
        let program = MemberArchive::default().program();
        let is_alone = program.is_none();
        let program = program.unwrap_or_else(|| java("io.aeron.driver.MediaDriver"));
        let driver = start(program, "driver-log");
        let aeron_dir = root.path().join("driver");
        await_that("a media driver", || CncFile::open(&aeron_dir, Duration::ZERO).is_ok());
        let archive = is_alone.then(|| start(java("io.aeron.archive.Archive"), "archive-log"));
        let consensus_module =
            start(java("io.aeron.cluster.ConsensusModule"), "consensus-module-log");
        let (container, service) = start_service(root.path());
        let node = Self {
            container: Some(container),
            service,
            properties,
            consensus_module,
            _archive: archive,
            driver,
            root,
        };
        node.await_leader();
        Some(node)
    }

    fn await_leader(&self) {
        await_that("a leader", || self.counter(ROLE) == Some(LEADER));
        await_that("a service that leads", || self.service.count("Leader") == 1);
    }

    /// Starts consensus module and service again, and waits until the member leads.
    fn restart_module(&mut self) {
        // Its predecessor's mark file counts as active for ten seconds.
        await_that("a consensus module", || {
            let log = self.root.path().join("consensus-module-log");
            let module = java("io.aeron.cluster.ConsensusModule");
            self.consensus_module = start(module, &self.properties, log);
            await_some("its start or its end", || {
                let has_ended = self.consensus_module.try_wait().is_some();
                let waits = self.counter(RECOVERY).is_some();
                (has_ended || waits).then_some(waits)
            })
        });
        let (container, service) = start_service(self.root.path());
        self.container = Some(container);
        self.service = service;
        self.await_leader();
    }

    fn counter(&self, type_id: i32) -> Option<i64> {
        let cnc = CncFile::open(self.root.path().join("driver"), Duration::ZERO).ok()?;
        cnc.counters().iter().find(|counter| counter.type_id == type_id).map(|found| found.value)
    }

    /// Waits for the end of the service.
    pub(super) fn await_service(&mut self) -> TerminationCause {
        let container = self.container.take().expect("a container");
        await_that("the end of the service", || !container.is_running());
        container.join()
    }

    /// The service was told once, and the mark file says that it has ended.
    pub(super) fn assert_ended_in_order(&self) {
        let events = self.service.events();
        assert_eq!(self.service.count("terminate"), 1, "{events:?}");
        assert_eq!(events.last().map(String::as_str), Some("terminate"));
        let path = self.root.path().join("cluster/cluster-mark-service-0.dat");
        let header = MarkFileHeader::decode(&fs::read(path).expect("a mark file"));
        let header = header.expect("a mark file");
        assert_eq!((header.version, header.activity_timestamp), (VERSION, ENDED));
    }
}

/// `lab/java/run` with a class, and options of the JVM.
fn java(class: &str) -> Command {
    let mut command = Command::new(java_run());
    command.args([
        class,
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
    ]);
    command
}

fn start(mut command: Command, properties: &[String], log: PathBuf) -> ChildProcess {
    let log = fs::File::create(log).expect("a file");
    command
        .args(properties.iter().map(|property| format!("-D{property}")))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file"))
        .stderr(log);
    ChildProcess::spawn(&mut command)
}

/// Starts a service of the member with a directory.
fn start_service(root: &Path) -> (ServiceContainer, Handle) {
    let mut context = ServiceContext::new();
    context
        .set_aeron_dir(root.join("driver"))
        .unwrap()
        .set_cluster_dir(root.join("cluster"))
        .unwrap();
    let (probe, service) = Probe::new();
    (ServiceContainer::launch(context, probe).expect("a container"), service)
}

impl Drop for SplitNode {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["driver-log", "archive-log", "consensus-module-log"] {
                let log = fs::read_to_string(self.root.path().join(name)).unwrap_or_default();
                eprintln!("{name}:\n{log}");
            }
        }
    }
}
