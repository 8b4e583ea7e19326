//! Listing and finding recordings.

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingDescriptor, RecordingId, ReplayParams, Result,
    SourceLocation,
};
use rusteron_test_support::archive::{ArchiveProcess, Options, record};
use rusteron_test_support::await_that;

const SEGMENT: i64 = 128 * 1024;

/// A recording that has stopped.
fn stopped(archive: &Archive, count: u64) -> RecordingDescriptor {
    let (publication, recording_id, position) = record(archive, count);
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    assert_eq!(descriptor.stop_position, Some(position));
    descriptor
}

#[test]
fn list_and_find() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    assert_eq!(archive.recordings().count(), 0);
    assert_eq!(archive.recording(0.into()).expect("an answer"), None);
    let channels = ["aeron:ipc?alias=one", "aeron:ipc?alias=two"];
    let mut session_ids = Vec::new();
    for index in 0..6 {
        let (publication, _) = archive
            .add_recorded_exclusive_publication(channels[index % 2], 10 + index as i32 / 2)
            .expect("a publication");
        session_ids.push(publication.session_id());
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
        archive.find_last_matching_recording(0.into(), channel, stream, session).expect("an answer")
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
fn more_than_a_page() {
    // Archives of Aeron 1.54 count subscriptions as well as recordings.
    let properties = vec!["aeron.archive.max.concurrent.recordings=300".to_owned()];
    let options = Options { properties, ..Options::default() };
    let server = ArchiveProcess::launch_with(options);
    let archive = server.connect();
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

fn assert_unknown<const N: usize>(outcomes: [Result<()>; N], recording_id: RecordingId) {
    for outcome in outcomes {
        let error = outcome.expect_err("there is no such recording");
        assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
        assert_eq!(
            (error.code(), error.relevant_id()),
            (205, Some(recording_id.get())),
            "{error:?}"
        );
        let text = format!("unknown recording (id {recording_id})");
        assert!(error.to_string().contains(&text), "{error}");
    }
}

#[test]
fn unknown_recordings_are_named() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let params = ReplayParams::new();
    let outcomes = [
        archive.recording_position(41.into()).map(drop),
        archive.start_position(41.into()).map(drop),
        archive.stop_position(41.into()).map(drop),
        archive.max_recorded_position(41.into()).map(drop),
        archive.start_replay(41.into(), "aeron:ipc", 5, params).map(drop),
        archive.replay(41.into(), "aeron:ipc", 5, params).map(drop),
        archive.extend_recording(41.into(), "aeron:ipc", 5, SourceLocation::Local, false).map(drop),
        archive.try_stop_recording_by_identity(41.into()).map(drop),
    ];
    assert_unknown(outcomes, 41.into());
}

#[test]
fn segments_of_unknown_recordings_are_named() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let outcomes = [
        archive.truncate_recording(41.into(), 0).map(drop),
        archive.purge_recording(41.into()).map(drop),
        archive.detach_segments(41.into(), 0),
        archive.delete_detached_segments(41.into()).map(drop),
        archive.purge_segments(41.into(), 0).map(drop),
        archive.attach_segments(41.into()).map(drop),
        archive.migrate_segments(41.into(), 42.into()).map(drop),
        archive.update_channel(41.into(), "aeron:ipc"),
    ];
    assert_unknown(outcomes, 41.into());
    // The other of two.
    let id = stopped(&archive, 1).recording_id;
    assert_unknown([archive.migrate_segments(id, 42.into()).map(drop)], 42.into());
}
