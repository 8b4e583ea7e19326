//! Recording published messages, and replaying them.

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingPos, ReplayLength, ReplayParams, ReplaySessionId,
    SourceLocation,
};
use rusteron_client::{PollError, Subscription};
use rusteron_test_support::archive::{
    JavaArchive, REPLAY_STREAM, STREAM, await_recording, drain, numbered, offer_numbered, record,
    replay_all,
};
use rusteron_test_support::{DEADLINE, await_some, await_that};

fn recorded() -> ReplayParams {
    ReplayParams::new().length(ReplayLength::Recorded)
}

#[test]
fn what_was_recorded_is_replayed() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (publication, recording_id, position) = record(&archive, 3000);
    assert_eq!(archive.start_position(recording_id).expect("a position"), 0);
    assert_eq!(archive.stop_position(recording_id).expect("no position"), None);
    assert_eq!(archive.recording_position(recording_id).expect("a position"), Some(position));
    assert_eq!(archive.max_recorded_position(recording_id).expect("a position"), position);
    let all: Vec<_> = (0..3000).collect();
    assert_eq!(replay_all(&archive, recording_id, recorded()), all);
    let small_reads = recorded().file_io_max_length(4096);
    assert_eq!(replay_all(&archive, recording_id, small_reads), all);

    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
    assert_eq!(archive.recording_position(recording_id).expect("no position"), None);
    assert_eq!(archive.max_recorded_position(recording_id).expect("a position"), position);
    assert_eq!(replay_all(&archive, recording_id, ReplayParams::new()), all);
}

#[test]
fn a_replay_begins_and_ends_where_it_is_told_to() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, recording_id, position) = record(&archive, 100);
    let frame = position / 100;
    let from = recorded().position(30 * frame);
    assert_eq!(replay_all(&archive, recording_id, from), (30..100).collect::<Vec<_>>());
    let part = from.length(ReplayLength::Bytes(20 * frame as u64));
    assert_eq!(replay_all(&archive, recording_id, part), (30..50).collect::<Vec<_>>());

    let error = archive
        .start_replay(recording_id, "aeron:ipc", REPLAY_STREAM, recorded().position(position + 32))
        .expect_err("a position after the end");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition, "{error}");
    assert_eq!(error.relevant_id(), Some(recording_id));
}

#[test]
fn a_replay_follows_a_recording_until_it_stops() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (mut publication, recording_id, _) = record(&archive, 100);
    let mut subscription = archive
        .replay(recording_id, "aeron:ipc", REPLAY_STREAM, ReplayParams::new())
        .expect("a replay");
    let mut numbers = Vec::new();
    await_that("what was recorded before", || {
        subscription.poll(|text, _| numbers.push(numbered(text)), 10).expect("a subscription");
        numbers.len() == 100
    });
    offer_numbered(&mut publication, 100..200);
    await_that("what was recorded after", || {
        subscription.poll(|text, _| numbers.push(numbered(text)), 10).expect("a subscription");
        numbers.len() == 200
    });
    archive.stop_recording_exclusive_publication(&publication).expect("it was recorded");
    numbers.extend(drain(&mut subscription));
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    assert!(!publication.is_closed(), "it goes on without being recorded");
}

#[test]
fn a_bounded_replay_stays_behind_its_counter() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, recording_id, position) = record(&archive, 100);
    let frame = position / 100;
    let limit = archive.aeron().add_counter(2001, b"", "the limit of a replay").expect("a counter");
    limit.set(40 * frame);
    let mut subscription = archive
        .replay(
            recording_id,
            "aeron:ipc",
            REPLAY_STREAM,
            ReplayParams::new()
                .length(ReplayLength::Bytes(position as u64))
                .bounding_limit_counter_id(limit.counter_id()),
        )
        .expect("a replay");
    let mut numbers = Vec::new();
    await_that("the first part", || {
        subscription.poll(|text, _| numbers.push(numbered(text)), 100).expect("a subscription");
        numbers.len() >= 40
    });
    assert_eq!(subscription.images().next().expect("an image").position(), 40 * frame);
    limit.set(position);
    numbers.extend(drain(&mut subscription));
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_replay_is_stopped_by_the_id_that_came_with_its_subscription() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    let (mut subscription, id) = archive
        .replay_with_id(recording_id, "aeron:ipc", REPLAY_STREAM, ReplayParams::new())
        .expect("a replay");
    await_some("an image", || subscription.image_by_session_id(id.image_session_id()).map(drop));
    archive.stop_replay(id).expect("it was replayed");
    drain(&mut subscription);
}

