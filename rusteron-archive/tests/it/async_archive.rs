//! Requests that do not block.

use std::sync::mpsc;
use std::task::{Context as TaskContext, Poll, Waker};
#[cfg(unix)]
use std::time::Instant;

use rusteron_archive::{
    Archive, ArchiveErrorKind, AsyncArchive, RecordingId, RecordingSignalKind, ReplayLength,
    ReplayParams, ReplicationParams, Request, Result, SourceLocation,
};
use rusteron_client::{Aeron, ErrorKind};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::fake_archive::{
    FakeArchive, Message, STOP_POSITION, well_formed,
};
use rusteron_test_support::archive::{
    ArchiveProcess, Options, REPLAY_STREAM, STREAM, numbered, record,
};
#[cfg(unix)]
use rusteron_test_support::{DEADLINE, ForkedChild};
use rusteron_test_support::{await_some, await_that, connect};

/// Polls a request until it has an outcome.
fn outcome<T>(request: &mut Request<T>) -> Result<T> {
    await_some("an outcome", || request.poll().transpose())
}

fn answer<T>(mut request: Result<Request<T>>) -> T {
    outcome(request.as_mut().expect("a request")).expect("an answer")
}

/// A session with an archive behind IPC channels.
fn ipc_session(aeron: &Aeron) -> AsyncArchive {
    let mut context = rusteron_archive::ArchiveContext::new().expect("a context");
    context
        .set_control_request_channel("aeron:ipc")
        .and_then(|context| context.set_control_response_channel("aeron:ipc"))
        .expect("channels");
    AsyncArchive::new(Archive::connect(aeron, context).expect("a session"))
}

/// An archive in a process of its own, on a media driver of this process.
fn launch_alone() -> (MediaDriver, ArchiveProcess) {
    let driver =
        rusteron_test_support::launch_with(|context| context.set_ipc_term_buffer_length(64 * 1024));
    let aeron_dir = Some(driver.aeron_dir().to_owned());
    let server = ArchiveProcess::launch_with(Options { aeron_dir, ..Options::default() });
    (driver, server)
}

#[test]
fn answers_in_any_order_of_polls() {
    let server = ArchiveProcess::launch();
    let blocking = server.connect();
    let (publication, recording_id, position) = record(&blocking, 100);
    drop(publication);
    await_that("the end", || blocking.stop_position(recording_id).expect("an answer").is_some());
    let archive = AsyncArchive::new(server.connect());
    let requests: Vec<_> = (0..100)
        .map(|number| match number % 3 {
            0 => archive.start_position(recording_id).map(|request| (0, request)),
            1 => archive.max_recorded_position(recording_id).map(|request| (position, request)),
            _ => archive.max_recorded_position(4711.into()).map(|request| (-1, request)),
        })
        .collect::<Result<_>>()
        .expect("space for all of them");
    // The last first.
    for (expected, mut request) in requests.into_iter().rev() {
        match outcome(&mut request) {
            Ok(position) => assert_eq!(position, expected),
            Err(error) => {
                assert_eq!(expected, -1, "{error:?}");
                assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
                assert_eq!((error.relevant_id(), error.code()), (Some(4711), 205));
                assert_eq!(error.correlation_id(), Some(request.correlation_id()));
                assert_eq!(error.operation(), "max_recorded_position");
            }
        }
        let error = request.poll().expect_err("the outcome is given once");
        assert_eq!(error.kind(), ArchiveErrorKind::Client(ErrorKind::IllegalState), "{error:?}");
    }
}

