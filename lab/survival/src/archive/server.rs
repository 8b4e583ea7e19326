//! The process that is killed, from both sides.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use rusteron_archive_server::{
    ArchiveServer, ArchiveServerContext, ArchiveThreadingMode, Checksum,
};
use rusteron_client::{IdleStrategyKind, Result};
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, MediaDriver, ThreadingMode};
use rustix::process::{Pid, Signal, kill_process};

use crate::clients::process::Process;
use crate::clients::words::{Notice, Order, to_line};
use crate::process::{command, follow};

/// The channel of recording events.
pub(super) const EVENTS_CHANNEL: &str = "aeron:ipc?alias=events";
/// The length of terms, unless a channel says another.
pub(super) const TERM_LENGTH: usize = 64 * 1024;
/// The least length of segments.
const SEGMENT_LENGTH: usize = 64 * 1024;
/// The pause between two looks at a process.
const PAUSE: Duration = Duration::from_micros(200);

#[derive(Debug, Clone, Args)]
pub(crate) struct ServerOptions {
    /// The archive's directory
    #[arg(long)]
    pub(crate) archive_dir: PathBuf,
    /// The media driver's directory
    #[arg(long)]
    pub(crate) aeron_dir: PathBuf,
    /// The stream of recording events. Each server has its own: a driver keeps for seconds what killed ones have published
    #[arg(long)]
    pub(crate) events_stream_id: i32,
    /// Run the media driver, too
    #[arg(long)]
    pub(crate) with_driver: bool,
    /// How durable recordings and catalog are
    #[arg(long)]
    pub(crate) sync_level: u8,
    /// Record with checksums
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Let recorder and replayer have threads of their own
    #[arg(long)]
    pub(crate) dedicated: bool,
}

/// Runs a server until the supervisor closes the standard input.
pub(crate) fn play(supervisor: i32, options: &ServerOptions) -> std::result::Result<(), Failure> {
    follow(supervisor)?;
    let server = launch(options).map_err(|error| Failure::run("cannot start the server", error))?;
    println!("{}", to_line(&Notice::Ready));
    io::copy(&mut io::stdin().lock().take(1), &mut io::sink())
        .map_err(|error| Failure::run("cannot wait for the supervisor", error))?;
    server.close().map_err(|error| Failure::run("cannot end the server", error))
}

fn launch(options: &ServerOptions) -> rusteron_archive_server::Result<ArchiveServer> {
    let mut context = ArchiveServerContext::new();
    let checksum = options.checksum.then_some(Checksum::Crc32);
    context
        .set_archive_dir(&options.archive_dir)?
        .set_aeron_dir(&options.aeron_dir)?
        .set_control_channel_enabled(false)?
        .set_recording_events_enabled(true)?
        .set_recording_events_channel(EVENTS_CHANNEL)?
        .set_recording_events_stream_id(options.events_stream_id)?
        .set_segment_file_length(SEGMENT_LENGTH)?
        .set_file_sync_level(options.sync_level)?
        .set_catalog_file_sync_level(options.sync_level)?
        .set_record_checksum(checksum)?
        .set_replay_checksum(checksum)?
        .set_threading_mode(match options.dedicated {
            true => ArchiveThreadingMode::Dedicated,
            false => ArchiveThreadingMode::Shared,
        })?;
    if !options.with_driver {
        return ArchiveServer::launch(context);
    }
    let mut driver_context = driver_context()?;
    // The directory of a driver that was killed.
    driver_context.set_dir(&options.aeron_dir)?.set_dir_warn_if_exists(false)?;
    ArchiveServer::launch_with_driver(MediaDriver::launch(driver_context)?, context)
}

/// The settings of a driver, with the archive or without.
pub(super) fn driver_context() -> Result<DriverContext> {
    let mut context = DriverContext::new()?;
    context
        .set_threading_mode(ThreadingMode::Shared)?
        .set_shared_idle_strategy(IdleStrategyKind::Backoff)?
        .set_term_buffer_length(TERM_LENGTH)?
        .set_ipc_term_buffer_length(TERM_LENGTH)?
        // What killed servers leave behind lasts as long.
        .set_client_liveness_timeout(Duration::from_secs(10))?
        .set_publication_unblock_timeout(Duration::from_secs(15))?;
    Ok(context)
}

