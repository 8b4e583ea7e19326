//! Servers on media drivers of this process, and sessions with them.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

use rusteron_archive::{
    Archive, ArchiveContext, ArchiveError, RecordingId, ReplayLength, ReplayParams, SourceLocation,
};
use rusteron_archive_server::{ArchiveServer, ArchiveServerContext, ArchiveThreadingMode, Result};
use rusteron_client::Aeron;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::{STREAM, await_recording, offer_numbered, replay_all};
use rusteron_test_support::{DEADLINE, await_some, await_that};
use tempfile::TempDir;

/// A server in a directory of its own, on a media driver of its own. Terms have 64 KiB and segments 128, so that a few
/// messages make many of them.
pub(crate) struct Fixture {
    server: Option<ArchiveServer>,
    pub(crate) driver: MediaDriver,
    dir: TempDir,
    context: ArchiveServerContext,
}

impl Fixture {
    pub(crate) fn launch() -> Self {
        Self::launch_with(|_| {})
    }

    pub(crate) fn launch_with(change: impl FnOnce(&mut ArchiveServerContext)) -> Self {
        let mut fixture = Self::prepare(change);
        fixture.restart();
        fixture
    }

    /// Everything but the server.
    pub(crate) fn prepare(change: impl FnOnce(&mut ArchiveServerContext)) -> Self {
        let driver = launch_driver();
        let dir = tempfile::tempdir().expect("a directory");
        let mut context = ArchiveServerContext::new();
        context
            .set_aeron_dir(driver.aeron_dir())
            .and_then(|context| context.set_archive_dir(dir.path().join("archive")))
            .and_then(|context| context.set_control_channel("aeron:udp?endpoint=localhost:0"))
            .and_then(|context| context.set_threading_mode(ArchiveThreadingMode::Shared))
            .and_then(|context| context.set_segment_file_length(128 * 1024))
            .expect("settings");
        change(&mut context);
        Self { server: None, driver, dir, context }
    }

    /// Launches the server, again on the same recordings.
    pub(crate) fn restart(&mut self) {
        self.server = Some(self.try_launch().expect("a server"));
    }

    pub(crate) fn try_launch(&self) -> Result<ArchiveServer> {
        ArchiveServer::launch(self.context.clone())
    }

    /// Takes the server out.
    pub(crate) fn take(&mut self) -> ArchiveServer {
        self.server.take().expect("a running server")
    }

    pub(crate) fn server(&self) -> &ArchiveServer {
        self.server.as_ref().expect("a running server")
    }

    pub(crate) fn context(&self) -> &ArchiveServerContext {
        &self.context
    }

    pub(crate) fn archive_dir(&self) -> PathBuf {
        self.dir.path().join("archive")
    }

    pub(crate) fn aeron(&self) -> Aeron {
        rusteron_test_support::connect(&self.driver)
    }

    pub(crate) fn connect(&self) -> Archive {
        Archive::connect(&self.aeron(), ipc_context()).expect("a session")
    }

    pub(crate) fn connect_over_udp(&self) -> Archive {
        let mut context = ipc_context();
        context
            .set_control_request_channel(self.server().control_channel())
            .and_then(|it| it.set_control_response_channel("aeron:udp?endpoint=localhost:0"))
            .expect("channels");
        Archive::connect(&self.aeron(), context).expect("a session")
    }
}

/// Launches a media driver with short terms.
pub(crate) fn launch_driver() -> MediaDriver {
    rusteron_test_support::launch_with(|context| {
        context
            .set_ipc_term_buffer_length(64 * 1024)?
            .set_term_buffer_length(64 * 1024)?
            // At each, it closes the images that have ended.
            .set_timer_interval(Duration::from_millis(20))?
            // On a busy machine, slow threads must not be timed out.
            .set_client_liveness_timeout(DEADLINE / 2)?
            .set_publication_unblock_timeout(DEADLINE)
    })
}