#[test]
fn each_request_is_answered() {
    let server = ArchiveProcess::launch();
    let (sender, signals) = mpsc::channel();
    let mut context = server.context();
    context
        .set_recording_signal_consumer(move |signal| sender.send(*signal).expect("us"))
        .expect("");
    let aeron = server.aeron();
    let archive = AsyncArchive::new(Archive::connect(&aeron, context).expect("a session"));
    let (channel, local) = ("aeron:ipc", SourceLocation::Local);

    let subscription_id = answer(archive.start_recording(channel, STREAM, local, false));
    let mut publication = aeron.add_exclusive_publication(channel, STREAM).expect("a publication");
    let started = await_some("a signal", || {
        archive.poll().expect("a session");
        signals.try_recv().ok()
    });
    assert_eq!(started.kind, RecordingSignalKind::Start);
    let id = started.recording_id;
    let end = rusteron_test_support::archive::offer_numbered(&mut publication, 0..100);
    await_that("the recording", || answer(archive.recording_position(id)) == Some(end));
    assert_eq!(answer(archive.start_position(id)), 0);
    assert_eq!(answer(archive.stop_position(id)), None);
    let listed = answer(archive.recording_subscriptions(0, 10, "ipc", Some(STREAM)));
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].subscription_id, subscription_id);
    assert!(answer(archive.try_stop_recording_by_identity(id)));
    assert!(!answer(archive.try_stop_recording_by_identity(id)));
    await_that("the stop", || answer(archive.stop_position(id)) == Some(end));
    let other = answer(archive.start_recording(channel, STREAM + 1, local, false));
    answer(archive.stop_recording_subscription(other));
    let mut unknown = archive.stop_recording_subscription(other).expect("a request");
    let error = outcome(&mut unknown).expect_err("it is gone");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownSubscription, "{error:?}");
    drop(publication);

    let mut subscription = aeron.add_subscription(channel, REPLAY_STREAM).expect("a subscription");
    let params = ReplayParams::new().length(ReplayLength::Recorded);
    let replay = answer(archive.start_replay(id, channel, REPLAY_STREAM, params));
    let mut received = Vec::new();
    await_that("the replay", || {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
        received.len() == 100
    });
    answer(archive.stop_replay(replay));
    answer(archive.stop_all_replays(Some(id)));

    let session_id = answer(archive.recording(id)).expect("there").session_id;
    assert_eq!(answer(archive.recording(id.saturating_next())), None);
    let find = |id| archive.find_last_matching_recording(0.into(), "ipc", STREAM, id);
    assert_eq!(answer(find(session_id)), Some(id));
    assert_eq!(answer(find(session_id.wrapping_add(1))), None);
    answer(archive.update_channel(id, "aeron:ipc?alias=other"));
    assert_eq!(answer(archive.recordings_for_uri(0.into(), 9, "other", STREAM)).len(), 1);
    assert_eq!(answer(archive.recordings_for_uri(0.into(), 9, "nothing", STREAM)), []);
    assert_eq!(answer(archive.delete_detached_segments(id)), 0);
    assert_eq!(answer(archive.attach_segments(id)), 0);
    let mut purge = archive.purge_segments(id, 0).expect("a request");
    let error = outcome(&mut purge).expect_err("it begins there");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition, "{error:?}");
    answer(archive.truncate_recording(id, 0));
    // Files are deleted after the answer, and the recording cannot be extended meanwhile.
    await_that("the deletion", || {
        archive.poll().expect("a session");
        signals.try_iter().any(|signal| signal.kind == RecordingSignalKind::Delete)
    });
    let extension = answer(archive.extend_recording(id, channel, STREAM, local, true));
    assert_ne!(extension, subscription_id);
    answer(archive.stop_recording(channel, STREAM));
    answer(archive.purge_recording(id));
    assert_eq!(answer(archive.recordings(0.into(), 100)), []);

    let control = server.control_channel();
    let params = ReplicationParams::new().channel_tag_id(7);
    let mut replicate = archive.replicate(4711.into(), control, 10, &params).expect("a request");
    // The archive asks the source first, and answers with an error or an id.
    if let Ok(replication_id) = outcome(&mut replicate) {
        let mut stop = archive.stop_replication(replication_id).expect("a request");
        let _either = outcome(&mut stop);
    }
}

#[test]
fn listing_of_many_and_a_second_listing() {
    /// An archive records 20 streams at most.
    const COUNT: i32 = 20;
    let server = ArchiveProcess::launch();
    let blocking = server.connect();
    let recorded: Vec<_> = (0..COUNT)
        .map(|number| {
            blocking
                .add_recorded_exclusive_publication("aeron:ipc", STREAM + number)
                .expect("a publication")
        })
        .collect();
    let archive = AsyncArchive::new(server.connect());
    let (mut all, mut one) = (
        archive.recordings(0.into(), 1000).expect("sent"),
        archive.recording(0.into()).expect("sent"),
    );
    // The archive may have ended the first listing before the second arrives.
    match outcome(&mut one) {
        Ok(found) => assert_eq!(found.expect("it exists").recording_id, 0),
        Err(error) => assert_eq!(error.kind(), ArchiveErrorKind::ActiveListing, "{error:?}"),
    }
    let ids = |found: Vec<rusteron_archive::RecordingDescriptor>| {
        found.into_iter().map(|found| found.recording_id).collect::<Vec<_>>()
    };
    let all = ids(outcome(&mut all).expect("all of them"));
    assert_eq!(all, (0..i64::from(COUNT)).collect::<Vec<_>>());
    assert_eq!(ids(answer(archive.recordings(5.into(), 10))), (5..15).collect::<Vec<_>>());
    for count in [0, -1] {
        let error = archive.recordings(0.into(), count).map(drop).expect_err("no listing");
        assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error:?}");
    }
    let error = archive.recordings((-1).into(), 10).map(drop).expect_err("no id");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error:?}");
    drop(recorded);
}

#[test]
fn dropped_request_and_future() {
    let server = ArchiveProcess::launch();
    let archive = AsyncArchive::new(server.connect());
    let dropped = archive.recordings(0.into(), 10).expect("sent");
    drop(dropped);
    let mut request = archive.max_recorded_position(3.into()).expect("sent");
    // A request keeps its session.
    drop(archive);
    let mut task = TaskContext::from_waker(Waker::noop());
    let outcome =
        await_some("the outcome", || match std::pin::Pin::new(&mut request).poll(&mut task) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        });
    let error = outcome.expect_err("there is none");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
}

