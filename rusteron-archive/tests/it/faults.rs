//! Archives that end, alone or with their media driver.

use std::time::Duration;

use rusteron_archive::{
    Archive, ArchiveErrorKind, PersistentSubscription, PersistentSubscriptionContext, RecordingId,
    ReplayLength, ReplayMerge, ReplayParams, StartPosition,
};
use rusteron_client::Aeron;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::{
    ArchiveProcess, Options, REPLAY_STREAM, STREAM, drain, numbered, offer_numbered, record,
};
use rusteron_test_support::{await_some, await_that};

/// Long enough for an archive that lives, short enough to wait for one that does not.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A media driver of this process, and an archive on it. Terms are short, so that replays wait.
fn launch() -> (MediaDriver, ArchiveProcess) {
    let driver =
        rusteron_test_support::launch_with(|context| context.set_ipc_term_buffer_length(64 * 1024));
    let aeron_dir = Some(driver.aeron_dir().to_owned());
    let server = ArchiveProcess::launch_with(Options { aeron_dir, ..Options::default() });
    (driver, server)
}

fn connect(server: &ArchiveProcess, aeron: &Aeron) -> Archive {
    let mut context = server.context();
    context.set_message_timeout(TIMEOUT).expect("a timeout");
    Archive::connect(aeron, context).expect("a session")
}

fn recorded() -> ReplayParams {
    ReplayParams::new().length(ReplayLength::Recorded)
}

#[test]
fn session_is_not_connected() {
    let (_driver, mut server) = launch();
    let aeron = server.aeron();
    let archive = connect(&server, &aeron);
    let (mut publication, recording_id, position) = record(&archive, 10);
    server.kill();
    // Waiting for messages that are not recorded any more.
    let end = offer_numbered(&mut publication, 10..20);
    assert!(end > position);
    let error = archive.await_recorded(recording_id, end, TIMEOUT).expect_err("nobody records");
    assert!(
        matches!(error.kind(), ArchiveErrorKind::Timeout | ArchiveErrorKind::NotConnected),
        "{error:?}"
    );
    assert!(error.message().contains("the archive at aeron:ipc "), "{error}");
    await_that("the end of the session", || !archive.is_connected());
    let error = archive.recordings().next().expect("an item").expect_err("it is lost");
    assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
    assert_eq!(error.message(), "the archive at aeron:ipc is gone; connect again");
    let error = await_some("an error", || archive.poll_for_recording_signals().err());
    assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
    // A request for another session gets no answer either.
    let mut context = server.context();
    context.set_message_timeout(Duration::from_millis(100)).expect("a timeout");
    let error = Archive::connect(&aeron, context).expect_err("nobody is there");
    assert_eq!(error.kind(), ArchiveErrorKind::Timeout, "{error:?}");
    assert!(!aeron.is_closed());
}

#[test]
fn merge_fails() {
    const COUNT: u64 = 5000;
    let (_driver, mut server) = launch();
    let aeron = server.aeron();
    let archive = connect(&server, &aeron);
    let (_publication, recording_id, _) = record(&archive, COUNT);
    let subscription =
        aeron.add_subscription("aeron:udp?control-mode=manual", STREAM).expect("a subscription");
    let live = format!("aeron:udp?endpoint=localhost:{}", rusteron_test_support::free_port());
    let mut merge =
        ReplayMerge::builder("aeron:udp?linger=0", "aeron:udp?endpoint=localhost:0", &live)
            .progress_timeout(TIMEOUT)
            .start(connect(&server, &aeron), subscription, recording_id)
            .expect("a merge");
    let mut received = Vec::new();
    await_that("a part of the replay", || {
        merge.poll(|text, _| received.push(numbered(text)), 10).expect("a merge");
        received.len() >= 1000
    });
    server.kill();
    let error =
        await_some("an error", || merge.poll(|text, _| received.push(numbered(text)), 10).err());
    assert!(
        matches!(error.kind(), ArchiveErrorKind::Timeout | ArchiveErrorKind::NotConnected),
        "{error:?}"
    );
    assert!((1000..COUNT as usize).contains(&received.len()), "{}", received.len());
    assert!(received.iter().copied().eq(0..received.len() as u64));
    let (session, subscription) = merge.into_parts().expect("the parts");
    await_that("the end of the session", || !session.is_connected());
    assert!(!subscription.is_closed() && !aeron.is_closed());
}

