//! The processes of a member.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
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

use super::member_process::Process;
use super::options::MemberOptions;
use crate::process::follow;

/// The consensus module beside another process's media driver, with an archive or beside another process's.
pub(super) const MODULE_PROGRAM: &str = "cluster/Node.java";

const PAUSE: Duration = Duration::from_millis(50);
/// A media driver is there after this time, and an old mark file no longer active.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs a process of a member until it is killed or ends by itself.
pub(crate) fn play(process: Process, options: &MemberOptions) -> Result<(), Failure> {
    follow(options.supervisor)?;
    match process {
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
    let Some(port) = options.archive_port else {
        loop {
            thread::park();
        }
    };
    archive(driver, &options.archive_dir, port)
        .map_err(|error| Failure::run("the archive fails", error))
}

/// Runs an archive until it ends by itself.
fn archive(driver: MediaDriver, dir: &Path, port: u16) -> rusteron_archive_server::Result<()> {
    let mut context = ArchiveServerContext::new();
    context
        .set_archive_dir(dir)?
        .set_control_channel(format!("aeron:udp?endpoint=localhost:{port}"))?
        .set_replication_channel("aeron:udp?endpoint=localhost:0")?
        .set_segment_file_length(16 << 20)?
        .set_threading_mode(ArchiveThreadingMode::Shared)?;
    let server = ArchiveServer::launch_with_driver(driver, context)?;
    while !server.has_ended() {
        thread::sleep(PAUSE);
    }
    server.close()
}

/// Becomes the JVM, which the kernel kills with the supervisor, too.
fn module(options: &MemberOptions) -> Result<(), Failure> {
    await_driver(options)?;
    let error = Command::new(java_run())
        .args([MODULE_PROGRAM, "none", "stdin"])
        .arg(match options.archive_port {
            Some(_) => "-Drusteron.external=archive",
            None => "-Drusteron.external=driver",
        })
        .args(&options.arguments)
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
        match ServiceContainer::launch(context, ledger) {
            Ok(container) => break container,
            Err(error) if Instant::now() >= deadline => {
                return Err(Failure::run("cannot start the service", error));
            }
            Err(error) => {
                println!("refused: {error}");
                let is_temporary = matches!(
                    error.kind(),
                    ClusterErrorKind::ActiveMarkFile | ClusterErrorKind::Client(_)
                );
                if !is_temporary {
                    return Err(Failure::run("cannot start the service", error));
                }
                thread::sleep(10 * PAUSE);
            }
        }
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
