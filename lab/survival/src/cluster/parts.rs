//! The processes of a member.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_archive_server::{ArchiveServer, ArchiveServerContext, ArchiveThreadingMode};
use rusteron_client::IdleStrategyKind;
use rusteron_cluster::{ClusterErrorKind, ServiceContainer, ServiceContext};
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, MediaDriver, ThreadingMode};
use rusteron_test_support::cluster::ledger::{DigestFile, Ledger};
use rusteron_test_support::java_run;
use serde::{Deserialize, Serialize};

/// The consensus module beside another process's media driver and archive.
pub(super) const MODULE_PROGRAM: &str = "cluster/Node.java";

const PAUSE: Duration = Duration::from_millis(50);
/// A media driver is there after this time, and an old mark file no longer active.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The processes of a member, in the order of their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Process {
    /// Our media driver, and our archive.
    Driver,
    /// Java's consensus module.
    Module,
    /// A ledger.
    Service,
}

/// The task of a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MemberOptions {
    pub(super) process: Process,
    /// The media driver's directory.
    pub(super) aeron_dir: PathBuf,
    pub(super) archive_dir: PathBuf,
    pub(super) cluster_dir: PathBuf,
    /// The UDP port of the archive.
    pub(super) archive_port: u16,
    /// The file to which the ledger appends digests.
    pub(super) digests: PathBuf,
    /// The ledger iterates a `HashMap`.
    pub(super) diverge: bool,
    /// Properties of the JVM.
    pub(super) properties: Vec<String>,
}

/// Runs a process of a member until it is killed or ends by itself.
pub(crate) fn play(options: &MemberOptions) -> Result<(), Failure> {
    match options.process {
        Process::Driver => driver(options),
        Process::Module => module(options),
        Process::Service => service(options),
    }
}

fn driver(options: &MemberOptions) -> Result<(), Failure> {
    let mut context = DriverContext::new()?;
    context
        .set_dir(&options.aeron_dir)?
        // Of a driver that was killed.
        .set_dir_delete_on_start(true)?
        .set_dir_warn_if_exists(false)?
        .set_threading_mode(ThreadingMode::Shared)?
        .set_shared_idle_strategy(IdleStrategyKind::Backoff)?
        .set_term_buffer_length(1 << 20)?
        .set_ipc_term_buffer_length(1 << 20)?
        .set_term_buffer_sparse_file(true)?;
    let driver = MediaDriver::launch(context)?;
    let mut context = ArchiveServerContext::new();
    context
        .set_archive_dir(&options.archive_dir)?
        .set_control_channel(format!("aeron:udp?endpoint=localhost:{}", options.archive_port))?
        .set_replication_channel("aeron:udp?endpoint=localhost:0")?
        .set_segment_file_length(16 << 20)?
        .set_threading_mode(ArchiveThreadingMode::Shared)?;
    let server = ArchiveServer::launch_with_driver(driver, context)?;
    while !server.has_ended() {
        thread::sleep(PAUSE);
    }
    Ok(server.close()?)
}

/// Becomes the JVM, which the kernel kills with the supervisor, too.
fn module(options: &MemberOptions) -> Result<(), Failure> {
    await_driver(options)?;
    let error = Command::new(java_run())
        .args([MODULE_PROGRAM, "none", "stdin", "-Xmx256m", "-Drusteron.external=archive"])
        .args(options.properties.iter().map(|property| format!("-D{property}")))
        .exec();
    Err(Failure::run("cannot start Java", error))
}

fn service(options: &MemberOptions) -> Result<(), Failure> {
    await_driver(options)?;
    let deadline = Instant::now() + START_TIMEOUT;
    let container = loop {
        let file = DigestFile::open(&options.digests)
            .map_err(|error| Failure::run(options.digests.display(), error))?;
        let mut context = ServiceContext::new();
        context
            .set_aeron_dir(&options.aeron_dir)?
            .set_cluster_dir(&options.cluster_dir)?
            .set_service_name("ledger")?
            .set_error_handler(|error| println!("error: {error}"))?;
        let ledger = if options.diverge { Ledger::diverging(file) } else { Ledger::new(file) };
        let error = match ServiceContainer::launch(context, ledger) {
            Ok(container) => break container,
            Err(error) => error,
        };
        println!("refused: {error}");
        let is_temporary =
            matches!(error.kind(), ClusterErrorKind::ActiveMarkFile | ClusterErrorKind::Client(_));
        if !is_temporary || Instant::now() >= deadline {
            return Err(Failure::run("cannot start the service", error));
        }
        thread::sleep(10 * PAUSE);
    };
    let cause = container.join();
    println!("ended: {cause:?}");
    Ok(())
}

fn await_driver(options: &MemberOptions) -> Result<(), Failure> {
    let deadline = Instant::now() + START_TIMEOUT;
    while !options.aeron_dir.join("cnc.dat").exists() {
        if Instant::now() >= deadline {
            return Err(Failure::Run(format!("process {}: no media driver", process::id())));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}
