//! A member of a cluster: a process with Java's consensus module and a service, and media driver and archive in the same
//! process or, in Rust, in another.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, CncFile, CounterSnapshot};

use super::member_archive::MemberArchive;
use super::options::{AeronVersion, Options, Service};
use super::ports::Ports;
use crate::{ChildProcess, await_some, await_that, context, java_run, prepare_java};

/// The pause between two looks at a process or its counters.
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// A consensus module prints this if its service has closed first. Aeron has no code for it; 1.51.0 and 1.54.0 have the
/// same text.
pub const SERVICE_CLOSED_FIRST: &str = "Aeron client in service closed unexpectedly";

/// The program of a member.
const PROGRAM: &str = "cluster/Node.java";

const ROLE: i32 = 201;
const CONTROL_TOGGLE: i32 = 202;
const COMMIT_POSITION: i32 = 203;
const RECOVERY: i32 = 204;
const SNAPSHOT_COUNT: i32 = 205;
const ELECTION_STATE: i32 = 207;
const SESSION: i32 = 241;

/// The state of an election that is over.
const ELECTION_CLOSED: i64 = 17;
/// The toggle accepts a request.
const TOGGLE_NEUTRAL: i64 = 1;
/// The cluster is suspended, and the toggle accepts `resume`.
const TOGGLE_SUSPEND: i64 = 2;

/// Follower, candidate or leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Follower,
    Candidate,
    Leader,
}

/// A member of a cluster. Dropping it kills its processes.
#[derive(Debug)]
pub struct JavaNode {
    member_id: usize,
    root: PathBuf,
    /// The service, and options of the JVM.
    arguments: Vec<String>,
    /// The settings of all processes.
    properties: Vec<String>,
    archive: MemberArchive,
    ports: Ports,
    service: Service,
    version: AeronVersion,
    /// The JVM.
    child: Option<ChildProcess>,
    /// Media driver and archive in Rust.
    driver: Option<ChildProcess>,
    launches: u32,
}

impl JavaNode {
    /// Describes a member, without starting its processes.
    pub(super) fn new(member_id: usize, root: PathBuf, options: &Options, all: &[Ports]) -> Self {
        let timeout = options.leader_heartbeat_timeout.as_millis();
        let arguments = [
            options.service(member_id).name(),
            "stdin",
            "-Xmx192m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xshare:auto",
            &format!("-Drusteron.digests={}", root.join("digests").display()),
        ];
        let arguments = arguments.map(str::to_owned).to_vec();
        let property = |text: String| format!("-D{text}");
        let mut properties = vec![
            property(format!("aeron.cluster.leader.heartbeat.timeout={timeout}ms")),
            property(format!("aeron.cluster.startup.canvass.timeout={}ms", 3 * timeout)),
            property(format!(
                "aeron.cluster.session.timeout={}ms",
                options.session_timeout.as_millis()
            )),
        ];
        properties.extend(Ports::properties(all, member_id, &root).map(property));
        properties.extend(PROPERTIES.map(|text| property(text.to_owned())));
        // The last value of a property counts.
        properties.extend(options.properties.iter().cloned().map(property));
        let archive = options.archive(member_id);
        let (service, version) = (options.service(member_id), options.version(member_id));
        Self {
            member_id,
            root,
            arguments,
            properties,
            archive,
            ports: all[member_id],
            service,
            version,
            child: None,
            driver: None,
            launches: 0,
        }
    }

    /// Returns whether the member needs a service in another process.
    pub fn needs_service(&self) -> bool {
        self.service == Service::None
    }

    /// Sets the service of later starts.
    pub fn set_service(&mut self, service: Service) {
        service.name().clone_into(&mut self.arguments[0]);
        self.service = service;
    }

    /// Sets the archive of later starts, on the same recordings.
    pub fn set_archive(&mut self, archive: MemberArchive) {
        self.archive = archive;
    }