#[test]
fn parameters_that_stand_for_none_are_refused_by_name() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    let params = ReplayParams::new;
    let refused = [
        ("position", params().position(-1)),
        ("position", params().position(i64::MIN)),
        ("bounding_limit_counter_id", params().bounding_limit_counter_id(-1)),
        ("replay_token", params().replay_token(-1)),
        ("subscription_registration_id", params().subscription_registration_id(-1)),
        ("file_io_max_length", params().file_io_max_length(1 << 31)),
        ("length", params().length(ReplayLength::Bytes(u64::MAX))),
    ];
    let error = |channel: &str, params| {
        archive.start_replay(recording_id, channel, REPLAY_STREAM, params).expect_err("refused")
    };
    for (name, params) in refused {
        let error = error("aeron:ipc", params);
        assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error}");
        assert!(error.message().starts_with(name), "{error}");
    }
    let error = error("aeron:udp?control=localhost:1|control-mode=response", params());
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("subscription_registration_id"), "{error}");
}

#[test]
fn replays_are_stopped_one_by_one_and_all_at_once() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    let start = |stream_id| {
        let params = ReplayParams::new();
        let mut subscription =
            archive.aeron().add_subscription("aeron:ipc", stream_id).expect("a subscription");
        let id = archive.start_replay(recording_id, "aeron:ipc", stream_id, params).expect("an id");
        await_some("an image", || {
            subscription.image_by_session_id(id.image_session_id()).map(drop)
        });
        (subscription, id)
    };
    let await_end = |mut subscription: Subscription| {
        await_that("the end of a replay", || {
            subscription.poll(|_, _| (), 10).expect("a subscription");
            !subscription.is_connected()
        });
    };
    let (first, first_id) = start(2001);
    archive.stop_replay(first_id).expect("it was replayed");
    await_end(first);
    let (second, _) = start(2002);
    let error = archive.stop_all_replays(Some(-1)).expect_err("no recording, and not all of them");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error}");
    let (third, _) = start(2003);
    archive.stop_all_replays(Some(recording_id)).expect("they were replayed");
    await_end(second);
    await_end(third);
    archive.stop_all_replays(None).expect("there are none, which is no error");
    // Archives ignore replay sessions that they do not know any more, or never knew.
    for unknown in [first_id, ReplaySessionId::from(4711)] {
        archive.stop_replay(unknown).expect("no error either");
    }
}

#[test]
fn a_replay_arrives_over_udp_and_over_a_response_channel() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = Archive::connect(&java.aeron(), java.udp_context()).expect("a session");
    let (_publication, recording_id, _) = record(&archive, 500);
    let port = rusteron_test_support::free_port();
    let endpoint = format!("aeron:udp?endpoint=localhost:{port}");
    let response = format!("aeron:udp?control-mode=response|control=localhost:{port}");
    for channel in [endpoint, response] {
        let mut subscription =
            archive.replay(recording_id, &channel, REPLAY_STREAM, recorded()).expect("a replay");
        assert_eq!(drain(&mut subscription), (0..500).collect::<Vec<_>>(), "{channel}");
    }
}