#[test]
#[cfg(unix)]
fn back_pressure_is_retryable() {
    let (_driver, server) = launch_alone();
    let aeron = server.aeron();
    let archive = AsyncArchive::new(Archive::connect(&aeron, server.context()).expect("a session"));
    let signal = |name: &str| {
        let pid = server.pid().to_string();
        let status = std::process::Command::new("kill").args([name, &pid]).status();
        assert!(status.expect("kill").success());
    };
    signal("-STOP");
    let mut requests = Vec::new();
    let error = await_some("back pressure", || match archive.max_recorded_position(0.into()) {
        Ok(request) => {
            requests.push(request);
            None
        }
        Err(error) => Some(error),
    });
    assert_eq!(error.kind(), ArchiveErrorKind::BackPressured, "{error:?}");
    assert!(error.is_retryable());
    signal("-CONT");
    assert!(requests.len() > 10, "{}", requests.len());
    for mut request in requests {
        let error = outcome(&mut request).expect_err("there is no recording");
        assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
    }
    answer(archive.recordings(0.into(), 10));
}

#[test]
fn killed_archive_fails_requests() {
    let (_driver, mut server) = launch_alone();
    let aeron = server.aeron();
    let archive = AsyncArchive::new(Archive::connect(&aeron, server.context()).expect("a session"));
    answer(archive.recordings(0.into(), 10));
    server.kill();
    let mut waiting: Vec<_> = (0..3)
        .map(|id| archive.start_position(RecordingId::new(id)).expect("still connected"))
        .collect();
    for request in &mut waiting {
        let error = outcome(request).expect_err("nobody answers");
        assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
        assert_eq!(error.operation(), "start_position");
    }
    let error = archive.poll().expect_err("it is lost");
    assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
    let error = archive.start_position(0.into()).map(drop).expect_err("it is lost");
    assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
    assert!(!error.is_retryable() && !aeron.is_closed());
}

#[test]
fn closed_driver_fails_requests() {
    let (driver, server) = launch_alone();
    let aeron = connect(&driver);
    let archive = Archive::connect(&aeron, server.context()).expect("a session");
    let archive = AsyncArchive::new(archive);
    drop(driver);
    await_that("the end of the client", || aeron.is_closed());
    let error = archive.start_position(0.into()).map(drop).expect_err("closed");
    assert_eq!(error.kind(), ArchiveErrorKind::Client(ErrorKind::ClientClosed), "{error:?}");
    let error = archive.poll().expect_err("closed");
    assert_eq!(error.kind(), ArchiveErrorKind::Client(ErrorKind::ClientClosed), "{error:?}");
}

#[test]
fn malformed_message_fails_poll_of_session() {
    let driver = rusteron_test_support::launch();
    let (archives, clients): (Aeron, Aeron) = (connect(&driver), connect(&driver));
    let _fake = FakeArchive::launch(&archives, |request| {
        let mut messages = well_formed(request);
        if request.template == STOP_POSITION {
            let mut malformed = Message::control_response(request.correlation_id, 1, 0, "text");
            malformed.texts[0].0 = u32::MAX;
            messages.insert(0, malformed.encode());
        }
        messages
    });
    let archive = ipc_session(&clients);
    assert_eq!(answer(archive.stop_position(0.into())), Some(42), "the right one comes after it");
    let error = archive.poll().expect_err("the malformed one");
    assert_eq!(error.kind(), ArchiveErrorKind::MalformedMessage, "{error:?}");
    archive.poll().expect("reported once");
}

#[test]
#[cfg(unix)]
fn forked_child_waits_for_no_lock() {
    const CHILDREN: usize = 50;
    let driver = rusteron_test_support::launch();
    let (archives, clients): (Aeron, Aeron) = (connect(&driver), connect(&driver));
    let _fake = FakeArchive::launch(&archives, well_formed);
    let archive = ipc_session(&clients);
    let (end, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let _end = end;
        let archive = &archive;
        // Holds the lock most of the time.
        scope.spawn(move || {
            while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                archive.poll().expect("a session");
            }
        });
        for _child in 0..CHILDREN {
            // The parent's remains.
            let mut request = Some(archive.stop_position(0.into()).expect("a request"));
            let child = ForkedChild::run(|| {
                let mut request = request.take().expect("a request");
                let closed = ArchiveErrorKind::Client(ErrorKind::ClientClosed);
                assert_eq!(request.poll().expect_err("the parent's").kind(), closed);
                assert_eq!(archive.poll().expect_err("the parent's").kind(), closed);
            });
            let deadline = Instant::now() + DEADLINE;
            child.expect("a child").await_success(deadline).expect("a child that succeeds");
            assert_eq!(answer(Ok(request.expect("a request"))), Some(42));
        }
    });
}
