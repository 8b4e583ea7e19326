//! Shortening recordings, and moving their segments.

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingDescriptor, RecordingId, ReplayLength, ReplayParams,
    ReplicationParams, SourceLocation,
};
use rusteron_test_support::archive::{ArchiveProcess, STREAM, record, replay_all};
use rusteron_test_support::await_that;

const SEGMENT: i64 = 128 * 1024;

/// With its header.
const FRAME: i64 = 96;

/// More than three segments.
const COUNT: u64 = (3 * SEGMENT / FRAME) as u64 + 1000;

/// A recording that has stopped.
fn stopped(archive: &Archive, count: u64) -> RecordingDescriptor {
    let (publication, recording_id, position) = record(archive, count);
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    assert_eq!(descriptor.stop_position, Some(position));
    descriptor
}

fn replayed(archive: &Archive, recording_id: RecordingId) -> Vec<u64> {
    replay_all(archive, recording_id, ReplayParams::new().length(ReplayLength::Recorded))
}

fn ids(archive: &Archive) -> Vec<RecordingId> {
    archive.recordings().map(|it| it.expect("a descriptor").recording_id).collect()
}

#[test]
fn truncate_recording() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let descriptor = stopped(&archive, COUNT);
    let id = descriptor.recording_id;
    for bad in [COUNT as i64 * FRAME + SEGMENT, 7] {
        let error = archive.truncate_recording(id, bad).expect_err("a bad position");
        assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition, "{bad}: {error}");
        assert_eq!(error.relevant_id(), Some(id.get()));
        // Archives of this version have a number for some bad positions only.
        assert!(matches!(error.code(), 200 | 216), "{error}");
        assert!(error.correlation_id().is_some());
    }
    assert_eq!(archive.truncate_recording(id, 100 * FRAME).expect("a count"), 3);
    assert_eq!(replayed(&archive, id), (0..100).collect::<Vec<_>>());
    assert_eq!(archive.stop_position(id).expect("an answer"), Some(100 * FRAME));
    // Last, as archives of this version cut off the end all the same.
    let error = archive.truncate_recording(id, FRAME + 32).expect_err("in the middle of a frame");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition, "{error}");
}

#[test]
fn active_recording_is_not_truncated() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    let kind = |outcome: rusteron_archive::Result<u64>| outcome.expect_err("active").kind();
    assert_eq!(
        kind(archive.truncate_recording(recording_id, 0)),
        ArchiveErrorKind::ActiveRecording
    );
    assert_eq!(kind(archive.purge_recording(recording_id)), ArchiveErrorKind::ActiveRecording);
}

#[test]
fn negative_arguments() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let id = stopped(&archive, 10).recording_id;
    let params = ReplayParams::new();
    let replication = ReplicationParams::new();
    let timeout = rusteron_test_support::DEADLINE;
    let outcomes = [
        ("recording_id", archive.truncate_recording((-1).into(), 0).map(drop)),
        ("position", archive.truncate_recording(id, -1).map(drop)),
        ("recording_id", archive.purge_recording((-1).into()).map(drop)),
        ("recording_id", archive.recording_position((-1).into()).map(drop)),
        ("recording_id", archive.start_position((-1).into()).map(drop)),
        ("recording_id", archive.stop_position((-1).into()).map(drop)),
        ("recording_id", archive.max_recorded_position((-1).into()).map(drop)),
        ("recording_id", archive.await_recorded((-1).into(), 0, timeout).map(drop)),
        ("position", archive.await_recorded(id, -1, timeout).map(drop)),
        ("recording_id", archive.start_replay((-1).into(), "aeron:ipc", 5, params).map(drop)),
        ("recording_id", archive.replay((-1).into(), "aeron:ipc", 5, params).map(drop)),
        ("recording_id", archive.stop_all_replays(Some((-1).into()))),
        (
            "recording_id",
            archive
                .extend_recording((-1).into(), "aeron:ipc", 5, SourceLocation::Local, false)
                .map(drop),
        ),
        ("recording_id", archive.detach_segments((-1).into(), 0)),
        ("new_start_position", archive.detach_segments(id, -1)),
        ("recording_id", archive.delete_detached_segments((-1).into()).map(drop)),
        ("recording_id", archive.purge_segments((-1).into(), 0).map(drop)),
        ("new_start_position", archive.purge_segments(id, -1).map(drop)),
        ("recording_id", archive.attach_segments((-1).into()).map(drop)),
        ("src_recording_id", archive.migrate_segments((-1).into(), id).map(drop)),
        ("dst_recording_id", archive.migrate_segments(id, (-1).into()).map(drop)),
        ("recording_id", archive.update_channel((-1).into(), "aeron:ipc")),
        ("recording_id", archive.try_stop_recording_by_identity((-1).into()).map(drop)),
        ("subscription_id", archive.stop_recording_subscription((-1).into())),
        ("subscription_id", archive.try_stop_recording_subscription((-1).into()).map(drop)),
        ("recording_id", archive.recording((-1).into()).map(drop)),
        ("recording_id", archive.recordings_from((-1).into()).next().expect("an item").map(drop)),
        ("min_recording_id", archive.find_last_matching_recording((-1).into(), "", 5, 5).map(drop)),
        (
            "src_recording_id",
            archive.replicate((-1).into(), "aeron:ipc", 10, &replication).map(drop),
        ),
        ("replication_id", archive.stop_replication((-1).into())),
        ("replication_id", archive.try_stop_replication((-1).into()).map(drop)),
    ];
    for (name, outcome) in outcomes {
        let error = outcome.expect_err(name);
        assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error:?}");
        assert_eq!(error.message(), format!("{name}: -1 is negative"));
    }
    assert_eq!(ids(&archive), [id]);
}