#[test]
fn a_replay_over_a_response_channel_shows_the_token_of_its_own_request() {
    let Some(java) = JavaArchive::launch() else { return };
    let aeron = java.aeron();
    let mut archive = Archive::connect(&aeron, java.udp_context()).expect("a session");
    let counts = [300, 500, 700];
    let recordings = counts.map(|count| {
        let (publication, recording_id, _) = record(&archive, count);
        drop(publication);
        recording_id
    });
    // Several at once, which the archive tells apart by their tokens; one of the caller's is replaced.
    std::thread::scope(|scope| {
        for (recording_id, count) in recordings.into_iter().zip(counts) {
            let (java, aeron) = (&java, &aeron);
            scope.spawn(move || {
                let archive = Archive::connect(aeron, java.udp_context()).expect("a session");
                let port = rusteron_test_support::free_port();
                let channel = format!("aeron:udp?control-mode=response|control=localhost:{port}");
                for params in [recorded(), recorded().replay_token(recording_id + 4711)] {
                    let mut subscription = archive
                        .replay(recording_id, &channel, REPLAY_STREAM, params)
                        .expect("a replay");
                    assert_eq!(drain(&mut subscription), (0..count).collect::<Vec<_>>());
                }
            });
        }
    });
    // A request of the session itself needs no replay token.
    archive = Archive::connect(&aeron, java.context()).expect("a session");
    let all = replay_all(&archive, recordings[0], recorded().replay_token(4711));
    assert_eq!(all, (0..counts[0]).collect::<Vec<_>>());
}

#[test]
fn recording_is_started_and_stopped_in_every_way() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let start = || {
        archive.start_recording("aeron:ipc", STREAM, SourceLocation::Local, false).expect("an id")
    };
    let by_id = start();
    let again = archive.start_recording("aeron:ipc", STREAM, SourceLocation::Local, false);
    assert_eq!(again.expect_err("twice").kind(), ArchiveErrorKind::ActiveSubscription);
    archive.stop_recording_subscription(by_id).expect("it was recorded");
    let error = archive.stop_recording_subscription(by_id).expect_err("it is over");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownSubscription, "{error}");
    assert_eq!((error.relevant_id(), error.code()), (Some(by_id), 204));
    assert!(!archive.try_stop_recording_subscription(by_id).expect("an answer"));
    let id = start();
    assert!(archive.try_stop_recording_subscription(id).expect("an answer"));

    start();
    archive.stop_recording("aeron:ipc", STREAM).expect("it was recorded");
    let error = archive.stop_recording("aeron:ipc", STREAM).expect_err("it is over");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownSubscription, "{error}");
    assert!(!archive.try_stop_recording("aeron:ipc", STREAM).expect("an answer"));
    start();
    assert!(archive.try_stop_recording("aeron:ipc", STREAM).expect("an answer"));

    let publication = archive.add_recorded_publication("aeron:ipc", STREAM).expect("recorded");
    let recording_id = await_recording(&archive, publication.session_id());
    assert!(archive.try_stop_recording_by_identity(recording_id).expect("an answer"));
    assert!(!archive.try_stop_recording_by_identity(recording_id).expect("an answer"));

    let publication = archive.add_recorded_publication("aeron:ipc", 77).expect("recorded");
    await_recording(&archive, publication.session_id());
    archive.stop_recording_publication(&publication).expect("it was recorded");
    let again = archive.add_recorded_publication("aeron:ipc", 77).expect_err("twice");
    assert!(again.to_string().contains("already added"), "{again}");
}

#[test]
fn what_is_published_elsewhere_is_recorded_from_the_network() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    // A driver of the publisher's own; and one that does not count spies as subscribers.
    let driver = rusteron_test_support::launch_with(|context| Ok(context));
    let aeron = rusteron_test_support::connect(&driver);
    let channel = format!(
        "aeron:udp?endpoint=localhost:{}|term-length=64k",
        rusteron_test_support::free_port()
    );
    let id = archive
        .start_recording(&channel, STREAM, SourceLocation::Remote, false)
        .expect("a subscription");
    let mut publication = aeron.add_exclusive_publication(&channel, STREAM).expect("a publication");
    let recording_id = await_recording(&archive, publication.session_id());
    let position = offer_numbered(&mut publication, 0..1000);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    archive.stop_recording_subscription(id).expect("it was recorded");
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..1000).collect::<Vec<_>>());
    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    assert!(descriptor.source_identity.starts_with("127.0.0.1:"), "{descriptor:?}");
}