/// A process that runs a server.
#[derive(Debug)]
pub(super) struct Server {
    process: Process,
    start: Instant,
}

impl Server {
    pub(super) fn start(options: &ServerOptions) -> std::result::Result<Self, Failure> {
        let mut command = command(["server"])?;
        command
            .arg("--archive-dir")
            .arg(&options.archive_dir)
            .arg("--aeron-dir")
            .arg(&options.aeron_dir)
            .args(["--events-stream-id", &options.events_stream_id.to_string()])
            .args(["--sync-level", &options.sync_level.to_string()]);
        for (flag, is_set) in [
            ("--with-driver", options.with_driver),
            ("--checksum", options.checksum),
            ("--dedicated", options.dedicated),
        ] {
            if is_set {
                command.arg(flag);
            }
        }
        let start = Instant::now();
        Ok(Self { process: Process::start(command)?, start })
    }

    /// Waits until the server is ready, and returns how long that took. `None` if the killer was faster.
    pub(super) fn await_ready(
        &mut self,
        killer: Option<&Killer>,
        deadline: Duration,
    ) -> std::result::Result<Option<Duration>, String> {
        loop {
            if let Some(Notice::Ready) = self.process.notice() {
                return Ok(Some(self.start.elapsed()));
            }
            match killer {
                Some(killer) if killer.has_struck() => return Ok(None),
                Some(_) => {}
                // Without a killer, so that the process id stays the server's until the kill.
                None => {
                    let ended = self.process.ended().map_err(|error| error.to_string())?;
                    if let Some(status) = ended {
                        return Err(format!("{status}: {}", self.process.last_words()));
                    }
                }
            }
            if self.start.elapsed() > deadline {
                return Err(format!("not ready after {:?}", self.start.elapsed()));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Lets the server be killed after a time.
    pub(super) fn kill_after(&self, delay: Duration) -> Killer {
        let has_struck = Arc::new(AtomicBool::new(false));
        let (pid, struck) = (Pid::from_raw(self.process.pid()), Arc::clone(&has_struck));
        let thread = thread::spawn(move || {
            thread::sleep(delay);
            // Before the kill, so that an error that the kill causes is known for one.
            struck.store(true, Ordering::Release);
            // The server is waited for when this thread has ended.
            pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
        });
        Killer { has_struck, thread: Some(thread) }
    }

    /// Waits for the end of a server whose killer has ended. Fails if the server has not died of the kill.
    pub(super) fn await_death(&mut self) -> std::result::Result<(), String> {
        let status = self.await_end()?;
        match std::os::unix::process::ExitStatusExt::signal(&status) {
            Some(signal) if signal == Signal::KILL.as_raw() => Ok(()),
            _ => Err(format!("{status}: {}", self.process.last_words())),
        }
    }

    /// Ends the server in order.
    pub(super) fn end(mut self) -> std::result::Result<(), String> {
        self.process.order(Order::End);
        let status = self.await_end()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{status}: {}", self.process.last_words()))
        }
    }

    fn await_end(&mut self) -> std::result::Result<std::process::ExitStatus, String> {
        loop {
            if let Some(status) = self.process.ended().map_err(|error| error.to_string())? {
                return Ok(status);
            }
            thread::sleep(PAUSE);
        }
    }
}

/// A thread that kills a server.
#[derive(Debug)]
pub(super) struct Killer {
    has_struck: Arc<AtomicBool>,
    thread: Option<JoinHandle<bool>>,
}

impl Killer {
    pub(super) fn has_struck(&self) -> bool {
        self.has_struck.load(Ordering::Acquire)
    }

    /// Waits for the kill.
    pub(super) fn join(mut self) {
        self.wait();
    }

    fn wait(&mut self) {
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Killer {
    /// The process id must not belong to another process when the thread strikes.
    fn drop(&mut self) {
        self.wait();
    }
}
