//! Archives that end, alone or with their media driver.

use std::time::Duration;

use rusteron_archive::{
    Archive, ArchiveErrorKind, PersistentSubscription, PersistentSubscriptionContext, RecordingPos,
    ReplayLength, ReplayMerge, ReplayParams, SourceLocation, StartPosition,
};
use rusteron_client::Aeron;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::{
    ArchiveProcess, Options, REPLAY_STREAM, STREAM, drain, extend_what_was_kept, message, numbered,
    offer_numbered, offer_until_recorded, record, replay_all,
};
use rusteron_test_support::{DEADLINE, SmallFileSystem, await_some, await_that};

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

/// Requests time out until the driver has removed the archive's client; then the session is lost.
fn await_loss(archive: &Archive, recording_id: i64) {
    let error = archive.max_recorded_position(recording_id).expect_err("nobody answers");
    assert!(
        matches!(error.kind(), ArchiveErrorKind::Timeout | ArchiveErrorKind::NotConnected),
        "{error:?}"
    );
    await_that("the end of the session", || !archive.is_connected());
    let error = archive.max_recorded_position(recording_id).expect_err("it is lost");
    assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
    assert!(!archive.aeron().is_closed(), "the media driver lives");
}

#[test]
fn recording_is_extended() {
    let (_driver, mut server) = launch();
    let aeron = server.aeron();
    let archive = connect(&server, &aeron);
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let counter =
        RecordingPos::find_by_recording_id(&aeron, recording_id, None).expect("a counter");
    // Killed in the middle of it, with messages on their way.
    let (next, reported) = offer_until_recorded(&mut publication, &counter, 1_000_000);
    server.kill();
    await_loss(&archive, recording_id);
    await_that("the end of the counter", || !counter.is_active());
    assert!(!publication.is_closed() && !publication.is_connected());
    drop((publication, counter, archive));

    server.restart();
    let archive = connect(&server, &aeron);
    extend_what_was_kept(&archive, recording_id, reported, next);
}