    /// Removes all recordings and the state of the cluster.
    pub fn empty(&mut self) {
        assert!(self.child.is_none(), "member {} is running", self.member_id);
        for name in ["archive", "cluster"] {
            fs::remove_dir_all(self.root.join(name)).expect("a directory");
        }
    }

    /// Moves the recordings and the state of a cluster from a directory into this member's own.
    pub fn restore(&mut self, from: &Path) {
        self.empty();
        for name in ["archive", "cluster"] {
            fs::rename(from.join(name), self.root.join(name)).expect("a directory");
        }
    }

    /// Compiles the member's programs, unless that was done before, so that it takes no time of a deadline.
    pub(super) fn prepare(&self) {
        prepare_java(&mut self.script(), PROGRAM).expect("a program");
        self.archive.program();
    }

    /// `lab/java/run` with the member's release of Aeron.
    fn script(&self) -> Command {
        let mut command = Command::new(java_run());
        if self.version == AeronVersion::Compiled {
            command.env("RUSTERON_JAVA_AERON", "compiled");
        }
        command
    }

    /// Starts the processes, with a new directory of the media driver.
    pub(super) fn start(&mut self) {
        assert!(self.child.is_none(), "member {} is running", self.member_id);
        self.launches += 1;
        fs::create_dir_all(&self.root).expect("a directory");
        let mut command = self.script();
        command.arg(PROGRAM).args(&self.arguments);
        if let Some(mut driver) = self.archive.program() {
            command.arg("-Drusteron.external=archive");
            self.driver = Some(self.spawn(&mut driver, self.driver_log_file()));
        }
        self.child = Some(self.spawn(&mut command, self.log_file()));
    }

    fn spawn(&self, command: &mut Command, log: PathBuf) -> ChildProcess {
        let log = File::create(log).expect("a file");
        command
            .args(&self.properties)
            .arg(format!("-Daeron.dir={}", self.aeron_dir().display()))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        die_with_test(command);
        ChildProcess::spawn(command)
    }

    /// Starts the processes again, after [`kill`](Self::kill), [`stop`](Self::stop) or their own end, on the same
    /// recordings and ports.
    ///
    /// Aeron refuses to start for ten seconds after the last sign of life in a mark file. The end of the process
    /// was waited for, so this writes the sign of an orderly end. The archive in Rust finds out by itself.
    pub fn restart(&mut self) {
        self.await_end();
        let of_archive =
            (self.archive == MemberArchive::Java).then_some("archive/archive-mark.dat");
        let of_module = ["cluster/cluster-mark.dat", "cluster/cluster-mark-service-0.dat"];
        for name in of_archive.into_iter().chain(of_module) {
            mark_as_ended(&self.root.join(name));
        }
        self.start();
    }

    /// Kills the processes with SIGKILL, and waits for their end.
    pub fn kill(&mut self) {
        for mut process in [self.child.take(), self.driver.take()].into_iter().flatten() {
            process.kill();
        }
    }

    /// Ends the processes in order, with SIGTERM. There is no snapshot; the other members go on.
    #[cfg(unix)]
    pub fn stop(&mut self) -> ExitStatus {
        let child = self.child.as_ref().expect("a running member");
        child.signal("TERM");
        self.await_end().expect("an exit status")
    }

    /// Waits until the consensus module has ended by itself, and ends media driver and archive. Returns the status of
    /// the JVM; `None` if none was running.
    pub fn await_end(&mut self) -> Option<ExitStatus> {
        let status = await_process_end(&mut self.child.take()?);
        if let Some(mut driver) = self.driver.take() {
            #[cfg(unix)]
            driver.signal("TERM");
            let status = await_process_end(&mut driver);
            assert!(status.success(), "the archive of member {}: {status}", self.member_id);
        }
        Some(status)
    }

    /// Stops all threads of the processes with SIGSTOP.
    #[cfg(unix)]
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets the processes go on after [`pause`](Self::pause).
    #[cfg(unix)]
    pub fn resume(&self) {
        self.signal("CONT");
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        self.child.as_ref().expect("a running member").signal(name);
        if let Some(driver) = &self.driver {
            driver.signal(name);
        }
    }

