//! An archive, with its media driver or without, as a process of its own: Aeron's in Java, or `rusteron-archive-server`'s
//! programs where there is no Java. `RUSTERON_ARCHIVE_PROGRAMS` names a folder of programs to run instead of either.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ArchiveContext};
use rusteron_client::Aeron;
use tempfile::TempDir;

use crate::child_process::{folder_of_archives, program_in};
use crate::program::without_settings;
use crate::requirements::java_or_required;
use crate::{ChildProcess, DEADLINE, await_some, free_port, has_java, java_run, memory_dir};

/// A program's class in Java, and its name in `rusteron-archive-server`.
const WITH_DRIVER: [&str; 2] = ["io.aeron.archive.ArchivingMediaDriver", "archiving_media_driver"];
const ALONE: [&str; 2] = ["io.aeron.archive.Archive", "archive"];

/// Which programs are archives.
enum Programs {
    /// The release that `lab/java/pom.xml` names.
    Java,
    /// The release of the C code, which `lab/java/compile-aeron` compiles.
    CompiledJava,
    /// In a folder.
    Rust(PathBuf),
}

impl Programs {
    fn choose() -> Self {
        let is_chosen = std::env::var_os("RUSTERON_ARCHIVE_PROGRAMS").is_some();
        match !is_chosen && java_or_required() {
            true => Self::Java,
            false => Self::Rust(folder_of_archives()),
        }
    }

    fn command(&self, [class, name]: [&str; 2]) -> Command {
        match self {
            Self::Rust(folder) => {
                without_settings(program_in(folder, name, "rusteron-archive-server"))
            }
            Self::Java | Self::CompiledJava => {
                let mut java = Command::new(java_run());
                if matches!(self, Self::CompiledJava) {
                    java.env("RUSTERON_JAVA_AERON", "compiled");
                }
                java.arg(class).args([
                    "-XX:TieredStopAtLevel=1",
                    "-XX:+UseSerialGC",
                    "-Xmx256m",
                    "-Xshare:auto",
                ]);
                java
            }
        }
    }
}

/// An archive with its media driver in directories of its own, or an archive on another media driver. Dropping it kills
/// the process and removes the directories.
///
/// Terms have 64 KiB and segments 128, so that a few messages make many of them.
pub struct ArchiveProcess {
    programs: Programs,
    child: Option<ChildProcess>,
    options: Options,
    root: TempDir,
    archive_dir: PathBuf,
    control_port: u16,
    launches: u32,
}

/// How an archive differs from the usual one.
#[derive(Default, Clone)]
pub struct Options {
    /// `name=value` of properties.
    pub properties: Vec<String>,
    /// Where the recordings are, if it is not to be a directory of the test's own.
    pub archive_dir: Option<PathBuf>,
    /// The directory of a media driver that runs already, and outlives the archive.
    pub aeron_dir: Option<PathBuf>,
}

impl ArchiveProcess {
    pub fn launch() -> Self {
        Self::launch_with(Options::default())
    }

    pub fn launch_with(options: Options) -> Self {
        Self::launch_of(Programs::choose(), options)
    }

    /// Starts ours.
    pub fn launch_rust(options: Options) -> Self {
        Self::launch_of(Programs::Rust(folder_of_archives()), options)
    }

    /// Starts Java's, or says why not: the test is then over.
    pub fn launch_java(options: Options) -> Option<Self> {
        has_java().then(|| Self::launch_of(Programs::Java, options))
    }

    /// Starts Java's of the C code's release, or says why not: the test is then over.
    #[cfg(unix)]
    pub fn launch_compiled(options: Options) -> Option<Self> {
        let is_there = has_java() && crate::cluster::has_compiled_aeron();
        is_there.then(|| Self::launch_of(Programs::CompiledJava, options))
    }

    fn launch_of(programs: Programs, options: Options) -> Self {
        let root = memory_dir("rusteron-archive-").expect("a directory");
        let archive_dir = options.archive_dir.clone().unwrap_or(root.path().join("archive"));
        let child = None;
        let mut archive =
            Self { programs, child, options, root, archive_dir, control_port: 0, launches: 0 };
        archive.start();
        archive
    }

    /// Starts it again, on the same recordings, with another media driver if it has one of its own.
    pub fn restart(&mut self) {
        assert!(self.child.is_none(), "it is running");
        self.start();
    }

    fn start(&mut self) {
        // A port that is free now can be taken before the archive gets it. The mark file of an archive that was
        // killed counts as active for ten seconds.
        let deadline = Instant::now() + DEADLINE;
        while Instant::now() < deadline {
            self.launches += 1;
            self.control_port = free_port();
            self.child = Some(self.spawn());
            if self.is_ready() {
                return;
            }
            self.kill();
        }
        panic!("the archive does not start:\n{}", self.log());
    }

