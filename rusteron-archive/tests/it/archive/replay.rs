//! Replaying recorded messages.

use rusteron_archive::{Archive, ArchiveErrorKind, ReplayLength, ReplayParams, ReplaySessionId};
use rusteron_client::Subscription;
use rusteron_test_support::archive::{
    ArchiveProcess, REPLAY_STREAM, drain, numbered, offer_numbered, record, replay_all,
};
use rusteron_test_support::{await_some, await_that};

fn recorded() -> ReplayParams {
    ReplayParams::new().length(ReplayLength::Recorded)
}

#[test]
fn record_and_replay() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
fn position_and_length() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
    assert_eq!(error.relevant_id(), Some(recording_id.get()));
}

#[test]
fn follow_until_stop() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
fn bounded_replay() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
fn stop_by_replay_with_id() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    let (mut subscription, id) = archive
        .replay_with_id(recording_id, "aeron:ipc", REPLAY_STREAM, ReplayParams::new())
        .expect("a replay");
    await_some("an image", || subscription.image_by_session_id(id.image_session_id()).map(drop));
    archive.stop_replay(id).expect("it was replayed");
    drain(&mut subscription);
}

#[test]
fn null_parameters_are_rejected() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
fn stop_one_and_all() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
    let error =
        archive.stop_all_replays(Some((-1).into())).expect_err("no recording, and not all of them");
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
fn response_channel_token() {
    let server = ArchiveProcess::launch();
    let aeron = server.aeron();
    let mut archive = Archive::connect(&aeron, server.udp_context()).expect("a session");
    let counts = [300, 500, 700];
    let recordings = counts.map(|count| {
        let (publication, recording_id, _) = record(&archive, count);
        drop(publication);
        recording_id
    });
    // Several at once, which the archive tells apart by their tokens; one of the caller's is replaced.
    std::thread::scope(|scope| {
        for (recording_id, count) in recordings.into_iter().zip(counts) {
            let (server, aeron) = (&server, &aeron);
            scope.spawn(move || {
                let archive = Archive::connect(aeron, server.udp_context()).expect("a session");
                for params in [recorded(), recorded().replay_token(4711)] {
                    // One of its own: the driver may still be closing the socket of the one before.
                    let port = rusteron_test_support::free_port();
                    let channel =
                        format!("aeron:udp?control-mode=response|control=localhost:{port}");
                    let mut subscription = archive
                        .replay(recording_id, &channel, REPLAY_STREAM, params)
                        .expect("a replay");
                    assert_eq!(drain(&mut subscription), (0..count).collect::<Vec<_>>());
                }
            });
        }
    });
    // A request of the session itself needs no replay token.
    archive = Archive::connect(&aeron, server.context()).expect("a session");
    let all = replay_all(&archive, recordings[0], recorded().replay_token(4711));
    assert_eq!(all, (0..counts[0]).collect::<Vec<_>>());
}