    /// Requests `snapshot`, `suspend`, `resume`, `shutdown` or `abort` from a leader.
    pub fn toggle(&mut self, request: &str) {
        let free = if request == "resume" { TOGGLE_SUSPEND } else { TOGGLE_NEUTRAL };
        self.await_that("the toggle is free", |node| node.value(CONTROL_TOGGLE) == Some(free));
        self.child.as_mut().expect("a running member").write_line(request);
    }

    /// Returns whether the processes run, or are paused.
    pub fn is_running(&mut self) -> bool {
        let runs = |process: &mut ChildProcess| process.try_wait().is_none();
        self.child.as_mut().is_some_and(runs) && self.driver.as_mut().is_none_or(runs)
    }

    /// Returns whether the processes were started, and neither killed nor waited for.
    pub fn has_process(&self) -> bool {
        self.child.is_some()
    }

    /// Returns the role. `None` before the first election.
    fn role(&self) -> Option<Role> {
        match self.value(ROLE)? {
            0 => Some(Role::Follower),
            1 => Some(Role::Candidate),
            2 => Some(Role::Leader),
            code => panic!("role {code}"),
        }
    }

    /// Returns Aeron's code of the election state, 17 after an election. `None` before the first election.
    fn election_state(&self) -> Option<i64> {
        self.value(ELECTION_STATE)
    }

    /// Returns whether the member leads the cluster, and its election is over.
    pub fn is_leader(&self) -> bool {
        self.role() == Some(Role::Leader) && self.election_state() == Some(ELECTION_CLOSED)
    }

    /// Returns whether the member follows a leader, and its election is over.
    pub fn is_follower(&self) -> bool {
        self.role() == Some(Role::Follower) && self.election_state() == Some(ELECTION_CLOSED)
    }

    /// Returns whether the consensus module waits for its services to recover.
    pub fn awaits_services(&self) -> bool {
        self.value(RECOVERY).is_some()
    }

    pub fn commit_position(&self) -> Option<i64> {
        self.value(COMMIT_POSITION)
    }

    pub fn snapshot_count(&self) -> Option<i64> {
        self.value(SNAPSHOT_COUNT)
    }

    /// Returns the number of open sessions, as this member knows them.
    pub fn session_count(&self) -> usize {
        let mut count = 0;
        self.for_each_counter(|counter| count += usize::from(counter.type_id == SESSION));
        count
    }

    /// Waits until a condition of this member is true. Panics with `what` after the deadline, or if the process has
    /// ended.
    pub fn await_that(&mut self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        await_that(what, || {
            assert!(self.is_running(), "member {} has ended: {what}", self.member_id);
            thread::sleep(PAUSE);
            condition(self)
        });
    }

    /// A client of the member's media driver, such as for ingress over IPC.
    pub fn aeron(&self) -> Aeron {
        Aeron::connect(context(&self.aeron_dir())).expect("a client")
    }

    pub(super) fn member_id(&self) -> usize {
        self.member_id
    }

    /// `localhost:PORT` for clients.
    pub fn ingress_endpoint(&self) -> String {
        format!("localhost:{}", self.ports.ingress)
    }

    /// `localhost:PORT` for members and backups.
    pub fn consensus_endpoint(&self) -> String {
        format!("localhost:{}", self.ports.consensus)
    }

    pub fn aeron_dir(&self) -> PathBuf {
        self.root.join(format!("driver-{}", self.launches))
    }

    /// The directory of all files of this member.
    pub fn dir(&self) -> &Path {
        &self.root
    }

    /// The file to which a ledger appends its digests.
    pub fn digests(&self) -> PathBuf {
        self.root.join("digests")
    }

    pub fn cluster_dir(&self) -> PathBuf {
        self.root.join("cluster")
    }

    fn log_file(&self) -> PathBuf {
        self.root.join(format!("log-{}", self.launches))
    }