/// Has received so many messages of a recording, and goes on.
fn subscribe(
    server: &ArchiveProcess,
    archive: &Archive,
    recording_id: RecordingId,
    received: &mut Vec<u64>,
    count: usize,
) -> PersistentSubscription {
    let mut context = PersistentSubscriptionContext::new(
        recording_id,
        "aeron:ipc",
        STREAM,
        "aeron:ipc",
        REPLAY_STREAM,
    )
    .expect("valid settings");
    context.set_start_position(StartPosition::Start).expect("a position");
    let mut settings = server.context();
    settings.set_message_timeout(TIMEOUT).expect("a timeout");
    let mut subscription =
        PersistentSubscription::new(archive.aeron(), settings, context).expect("a subscription");
    await_that("messages", || {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
        received.len() >= count
    });
    subscription
}

#[test]
fn persistent_subscription_stays_live() {
    let (_driver, mut server) = launch();
    let aeron = server.aeron();
    let archive = connect(&server, &aeron);
    let (mut publication, recording_id, _) = record(&archive, 100);
    let mut received = Vec::new();
    let mut subscription = subscribe(&server, &archive, recording_id, &mut received, 100);
    let mut poll = |received: &mut Vec<u64>| {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("a subscription");
        subscription.is_live()
    };
    await_that("the live stream", || poll(&mut received));
    server.kill();
    // The dead archive's window holds the publisher up, until the media driver gives it up.
    std::thread::scope(|scope| {
        scope.spawn(|| offer_numbered(&mut publication, 100..2000));
        await_that("what is live", || {
            assert!(poll(&mut received), "it needs no archive");
            received.len() == 2000
        });
    });
    assert_eq!(received, (0..2000).collect::<Vec<_>>());
}

#[test]
fn persistent_subscription_continues() {
    const COUNT: u64 = 5000;
    let (_driver, mut server) = launch();
    let aeron = server.aeron();
    let archive = connect(&server, &aeron);
    let (mut publication, recording_id, _) = record(&archive, COUNT);
    let mut received = Vec::new();
    let mut subscription = subscribe(&server, &archive, recording_id, &mut received, 1000);
    assert!(subscription.is_replaying());
    server.kill();
    let mut poll = |received: &mut Vec<u64>| {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("a subscription");
        subscription.is_live()
    };
    await_that("the end of the session", || {
        poll(&mut received);
        // The driver ends a stream of a dead publisher only after its subscriber has read it.
        let _ = archive.poll_for_recording_signals();
        !archive.is_connected()
    });
    assert!(received.len() < COUNT as usize, "it was in the middle of the replay");
    drop(archive);

    server.restart();
    await_that("the live stream", || poll(&mut received));
    assert_eq!(received, (0..COUNT).collect::<Vec<_>>());
    offer_numbered(&mut publication, COUNT..COUNT + 10);
    await_that("what is live", || {
        poll(&mut received);
        received.len() as u64 >= COUNT + 10
    });
    assert_eq!(received, (0..COUNT + 10).collect::<Vec<_>>());
}

fn impatient(server: &ArchiveProcess) -> Archive {
    let mut context = rusteron_client::Context::new().expect("a context");
    context
        .set_dir(server.aeron_dir())
        .and_then(|context| context.set_driver_timeout(TIMEOUT))
        .expect("settings");
    let aeron = Aeron::connect(context).expect("a client");
    let mut context = server.context();
    context.set_message_timeout(TIMEOUT).expect("a timeout");
    Archive::connect(&aeron, context).expect("a session")
}

#[test]
fn merge_closes_without_driver() {
    let mut server = ArchiveProcess::launch();
    let archive = impatient(&server);
    let aeron = archive.aeron().clone();
    let subscription =
        aeron.add_subscription("aeron:udp?control-mode=manual", STREAM).expect("a subscription");
    let any = "aeron:udp?endpoint=localhost:0";
    let live = format!("aeron:udp?endpoint=localhost:{}", rusteron_test_support::free_port());
    let merge = ReplayMerge::builder("aeron:udp?linger=0", any, &live)
        .start(archive, subscription, 0.into())
        .expect("a merge");
    server.kill();
    // The parts come back before and after the client has noticed, whichever it is by now.
    let (archive, subscription) = merge.into_parts().expect("the parts");
    await_that("the client has noticed", || aeron.is_closed());
    assert!(!archive.is_connected());
    await_that("the end of the subscription", || subscription.is_closed());
}

#[test]
fn empty_recording() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer") == Some(0));
    let error = archive
        .replay(recording_id, "aeron:ipc", REPLAY_STREAM, recorded())
        .expect_err("there is nothing");
    assert_eq!(error.kind(), ArchiveErrorKind::EmptyRecording, "{error:?}");
    assert_eq!((error.code(), error.relevant_id()), (215, Some(recording_id.get())));
    // One that is being recorded is not over: its replay waits.
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let mut subscription = archive
        .replay(recording_id, "aeron:ipc", REPLAY_STREAM, ReplayParams::new())
        .expect("a replay");
    offer_numbered(&mut publication, 0..3);
    drop(publication);
    assert_eq!(drain(&mut subscription), [0, 1, 2]);
}
