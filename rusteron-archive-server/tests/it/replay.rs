//! Replaying recorded messages.

use rusteron_archive::{ArchiveErrorKind, ReplayLength, ReplayParams};
use rusteron_archive_server::Checksum;
use rusteron_test_support::archive::{
    REPLAY_STREAM, drain, numbered, offer_numbered, record, replay_all,
};
use rusteron_test_support::{await_some, await_that, free_port};

use crate::support::{Fixture, await_stop, recorded};

#[test]
fn replay_equals_recording() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let (publication, recording_id, position) = record(&archive, 3000);
    let all: Vec<_> = (0..3000).collect();
    assert_eq!(replay_all(&archive, recording_id, recorded()), all);
    assert_eq!(replay_all(&archive, recording_id, recorded().file_io_max_length(4096)), all);
    drop(publication);
    assert_eq!(await_stop(&archive, recording_id), position);
    assert_eq!(replay_all(&archive, recording_id, ReplayParams::new()), all);
}

#[test]
fn checksums_are_written_and_checked() {
    let fixture = Fixture::launch_with(|context| {
        context
            .set_record_checksum(Some(Checksum::Crc32c))
            .and_then(|context| context.set_replay_checksum(Some(Checksum::Crc32c)))
            .expect("settings");
    });
    let archive = fixture.connect();
    let (_publication, recording_id, _) = record(&archive, 100);
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..100).collect::<Vec<_>>());
}

#[test]
fn position_and_length_bound_it() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
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
}

#[test]
fn live_recording_is_followed_until_stop() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let (mut publication, recording_id, _) = record(&archive, 100);
    let mut subscription = archive
        .replay(recording_id, "aeron:ipc", REPLAY_STREAM, ReplayParams::new())
        .expect("a replay");
    let mut numbers = Vec::new();
    let mut await_count = |count: usize| {
        await_that("what was recorded", || {
            subscription.poll(|text, _| numbers.push(numbered(text)), 10).expect("open");
            numbers.len() == count
        });
    };
    await_count(100);
    offer_numbered(&mut publication, 100..500);
    await_count(500);
    archive.stop_recording_exclusive_publication(&publication).expect("it was recorded");
    numbers.extend(drain(&mut subscription));
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
}

#[test]
fn counter_bounds_it() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let (_publication, recording_id, position) = record(&archive, 100);
    let frame = position / 100;
    let limit = archive.aeron().add_counter(2001, b"", "the limit of a replay").expect("a counter");
    limit.set(40 * frame);
    let params = ReplayParams::new()
        .length(ReplayLength::Bytes(position as u64))
        .bounding_limit_counter_id(limit.counter_id());
    let mut subscription =
        archive.replay(recording_id, "aeron:ipc", REPLAY_STREAM, params).expect("a replay");
    let mut numbers = Vec::new();
    await_that("the first part", || {
        subscription.poll(|text, _| numbers.push(numbered(text)), 100).expect("open");
        numbers.len() >= 40
    });
    assert_eq!(subscription.images().next().expect("an image").position(), 40 * frame);
    // The last value counts, whenever the server looks.
    limit.set(position);
    drop(limit);
    numbers.extend(drain(&mut subscription));
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

#[test]
fn one_is_stopped_and_all_are() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    let start = |stream_id| {
        let (mut subscription, id) = archive
            .replay_with_id(recording_id, "aeron:ipc", stream_id, ReplayParams::new())
            .expect("a replay");
        await_some("an image", || {
            subscription.image_by_session_id(id.image_session_id()).map(drop)
        });
        (subscription, id)
    };
    let (mut first, first_id) = start(2001);
    let (mut second, _) = start(2002);
    archive.stop_replay(first_id).expect("it was replayed");
    drain(&mut first);
    archive.stop_all_replays(Some(recording_id)).expect("it was replayed");
    drain(&mut second);
    archive.stop_all_replays(None).expect("there are none, which is no error");
}

#[test]
fn udp_and_response_channel() {
    let fixture = Fixture::launch();
    let archive = fixture.connect_over_udp();
    let (_publication, recording_id, _) = record(&archive, 500);
    let port = free_port();
    let endpoint = format!("aeron:udp?endpoint=localhost:{port}");
    let response = format!("aeron:udp?control-mode=response|control=localhost:{port}");
    for channel in [endpoint, response] {
        let mut subscription =
            archive.replay(recording_id, &channel, REPLAY_STREAM, recorded()).expect("a replay");
        assert_eq!(drain(&mut subscription), (0..500).collect::<Vec<_>>(), "{channel}");
    }
}

#[test]
fn unknown_recording_is_refused() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let error = archive
        .start_replay(4711, "aeron:ipc", REPLAY_STREAM, recorded())
        .expect_err("no such recording");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error}");
}