    fn driver_log_file(&self) -> PathBuf {
        self.root.join(format!("driver-log-{}", self.launches))
    }

    /// The output of the JVM since its last start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// The output of all processes of this member.
    fn logs(&self) -> String {
        let log = |launch| {
            let texts = ["driver-log", "log"].map(|name| {
                fs::read_to_string(self.root.join(format!("{name}-{launch}"))).unwrap_or_default()
            });
            format!("member {}, start {launch}:\n{}\n", self.member_id, texts.concat())
        };
        (1..=self.launches).map(log).collect()
    }

    /// The value of the first counter of a type. `None` without such a counter or process.
    fn value(&self, type_id: i32) -> Option<i64> {
        let mut value = None;
        self.for_each_counter(|counter| {
            if counter.type_id == type_id && value.is_none() {
                value = Some(counter.value);
            }
        });
        value
    }

    fn for_each_counter(&self, handler: impl FnMut(&CounterSnapshot)) {
        // The files of a killed process would still say that it leads.
        if self.child.is_none() {
            return;
        }
        if let Ok(cnc) = CncFile::open(self.aeron_dir(), Duration::ZERO) {
            cnc.counters().for_each(handler);
        }
    }
}

impl Drop for JavaNode {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.logs());
        }
        self.kill();
    }
}

/// Settings of all members. They suit a machine of two cores under load: few threads, idle strategies that sleep, and
/// long timeouts.
pub const PROPERTIES: [&str; 23] = [
    "aeron.dir.delete.on.start=true",
    "aeron.threading.mode=SHARED",
    "aeron.shared.idle.strategy=backoff",
    "aeron.archive.threading.mode=SHARED",
    "aeron.term.buffer.sparse.file=true",
    "aeron.term.buffer.length=1m",
    "aeron.ipc.term.buffer.length=1m",
    "aeron.archive.segment.file.length=4m",
    "aeron.archive.recording.events.enabled=false",
    "aeron.archive.replication.channel=aeron:udp?endpoint=localhost:0",
    "aeron.cluster.replication.channel=aeron:udp?endpoint=localhost:0",
    "aeron.cluster.service.count=1",
    "aeron.cluster.ingress.channel=aeron:udp",
    "aeron.cluster.ingress.ipc.allowed=true",
    "aeron.cluster.log.channel=aeron:udp?term-length=1m",
    "aeron.cluster.leader.heartbeat.interval=200ms",
    "aeron.cluster.election.timeout=1s",
    "aeron.cluster.authorisation.service.supplier=ALLOW_ALL",
    "aeron.client.liveness.timeout=60s",
    "aeron.image.liveness.timeout=10s",
    "aeron.publication.unblock.timeout=70s",
    "aeron.driver.timeout=60000",
    "aeron.cluster.termination.timeout=30s",
];

/// Lets the kernel kill the process when the thread that starts it ends. A paused process would not notice the end of
/// its input. Does nothing on other systems than Linux.
#[cfg(target_os = "linux")]
pub(super) fn die_with_test(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, set_parent_process_death_signal};

    let follow = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: the closure makes one system call. It neither allocates nor locks, so it may run between fork and exec.
    unsafe { command.pre_exec(follow) };
}

#[cfg(not(target_os = "linux"))]
pub(super) fn die_with_test(_: &mut Command) {}

pub(super) fn await_process_end(process: &mut ChildProcess) -> ExitStatus {
    await_some("the end of a member", || {
        thread::sleep(PAUSE);
        process.try_wait()
    })
}

/// Sets the time of the last sign of life in a mark file to "none".
fn mark_as_ended(path: &Path) {
    const TIMESTAMP_OFFSET: u64 = 16;
    // A member that was killed early has not made all files.
    let Ok(mut file) = File::options().write(true).open(path) else { return };
    file.seek(SeekFrom::Start(TIMESTAMP_OFFSET))
        .and_then(|_| file.write_all(&(-1_i64).to_le_bytes()))
        .expect("a mark file");
}