    fn spawn(&self) -> ChildProcess {
        let log = File::create(self.log_file()).expect("a file");
        let port = self.control_port;
        let program = if self.options.aeron_dir.is_some() { ALONE } else { WITH_DRIVER };
        let mut command = self.programs.command(program);
        command
            .arg(format!("-Daeron.dir={}", self.aeron_dir().display()))
            .arg(format!("-Daeron.archive.dir={}", self.archive_dir.display()))
            // Apart from the recordings: it is mapped, and a full disk would end the process.
            .arg(format!("-Daeron.archive.mark.file.dir={}", self.root.path().display()))
            .arg(format!("-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:{port}"))
            .arg("-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0")
            .args([
                "-Daeron.threading.mode=SHARED",
                "-Daeron.archive.threading.mode=SHARED",
                "-Daeron.term.buffer.length=65536",
                "-Daeron.ipc.term.buffer.length=65536",
                "-Daeron.term.buffer.sparse.file=true",
                "-Daeron.archive.segment.file.length=131072",
                "-Daeron.archive.recording.events.enabled=false",
                // On a busy machine, slow processes must not be timed out.
                "-Daeron.client.liveness.timeout=60s",
                "-Daeron.image.liveness.timeout=10s",
                "-Daeron.publication.unblock.timeout=70s",
                "-Daeron.driver.timeout=60000",
            ])
            .args(self.options.properties.iter().map(|property| format!("-D{property}")))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        ChildProcess::spawn(&mut command)
    }

    /// Waits until it takes requests; `false` if it ended instead.
    fn is_ready(&mut self) -> bool {
        let has_driver = await_some("the media driver of the archive", || {
            if self.child.as_mut().is_none_or(|child| child.try_wait().is_some()) {
                return Some(false);
            }
            let mut context = rusteron_client::Context::new().expect("a context");
            context
                .set_dir(self.aeron_dir())
                .and_then(|context| context.set_driver_timeout(Duration::from_secs(1)))
                .expect("settings");
            Aeron::connect(context).is_ok().then_some(true)
        });
        if !has_driver {
            return false;
        }
        // The process may have found its predecessor's mark file after it started the driver.
        let timeout = Duration::from_secs(5);
        let Ok(aeron) = self.try_client(false, timeout) else { return false };
        await_some("the archive", || {
            let mut context = self.context();
            context.set_message_timeout(Duration::from_secs(5)).expect("a timeout");
            let is_ready = Archive::connect(&aeron, context).is_ok() || self.asks_who_we_are();
            let has_ended = aeron.is_closed() || self.child.as_mut()?.try_wait().is_some();
            (is_ready || has_ended).then_some(is_ready && !has_ended)
        })
    }

    /// An archive that refuses this helper is ready as well.
    fn asks_who_we_are(&self) -> bool {
        self.options.properties.iter().any(|property| property.contains("authenticator"))
            && self.archive_dir.join("archive.catalog").exists()
    }

    pub fn aeron(&self) -> Aeron {
        self.try_client(false, DEADLINE).expect("a client")
    }

    /// A client without a conductor thread.
    pub fn aeron_with_invoker(&self) -> Aeron {
        self.try_client(true, DEADLINE).expect("a client")
    }

    fn try_client(&self, use_invoker: bool, timeout: Duration) -> rusteron_client::Result<Aeron> {
        let mut context = rusteron_client::Context::new().expect("a context");
        context
            .set_dir(self.aeron_dir())
            .and_then(|context| context.set_driver_timeout(timeout))
            .and_then(|context| context.set_use_conductor_agent_invoker(use_invoker))
            .expect("settings");
        Aeron::connect(context)
    }

    /// Settings for a session over IPC.
    pub fn context(&self) -> ArchiveContext {
        let mut context = ArchiveContext::new().expect("a context");
        context
            .set_control_request_channel("aeron:ipc")
            .and_then(|context| context.set_control_response_channel("aeron:ipc"))
            .and_then(|context| context.set_message_timeout(DEADLINE))
            .and_then(|context| context.set_message_retry_attempts(1000))
            .expect("settings");
        context
    }

    /// Settings for a session over UDP.
    pub fn udp_context(&self) -> ArchiveContext {
        let mut context = self.context();
        context
            .set_control_request_channel(&self.control_channel())
            .and_then(|it| it.set_control_response_channel("aeron:udp?endpoint=localhost:0"))
            .expect("settings");
        context
    }

    pub fn connect(&self) -> Archive {
        Archive::connect(&self.aeron(), self.context()).expect("a session")
    }

    pub fn control_channel(&self) -> String {
        format!("aeron:udp?endpoint=localhost:{}", self.control_port)
    }

    pub fn aeron_dir(&self) -> PathBuf {
        let own = || self.root.path().join(format!("driver-{}", self.launches));
        self.options.aeron_dir.clone().unwrap_or_else(own)
    }

    pub fn archive_dir(&self) -> &Path {
        &self.archive_dir
    }

    fn log_file(&self) -> PathBuf {
        self.root.path().join(format!("log-{}", self.launches))
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a running archive").id()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill();
        }
    }

    /// SIGTERM, and waits for its end.
    #[cfg(unix)]
    pub fn stop(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("a running archive");
        child.signal("TERM");
        await_some("the end of the archive", || child.try_wait())
    }
}

impl Drop for ArchiveProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the archive's output:\n{}", self.log());
        }
        self.kill();
    }
}