#[test]
fn replay_resumes() {
    const COUNT: u64 = 5000;
    let (_driver, mut server) = launch();
    let aeron = server.aeron();
    let archive = connect(&server, &aeron);
    let (publication, recording_id, _) = record(&archive, COUNT);
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
    // The whole does not fit into its window: there is more to send when the archive is killed.
    let mut subscription =
        archive.replay(recording_id, "aeron:ipc", REPLAY_STREAM, recorded()).expect("a replay");
    let mut received = Vec::new();
    let mut position = 0;
    let mut poll = |received: &mut Vec<u64>| {
        subscription
            .poll(
                |text, header| {
                    received.push(numbered(text));
                    position = header.position();
                },
                10,
            )
            .expect("the media driver lives");
        subscription.is_connected()
    };
    await_that("a part of the replay", || {
        poll(&mut received);
        received.len() >= 1000
    });
    server.kill();
    await_loss(&archive, recording_id);
    await_that("the end of the replay", || !poll(&mut received));
    assert!((1000..COUNT as usize).contains(&received.len()), "{}", received.len());
    drop((subscription, archive));

    server.restart();
    let archive = connect(&server, &aeron);
    received.extend(replay_all(&archive, recording_id, recorded().position(position)));
    assert_eq!(received, (0..COUNT).collect::<Vec<_>>());
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
    recording_id: i64,
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

/// Requests return an error once the archive has ended, instead of waiting forever.
fn await_client_loss(archive: &Archive, recording_id: i64) {
    let error = await_some("an error", || archive.max_recorded_position(recording_id).err());
    assert!(
        matches!(
            error.kind(),
            ArchiveErrorKind::Timeout
                | ArchiveErrorKind::NotConnected
                | ArchiveErrorKind::Client(_)
        ),
        "{error:?}"
    );
    await_that("the end of the client", || archive.aeron().is_closed());
    let error = archive.max_recorded_position(recording_id).expect_err("it is lost");
    assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
}

#[test]
fn recording_survives_kill() {
    let mut server = ArchiveProcess::launch();
    let archive = impatient(&server);
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let counter =
        RecordingPos::find_by_recording_id(archive.aeron(), recording_id, archive.archive_id())
            .expect("a counter");
    // Killed in the middle of it, with messages on their way.
    let (next, reported) = offer_until_recorded(&mut publication, &counter, 1_000_000);
    server.kill();
    await_client_loss(&archive, recording_id);
    // The client says that it is closed before each of its resources does.
    await_that("the end of the publication", || publication.is_closed());
    drop((publication, counter, archive));

    server.restart();
    let archive = server.connect();
    extend_what_was_kept(&archive, recording_id, reported, next);
}

#[test]
fn replay_resumes_after_kill() {
    let mut server = ArchiveProcess::launch();
    let archive = impatient(&server);
    let (publication, recording_id, _) = record(&archive, 5000);
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
    let mut subscription =
        archive.replay(recording_id, "aeron:ipc", REPLAY_STREAM, recorded()).expect("a replay");
    let mut received = Vec::new();
    let mut position = 0;
    await_that("a part of the replay", || {
        let poll = subscription.poll(
            |text, header| {
                received.push(numbered(text));
                position = header.position();
            },
            10,
        );
        poll.expect("an open subscription");
        received.len() >= 1000
    });
    server.kill();
    await_client_loss(&archive, recording_id);
    // Messages that have arrived can be read as long as their image is there. Then the subscription reports its
    // end.
    await_that("the end of the subscription", || {
        let poll = subscription.poll(
            |text, header| {
                received.push(numbered(text));
                position = header.position();
            },
            10,
        );
        poll.is_err()
    });
    drop((subscription, archive));

    server.restart();
    let archive = server.connect();
    let rest = replay_all(&archive, recording_id, recorded().position(position));
    received.extend(rest);
    assert_eq!(received, (0..5000).collect::<Vec<_>>());
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
        .start(archive, subscription, 0)
        .expect("a merge");
    server.kill();
    // The parts come back before and after the client has noticed, whichever it is by now.
    let (archive, subscription) = merge.into_parts().expect("the parts");
    await_that("the client has noticed", || aeron.is_closed());
    assert!(!archive.is_connected());
    await_that("the end of the subscription", || subscription.is_closed());
}

#[test]
fn slow_consumer_loses_nothing() {
    const COUNT: u64 = 1_000_000;
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let channel = "aeron:ipc?term-length=1m";
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication(channel, STREAM).expect("a publication");
    let mut position = 0;
    for number in 0..COUNT {
        position = rusteron_test_support::offer(&mut publication, &number.to_le_bytes());
    }
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");

    let endpoint = format!(
        "aeron:udp?endpoint=localhost:{}|term-length=64k",
        rusteron_test_support::free_port()
    );
    for channel in ["aeron:ipc?term-length=64k".to_owned(), endpoint] {
        let mut subscription =
            archive.replay(recording_id, &channel, REPLAY_STREAM, recorded()).expect("a replay");
        let mut next = 0_u64;
        let mut pauses = 0;
        await_that("the whole replay", || {
            let poll = subscription.poll(
                |text, _| {
                    assert_eq!(text, next.to_le_bytes(), "{channel}");
                    next += 1;
                },
                1000,
            );
            poll.expect("an open subscription");
            if next / 50_000 > pauses {
                // The replay fills its window, and waits.
                pauses += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            next == COUNT
        });
    }
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
    assert_eq!((error.code(), error.relevant_id()), (215, Some(recording_id)));
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

#[test]
fn full_disk_is_reported() {
    let Some(disk) = SmallFileSystem::mount("2m") else { return };
    let options = Options {
        // The catalogue alone would fill it.
        properties: vec![
            "aeron.archive.catalog.capacity=65536".into(),
            "aeron.archive.low.storage.space.threshold=262144".into(),
        ],
        archive_dir: Some(disk.path().join("archive")),
        ..Options::default()
    };
    let server = ArchiveProcess::launch_with(options);
    let archive = server.connect();
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let counter =
        RecordingPos::find_by_recording_id(archive.aeron(), recording_id, archive.archive_id())
            .expect("a counter");
    let mut next = 0;
    await_that("the end of the recording", || {
        // As many as are accepted: each return yields, which takes long on a busy machine.
        while publication.offer(&message(next)).is_ok() {
            next += 1;
        }
        !counter.is_active()
    });
    let stop = archive.stop_position(recording_id).expect("an answer").expect("it has stopped");
    assert!(stop > 0 && stop < 2 * 1024 * 1024, "{stop}");
    let error = await_some("a refusal", || {
        archive.start_recording("aeron:ipc", 77, SourceLocation::Local, false).err()
    });
    assert_eq!(error.kind(), ArchiveErrorKind::StorageSpace, "{error:?}");
    assert_eq!(error.code(), 211);
    let kept = replay_all(&archive, recording_id, recorded());
    assert_eq!(kept, (0..kept.len() as u64).collect::<Vec<_>>());
    assert!(!kept.is_empty());
    archive.purge_recording(recording_id).expect("a count");
    // The file has its space until the archive has closed it for the replay, which has just ended.
    await_some("space", || {
        archive.start_recording("aeron:ipc", 77, SourceLocation::Local, false).ok()
    });
}

#[cfg(unix)]
#[test]
fn orderly_stop_is_noticed() {
    let mut server = ArchiveProcess::launch();
    let archive = server.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    server.stop();
    let error = await_some("an error", || archive.start_position(recording_id).err());
    assert!(
        matches!(error.kind(), ArchiveErrorKind::NotConnected | ArchiveErrorKind::Client(_)),
        "{error:?}"
    );
}