/// Settings of a session over IPC.
pub(crate) fn ipc_context() -> ArchiveContext {
    let mut context = ArchiveContext::new().expect("a context");
    context
        .set_control_request_channel("aeron:ipc")
        .and_then(|context| context.set_control_response_channel("aeron:ipc"))
        .and_then(|context| context.set_message_timeout(DEADLINE))
        .expect("settings");
    context
}

/// A session, and the errors that answer no request.
pub(crate) fn connect_with_errors(driver: &MediaDriver) -> (Archive, Receiver<ArchiveError>) {
    let (sender, errors) = mpsc::channel();
    let mut context = ipc_context();
    context.set_error_handler(move |error| _ = sender.send(error.clone())).expect("a handler");
    let aeron = rusteron_test_support::connect(driver);
    (Archive::connect(&aeron, context).expect("a session"), errors)
}

pub(crate) fn await_error(archive: &Archive, errors: &Receiver<ArchiveError>) -> ArchiveError {
    await_some("an error", || {
        archive.check_for_error_response().expect("it goes to the handler");
        errors.try_recv().ok()
    })
}

/// Everything that is recorded, without waiting for more.
pub(crate) fn recorded() -> ReplayParams {
    ReplayParams::new().length(ReplayLength::Recorded)
}

pub(crate) fn await_stop(archive: &Archive, recording_id: RecordingId) -> i64 {
    let stop = || archive.stop_position(recording_id).expect("an answer");
    await_that("the stop position", || stop().is_some());
    stop().expect("a position")
}

/// Continues a stopped recording up to so many messages, and stops it again.
pub(crate) fn extend(archive: &Archive, recording_id: RecordingId, numbers: Range<u64>) {
    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    let channel = descriptor.continuation("aeron:ipc").expect("a channel").expect("an end");
    let mut publication =
        archive.aeron().add_exclusive_publication(channel, STREAM).expect("a publication");
    // Not the publication of before, which the driver keeps for a while.
    let channel = format!("aeron:ipc?session-id={}", publication.session_id());
    archive
        .extend_recording(recording_id, &*channel, STREAM, SourceLocation::Local, true)
        .expect("a subscription");
    assert_eq!(await_recording(archive, publication.session_id()), recording_id);
    let end = offer_numbered(&mut publication, numbers.clone());
    archive.await_recorded(recording_id, end, DEADLINE).expect("a recording");
    drop(publication);
    assert_eq!(await_stop(archive, recording_id), end);
    assert_eq!(replay_all(archive, recording_id, recorded()), (0..numbers.end).collect::<Vec<_>>());
}

const TURNING: u8 = 0;
const PAUSED: u8 = 1;
const ENDED: u8 = 2;

/// Runs a server without threads in a loop, which can pause.
pub(crate) struct Turns {
    state: Arc<AtomicU8>,
    thread: Option<JoinHandle<ArchiveServer>>,
}

impl Turns {
    pub(crate) fn run(mut server: ArchiveServer) -> Self {
        let state = Arc::new(AtomicU8::new(TURNING));
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            loop {
                match shared.load(Ordering::Acquire) {
                    ENDED => return server,
                    PAUSED => std::thread::yield_now(),
                    _ if server.do_work().expect("a turn") == 0 => std::thread::yield_now(),
                    _ => {}
                }
            }
        });
        Self { state, thread: Some(thread) }
    }

    /// The turn in progress ends soon after.
    pub(crate) fn pause(&self) {
        self.state.store(PAUSED, Ordering::Release);
    }

    pub(crate) fn go_on(&self) {
        self.state.store(TURNING, Ordering::Release);
    }

    pub(crate) fn end(mut self) -> ArchiveServer {
        self.state.store(ENDED, Ordering::Release);
        self.thread.take().expect("a thread").join().expect("no panic")
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.state.store(ENDED, Ordering::Release);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