#[test]
fn purge_recording() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let first = stopped(&archive, COUNT).recording_id;
    let second = stopped(&archive, 10).recording_id;
    assert_eq!(archive.purge_recording(first).expect("a count"), 4);
    assert_eq!(ids(&archive), [second]);
    assert_eq!(archive.recording(first).expect("an answer"), None);
}

#[test]
fn detach_attach_and_delete() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let descriptor = stopped(&archive, COUNT);
    let id = descriptor.recording_id;
    let start = descriptor.segment_file_base_position(2 * SEGMENT + 4096);
    assert_eq!(start, 2 * SEGMENT);
    let error = archive.detach_segments(id, start + 32).expect_err("in the middle of a segment");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition, "{error}");
    archive.detach_segments(id, start).expect("a segment's beginning");
    assert_eq!(archive.start_position(id).expect("a position"), start);
    assert_eq!(archive.attach_segments(id).expect("a count"), 2);
    assert_eq!(archive.start_position(id).expect("a position"), 0);
    assert_eq!(replayed(&archive, id), (0..COUNT).collect::<Vec<_>>());

    archive.detach_segments(id, SEGMENT).expect("a segment's beginning");
    assert_eq!(archive.delete_detached_segments(id).expect("a count"), 1);
    assert_eq!(archive.attach_segments(id).expect("a count"), 0);
    assert_eq!(archive.purge_segments(id, start).expect("a count"), 1);
    let left = replayed(&archive, id);
    assert_eq!(left.last(), Some(&(COUNT - 1)));
    assert!((left[0] as i64 - start / FRAME).abs() < 200, "{}", left[0]);
}

#[test]
fn migrate_segments() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let source = stopped(&archive, COUNT);
    let id = source.recording_id;
    // The second begins where the first is cut off: at the end of a segment.
    let border = 2 * SEGMENT;
    let messages = replayed(&archive, id).len();
    archive.truncate_recording(id, border).expect("a segment's beginning");
    let before = replayed(&archive, id).len();
    assert!(before < messages);
    let source = archive.recording(id).expect("an answer").expect("a recording");
    let channel = source.continuation("aeron:ipc").expect("a channel").expect("an end");
    let (mut publication, next) = archive
        .add_recorded_exclusive_publication(channel, source.stream_id)
        .expect("a publication");
    let end = rusteron_test_support::archive::offer_numbered(
        &mut publication,
        before as u64..before as u64 + 10,
    );
    archive.await_recorded(next, end, rusteron_test_support::DEADLINE).expect("a recording");
    drop(publication);
    await_that("the end", || archive.stop_position(next).expect("an answer").is_some());
    assert_eq!(archive.start_position(next).expect("a position"), border);
    assert_eq!(archive.migrate_segments(id, next).expect("a count"), 2);
    assert_eq!(archive.start_position(next).expect("a position"), 0);
    assert_eq!(replayed(&archive, next), (0..before as u64 + 10).collect::<Vec<_>>());
}

#[test]
fn update_channel() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let id = stopped(&archive, 1).recording_id;
    archive.update_channel(id, "aeron:udp?endpoint=localhost:7|alias=new").expect("a channel");
    let found = archive.recordings_for_uri("alias=new", STREAM).expect("a text").count();
    assert_eq!(found, 1);
}
