//! Finding recordings, and making them shorter.

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingDescriptor, ReplayLength, ReplayParams, ReplicationParams,
    SourceLocation,
};
use rusteron_test_support::archive::{JavaArchive, STREAM, await_recording, record, replay_all};
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

fn replayed(archive: &Archive, recording_id: i64) -> Vec<u64> {
    replay_all(archive, recording_id, ReplayParams::new().length(ReplayLength::Recorded))
}

fn ids(archive: &Archive) -> Vec<i64> {
    archive.recordings().map(|it| it.expect("a descriptor").recording_id).collect()
}

#[test]
fn recordings_are_listed_and_found() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    assert_eq!(archive.recordings().count(), 0);
    assert_eq!(archive.recording(0).expect("an answer"), None);
    let channels = ["aeron:ipc?alias=one", "aeron:ipc?alias=two"];
    let mut session_ids = Vec::new();
    for index in 0..6 {
        let publication = archive
            .add_recorded_exclusive_publication(channels[index % 2], 10 + index as i32 / 2)
            .expect("a publication");
        session_ids.push(publication.session_id());
        await_recording(&archive, publication.session_id());
    }
    let all: Vec<_> = archive.recordings().map(|it| it.expect("a descriptor")).collect();
    assert_eq!(all.len(), 6);
    assert!(all.is_sorted_by_key(|descriptor| descriptor.recording_id));
    for (descriptor, session_id) in all.iter().zip(&session_ids) {
        assert_eq!(descriptor.session_id, *session_id);
        assert_eq!(descriptor.term_buffer_length, 64 * 1024);
        assert_eq!(descriptor.segment_file_length as i64, SEGMENT);
        assert_eq!(descriptor.start_position, 0);
        assert_eq!(descriptor.source_identity, "aeron:ipc");
        assert!(descriptor.original_channel.contains("alias="), "{descriptor:?}");
        assert_eq!(descriptor.start_time.elapsed().ok().map(|it| it.as_secs() < 600), Some(true));
    }
    let listed: Vec<_> = archive
        .recordings_for_uri("alias=two", 11)
        .expect("a text")
        .map(|it| it.expect("a descriptor").recording_id)
        .collect();
    assert_eq!(listed, [all[3].recording_id]);
    let from = archive.recordings_from(all[4].recording_id);
    assert_eq!(from.count(), 2);
    assert_eq!(archive.recording(all[2].recording_id).expect("an answer").as_ref(), Some(&all[2]));
    let find = |channel: &str, stream, session| {
        archive.find_last_matching_recording(0, channel, stream, session).expect("an answer")
    };
    assert_eq!(find("alias=one", 12, session_ids[4]), Some(all[4].recording_id));
    assert_eq!(find("alias=one", 12, session_ids[5]), None);
    assert_eq!(find("nothing like it", 12, session_ids[4]), None);
    archive.recordings_for_uri("a\0b", 1).expect_err("a NUL byte");
    let long = "x".repeat(5000);
    let error = archive.recordings_for_uri(&long, 1).expect_err("too long");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument);
}

#[test]
fn more_recordings_than_a_page_are_all_listed() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    // A subscription without a publisher: no recordings, but pages all the same.
    for stream_id in 0..300 {
        archive
            .start_recording("aeron:ipc", stream_id, SourceLocation::Local, false)
            .expect("a subscription");
    }
    let listed = |stream_id| {
        let subscriptions = archive.recording_subscriptions("aeron:ipc", stream_id);
        subscriptions.expect("a text").map(|it| it.expect("a descriptor")).collect::<Vec<_>>()
    };
    let mut streams: Vec<_> = listed(None).iter().map(|it| it.stream_id).collect();
    streams.sort_unstable();
    assert_eq!(streams, (0..300).collect::<Vec<_>>());
    let one = listed(Some(77));
    assert_eq!(one.len(), 1);
    archive.stop_recording_subscription(one[0].subscription_id).expect("it was listed");
    assert_eq!(listed(Some(77)), []);
}

#[test]
fn the_end_of_a_recording_is_cut_off() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let descriptor = stopped(&archive, COUNT);
    let id = descriptor.recording_id;
    for bad in [COUNT as i64 * FRAME + SEGMENT, 7] {
        let error = archive.truncate_recording(id, bad).expect_err("a bad position");
        assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition, "{bad}: {error}");
        assert_eq!(error.relevant_id(), Some(id));
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
fn a_recording_that_is_active_is_not_cut() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    let kind = |outcome: rusteron_archive::Result<u64>| outcome.expect_err("active").kind();
    assert_eq!(
        kind(archive.truncate_recording(recording_id, 0)),
        ArchiveErrorKind::ActiveRecording
    );
    assert_eq!(kind(archive.purge_recording(recording_id)), ArchiveErrorKind::ActiveRecording);
}