#[test]
fn a_recording_with_auto_stop_ends_its_subscription() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let id =
        archive.start_recording("aeron:ipc", STREAM, SourceLocation::Local, true).expect("an id");
    let mut publication =
        archive.aeron().add_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let recording_id = await_recording(&archive, publication.session_id());
    let position = offer_numbered(&mut publication, 0..10);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    drop(publication);
    await_that("the end of the subscription", || {
        let mut subscriptions = archive.recording_subscriptions("", None).expect("a text");
        subscriptions.all(|it| it.expect("a descriptor").subscription_id != id)
    });
    assert_eq!(archive.stop_position(recording_id).expect("an answer"), Some(position));
}

#[test]
fn a_stopped_recording_is_extended() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (publication, recording_id, position) = record(&archive, 1500);
    let active =
        archive.extend_recording(recording_id, "aeron:ipc", STREAM, SourceLocation::Local, true);
    let error = active.expect_err("active");
    assert_eq!(error.kind(), ArchiveErrorKind::ActiveRecording, "{error:?}");
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());

    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    let channel = descriptor.continuation("aeron:ipc").expect("a channel").expect("an end");
    let mut publication =
        archive.aeron().add_exclusive_publication(&channel, STREAM).expect("a publication");
    assert_eq!(publication.position(), Ok(position));
    archive
        .extend_recording(recording_id, "aeron:ipc", STREAM, SourceLocation::Local, false)
        .expect("a subscription");
    assert_eq!(await_recording(&archive, publication.session_id()), recording_id);
    let end = offer_numbered(&mut publication, 1500..3000);
    archive.await_recorded(recording_id, end, DEADLINE).expect("a recording");
    let all = replay_all(&archive, recording_id, recorded());
    assert_eq!(all, (0..3000).collect::<Vec<_>>());
}

#[test]
fn waiting_for_what_is_not_recorded_ends() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (publication, recording_id, position) = record(&archive, 10);
    let timeout = std::time::Duration::from_millis(50);
    let error = archive.await_recorded(recording_id, position + 32, timeout).expect_err("never");
    assert_eq!(error.kind(), ArchiveErrorKind::Timeout);
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
    let error = archive.await_recorded(recording_id, position + 32, DEADLINE).expect_err("stopped");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition);
    assert_eq!(archive.await_recorded(recording_id, position, DEADLINE).expect("there"), position);
}

#[test]
fn the_counter_of_a_recording_follows_it() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (publication, recording_id, position) = record(&archive, 10);
    let counter =
        RecordingPos::find_by_recording_id(archive.aeron(), recording_id, archive.archive_id())
            .expect("a counter");
    assert_eq!(counter.session_id(), publication.session_id());
    assert_eq!(counter.source_identity(), "aeron:ipc");
    assert_eq!(counter.archive_id(), archive.archive_id());
    assert_eq!(counter.position(), Some(position));
    assert!(counter.is_active());
    drop(publication);
    await_that("the end of the recording", || !counter.is_active());
    assert_eq!(counter.position(), None);
    let found =
        RecordingPos::find_by_recording_id(archive.aeron(), recording_id, archive.archive_id());
    assert!(found.is_none());
}

#[test]
fn subscribers_of_a_replay_that_is_over_see_its_end() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, recording_id, _) = record(&archive, 1);
    let mut subscription =
        archive.replay(recording_id, "aeron:ipc", REPLAY_STREAM, recorded()).expect("a replay");
    assert_eq!(drain(&mut subscription), [0]);
    assert_eq!(subscription.poll(|_, _| (), 10), Ok::<usize, PollError>(0));
}
