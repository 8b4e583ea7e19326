//! An archive in a process of its own that is killed while the media driver lives on.

use std::time::Duration;

use rusteron_archive::{
    Archive, ArchiveErrorKind, PersistentSubscription, PersistentSubscriptionContext, RecordingPos,
    ReplayLength, ReplayMerge, ReplayParams, StartPosition,
};
use rusteron_client::Aeron;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::{
    JavaArchive, Options, REPLAY_STREAM, STREAM, await_recording, extend_what_was_kept, numbered,
    offer_numbered, offer_until_recorded, record, replay_all,
};
use rusteron_test_support::{await_some, await_that};

/// Long enough for an archive that lives, short enough to wait for one that does not.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A media driver of this process, and an archive on it. Terms are short, so that replays wait.
fn launch() -> Option<(MediaDriver, JavaArchive)> {
    let driver =
        rusteron_test_support::launch_with(|context| context.set_ipc_term_buffer_length(64 * 1024));
    let aeron_dir = Some(driver.aeron_dir().to_owned());
    let java = JavaArchive::launch_with(Options { aeron_dir, ..Options::default() })?;
    Some((driver, java))
}

fn connect(java: &JavaArchive, aeron: &Aeron) -> Archive {
    let mut context = java.context();
    context.set_message_timeout(TIMEOUT).expect("a timeout");
    Archive::connect(aeron, context).expect("a session")
}

fn recorded() -> ReplayParams {
    ReplayParams::new().length(ReplayLength::Recorded)
}

/// First the archive does not answer. Then the driver gives the archive up, and the archive is
/// gone.
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
    let Some((_driver, mut java)) = launch() else { return };
    let aeron = java.aeron();
    let archive = connect(&java, &aeron);
    let mut publication =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let recording_id = await_recording(&archive, publication.session_id());
    let counter =
        RecordingPos::find_by_recording_id(&aeron, recording_id, None).expect("a counter");
    // Killed in the middle of it, with messages on their way.
    let (next, reported) = offer_until_recorded(&mut publication, &counter, 1_000_000);
    java.kill();
    await_loss(&archive, recording_id);
    await_that("the end of the counter", || !counter.is_active());
    assert!(!publication.is_closed() && !publication.is_connected());
    drop((publication, counter, archive));

    java.restart();
    let archive = connect(&java, &aeron);
    extend_what_was_kept(&archive, recording_id, reported, next);
}

#[test]
fn replay_resumes() {
    const COUNT: u64 = 5000;
    let Some((_driver, mut java)) = launch() else { return };
    let aeron = java.aeron();
    let archive = connect(&java, &aeron);
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
    java.kill();
    await_loss(&archive, recording_id);
    await_that("the end of the replay", || !poll(&mut received));
    assert!((1000..COUNT as usize).contains(&received.len()), "{}", received.len());
    drop((subscription, archive));

    java.restart();
    let archive = connect(&java, &aeron);
    received.extend(replay_all(&archive, recording_id, recorded().position(position)));
    assert_eq!(received, (0..COUNT).collect::<Vec<_>>());
}

#[test]
fn session_is_not_connected() {
    let Some((_driver, mut java)) = launch() else { return };
    let aeron = java.aeron();
    let archive = connect(&java, &aeron);
    let (mut publication, recording_id, position) = record(&archive, 10);
    java.kill();
    // Waiting for messages that are not recorded any more.
    let end = offer_numbered(&mut publication, 10..20);
    assert!(end > position);
    let error = archive.await_recorded(recording_id, end, TIMEOUT).expect_err("nobody records");
    assert!(
        matches!(error.kind(), ArchiveErrorKind::Timeout | ArchiveErrorKind::NotConnected),
        "{error:?}"
    );
    await_that("the end of the session", || !archive.is_connected());
    let error = archive.recordings().next().expect("an item").expect_err("it is lost");
    assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
    let error = await_some("an error", || archive.poll_for_recording_signals().err());
    assert_eq!(error.kind(), ArchiveErrorKind::NotConnected, "{error:?}");
    // A request for another session gets no answer either.
    let mut context = java.context();
    context.set_message_timeout(Duration::from_millis(100)).expect("a timeout");
    let error = Archive::connect(&aeron, context).expect_err("nobody is there");
    assert_eq!(error.kind(), ArchiveErrorKind::Timeout, "{error:?}");
    assert!(!aeron.is_closed());
}

#[test]
fn merge_fails() {
    const COUNT: u64 = 5000;
    let Some((_driver, mut java)) = launch() else { return };
    let aeron = java.aeron();
    let archive = connect(&java, &aeron);
    let (_publication, recording_id, _) = record(&archive, COUNT);
    let subscription =
        aeron.add_subscription("aeron:udp?control-mode=manual", STREAM).expect("a subscription");
    let live = format!("aeron:udp?endpoint=localhost:{}", rusteron_test_support::free_port());
    let mut merge =
        ReplayMerge::builder("aeron:udp?linger=0", "aeron:udp?endpoint=localhost:0", &live)
            .progress_timeout(TIMEOUT)
            .start(connect(&java, &aeron), subscription, recording_id)
            .expect("a merge");
    let mut received = Vec::new();
    await_that("a part of the replay", || {
        merge.poll(|text, _| received.push(numbered(text)), 10).expect("a merge");
        received.len() >= 1000
    });
    java.kill();
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
    java: &JavaArchive,
    archive: &Archive,
    recording_id: i64,
    received: &mut Vec<u64>,
    count: usize,
) -> PersistentSubscription {
    let context = PersistentSubscriptionContext::new(
        recording_id,
        "aeron:ipc",
        STREAM,
        "aeron:ipc",
        REPLAY_STREAM,
    )
    .start_position(StartPosition::Start);
    let mut settings = java.context();
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
    let Some((_driver, mut java)) = launch() else { return };
    let aeron = java.aeron();
    let archive = connect(&java, &aeron);
    let (mut publication, recording_id, _) = record(&archive, 100);
    let mut received = Vec::new();
    let mut subscription = subscribe(&java, &archive, recording_id, &mut received, 100);
    let mut poll = |received: &mut Vec<u64>| {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("a subscription");
        subscription.is_live()
    };
    await_that("the live stream", || poll(&mut received));
    java.kill();
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
    let Some((_driver, mut java)) = launch() else { return };
    let aeron = java.aeron();
    let archive = connect(&java, &aeron);
    let (mut publication, recording_id, _) = record(&archive, COUNT);
    let mut received = Vec::new();
    let mut subscription = subscribe(&java, &archive, recording_id, &mut received, 1000);
    assert!(subscription.is_replaying());
    java.kill();
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

    java.restart();
    await_that("the live stream", || poll(&mut received));
    assert_eq!(received, (0..COUNT).collect::<Vec<_>>());
    offer_numbered(&mut publication, COUNT..COUNT + 10);
    await_that("what is live", || {
        poll(&mut received);
        received.len() as u64 >= COUNT + 10
    });
    assert_eq!(received, (0..COUNT + 10).collect::<Vec<_>>());
}