#[test]
fn recordings_that_are_not_there_are_named() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let params = ReplayParams::new();
    let outcomes = [
        archive.truncate_recording(41, 0).map(drop),
        archive.purge_recording(41).map(drop),
        archive.recording_position(41).map(drop),
        archive.start_position(41).map(drop),
        archive.stop_position(41).map(drop),
        archive.max_recorded_position(41).map(drop),
        archive.start_replay(41, "aeron:ipc", 5, params).map(drop),
        archive.replay(41, "aeron:ipc", 5, params).map(drop),
        archive.extend_recording(41, "aeron:ipc", 5, SourceLocation::Local, false).map(drop),
        archive.detach_segments(41, 0),
        archive.delete_detached_segments(41).map(drop),
        archive.purge_segments(41, 0).map(drop),
        archive.attach_segments(41).map(drop),
        archive.migrate_segments(41, 42).map(drop),
        archive.update_channel(41, "aeron:ipc"),
        archive.try_stop_recording_by_identity(41).map(drop),
    ];
    for outcome in outcomes {
        let error = outcome.expect_err("there is no such recording");
        assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
        assert_eq!((error.code(), error.relevant_id()), (205, Some(41)), "{error:?}");
        assert!(error.to_string().contains("unknown recording (id 41)"), "{error}");
    }
    // The other of two.
    let id = stopped(&archive, 1).recording_id;
    let error = archive.migrate_segments(id, 42).expect_err("there is no such recording");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
    assert_eq!((error.code(), error.relevant_id()), (205, Some(42)), "{error:?}");
}

#[test]
fn negative_arguments_are_refused_by_name() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let id = stopped(&archive, 10).recording_id;
    let params = ReplayParams::new();
    let replication = ReplicationParams::new();
    let patience = rusteron_test_support::DEADLINE;
    let outcomes = [
        ("recording_id", archive.truncate_recording(-1, 0).map(drop)),
        ("position", archive.truncate_recording(id, -1).map(drop)),
        ("recording_id", archive.purge_recording(-1).map(drop)),
        ("recording_id", archive.recording_position(-1).map(drop)),
        ("recording_id", archive.start_position(-1).map(drop)),
        ("recording_id", archive.stop_position(-1).map(drop)),
        ("recording_id", archive.max_recorded_position(-1).map(drop)),
        ("recording_id", archive.await_recorded(-1, 0, patience).map(drop)),
        ("position", archive.await_recorded(id, -1, patience).map(drop)),
        ("recording_id", archive.start_replay(-1, "aeron:ipc", 5, params).map(drop)),
        ("recording_id", archive.replay(-1, "aeron:ipc", 5, params).map(drop)),
        ("recording_id", archive.stop_all_replays(Some(-1))),
        (
            "recording_id",
            archive.extend_recording(-1, "aeron:ipc", 5, SourceLocation::Local, false).map(drop),
        ),
        ("recording_id", archive.detach_segments(-1, 0)),
        ("new_start_position", archive.detach_segments(id, -1)),
        ("recording_id", archive.delete_detached_segments(-1).map(drop)),
        ("recording_id", archive.purge_segments(-1, 0).map(drop)),
        ("new_start_position", archive.purge_segments(id, -1).map(drop)),
        ("recording_id", archive.attach_segments(-1).map(drop)),
        ("src_recording_id", archive.migrate_segments(-1, id).map(drop)),
        ("dst_recording_id", archive.migrate_segments(id, -1).map(drop)),
        ("recording_id", archive.update_channel(-1, "aeron:ipc")),
        ("recording_id", archive.try_stop_recording_by_identity(-1).map(drop)),
        ("subscription_id", archive.stop_recording_subscription(-1)),
        ("subscription_id", archive.try_stop_recording_subscription(-1).map(drop)),
        ("recording_id", archive.recording(-1).map(drop)),
        ("recording_id", archive.recordings_from(-1).next().expect("an item").map(drop)),
        ("min_recording_id", archive.find_last_matching_recording(-1, "", 5, 5).map(drop)),
        ("src_recording_id", archive.replicate(-1, "aeron:ipc", 10, &replication).map(drop)),
        ("replication_id", archive.stop_replication(-1)),
        ("replication_id", archive.try_stop_replication(-1).map(drop)),
    ];
    for (name, outcome) in outcomes {
        let error = outcome.expect_err(name);
        assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error:?}");
        assert_eq!(error.message(), format!("{name}: -1 is negative"));
    }
    assert_eq!(ids(&archive), [id]);
}

#[test]
fn a_recording_is_purged() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let first = stopped(&archive, COUNT).recording_id;
    let second = stopped(&archive, 10).recording_id;
    assert_eq!(archive.purge_recording(first).expect("a count"), 4);
    assert_eq!(ids(&archive), [second]);
    assert_eq!(archive.recording(first).expect("an answer"), None);
}

#[test]
fn segments_are_detached_attached_and_deleted() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
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
fn segments_begin_where_c_has_them() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let mut descriptor = stopped(&archive, 1);
    let (term, segment) = (descriptor.term_buffer_length as i32, SEGMENT as i32);
    assert_eq!(descriptor.segment_file_length, segment as usize);
    for start in (0..3 * SEGMENT).step_by(4096) {
        descriptor.start_position = start;
        for position in (start..5 * SEGMENT).step_by(16 * 1024 - 32) {
            // SAFETY: the function computes with its arguments only, far from their limits.
            let in_c = unsafe {
                rusteron_sys::archive::aeron_archive_segment_file_base_position(
                    start, position, term, segment,
                )
            };
            assert_eq!(descriptor.segment_file_base_position(position), in_c);
        }
    }
}

#[test]
fn segments_migrate_to_a_recording_that_continues() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
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
    let mut publication = archive
        .add_recorded_exclusive_publication(channel, source.stream_id)
        .expect("a publication");
    let next = await_recording(&archive, publication.session_id());
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
fn a_recording_gets_another_channel() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let id = stopped(&archive, 1).recording_id;
    archive.update_channel(id, "aeron:udp?endpoint=localhost:7|alias=new").expect("a channel");
    let found = archive.recordings_for_uri("alias=new", STREAM).expect("a text").count();
    assert_eq!(found, 1);
}
