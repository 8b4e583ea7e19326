//! The process that is killed, from both sides.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusteron_archive_server::{
    ArchiveServer, ArchiveServerContext, ArchiveThreadingMode, Checksum,
};
use rusteron_client::{IdleStrategyKind, Result};
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, MediaDriver, ThreadingMode};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::campaign::NAME;
use crate::party::{Notice, Order, Orders, Party, say};
use crate::report::Finding;

/// The channel of recording events.
pub(super) const EVENTS_CHANNEL: &str = "aeron:ipc?alias=events";
/// The length of terms, unless a channel says another.
pub(super) const TERM_LENGTH: usize = 64 * 1024;
/// The least length of segments.
pub(super) const SEGMENT_LENGTH: usize = 64 * 1024;
/// The pause between two looks at a process.
const PAUSE: Duration = Duration::from_micros(200);

/// The settings with which a server runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerOptions {
    pub(super) archive_dir: PathBuf,
    pub(super) aeron_dir: PathBuf,
    /// The stream of recording events. Each server has its own: a driver keeps for seconds what
    /// killed ones have published.
    pub(super) events_stream_id: i32,
    /// The media driver is a part of the process.
    pub(super) with_driver: bool,
    pub(super) sync_level: u8,
    pub(super) checksum: bool,
    /// Recorder and replayer have threads of their own.
    pub(super) dedicated: bool,
}

/// Runs a server until the supervisor wants its end.
pub(crate) fn play(options: &ServerOptions) -> std::result::Result<(), Failure> {
    let orders = Orders::read();
    let server = launch(options).map_err(|error| Failure::run("cannot start the server", error))?;
    say(&Notice::Ready);
    while orders.wait(Duration::from_secs(1)) != Some(Order::End) {}
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

/// A process that runs a server, and the thread that kills it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) options: ServerOptions,
    party: Party,
    start: Instant,
    deadline: Duration,
    has_struck: Arc<AtomicBool>,
    killer: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(
        options: ServerOptions,
        deadline: Duration,
    ) -> std::result::Result<Self, Failure> {
        let start = Instant::now();
        let party = Party::start(NAME, &options, |_| ())?;
        Ok(Self { options, party, start, deadline, has_struck: Arc::default(), killer: None })
    }

    /// Waits until the server is ready, and returns how long that took. `None` if the killer was faster.
    pub(super) fn await_ready(&mut self) -> std::result::Result<Option<Duration>, Finding> {
        let refused = |text: String| Err(Finding::new("refused to start", text));
        loop {
            if let Some(Notice::Ready) = self.party.notice(false) {
                return Ok(Some(self.start.elapsed()));
            }
            if self.was_killed() {
                return Ok(None);
            }
            // Not with a killer: the process id stays the server's until the kill.
            if self.killer.is_none() {
                if let Some(status) = self.ended()? {
                    return refused(self.party.describe(status));
                }
            }
            if self.start.elapsed() > self.deadline {
                return refused(format!("not ready after {:?}", self.start.elapsed()));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Has the server killed after a time.
    pub(super) fn kill_after(&mut self, delay: Duration) {
        let (pid, has_struck) = (Pid::from_raw(self.party.pid()), Arc::clone(&self.has_struck));
        self.killer = Some(thread::spawn(move || {
            thread::sleep(delay);
            // Before the kill, so that an error that the kill causes is known for one.
            has_struck.store(true, Ordering::Release);
            // The server is waited for when this thread has ended.
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }));
    }

    /// Returns whether the killer has struck, or is about to.
    pub(super) fn was_killed(&self) -> bool {
        self.has_struck.load(Ordering::Acquire)
    }

    /// Kills a server that has no killer, and waits for the end. Fails if the server has not died
    /// of the kill.
    pub(super) fn await_death(&mut self) -> std::result::Result<(), Finding> {
        if self.killer.is_none() {
            self.kill_after(Duration::ZERO);
        }
        self.await_killer();
        self.await_end(|status| status.signal() == Some(Signal::KILL.as_raw()))
    }

    /// Ends the server in order.
    pub(super) fn end(mut self) -> std::result::Result<(), Finding> {
        self.party.order(Order::End);
        self.await_end(|status| status.success())
    }

    fn await_end(
        &mut self,
        is_expected: impl Fn(&ExitStatus) -> bool,
    ) -> std::result::Result<(), Finding> {
        let deadline = Instant::now() + self.deadline;
        loop {
            match self.ended()? {
                Some(status) if is_expected(&status) => return Ok(()),
                Some(status) => return Err(Finding::new("crashed", self.party.describe(status))),
                None if Instant::now() >= deadline => {
                    return Err(Finding::new("stuck", "the server does not end"));
                }
                None => thread::sleep(PAUSE),
            }
        }
    }

    fn ended(&mut self) -> std::result::Result<Option<ExitStatus>, Finding> {
        self.party.ended().map_err(|error| Finding::new("crashed", error.to_string()))
    }

    fn await_killer(&mut self) {
        let _ = self.killer.take().map(JoinHandle::join);
    }
}

impl Drop for Server {
    /// The process id must not belong to another process when the killer strikes.
    fn drop(&mut self) {
        self.await_killer();
    }
}
