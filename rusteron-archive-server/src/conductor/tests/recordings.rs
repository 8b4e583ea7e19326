//! Recordings: started, extended, stopped, by one image and by several.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use super::harness::{
    FIRST_SESSION, Harness, TERM_LENGTH, image, request, settings, start_request,
};
use crate::ArchiveServerContext;
use crate::catalog::NewRecording;
use crate::conductor::effect::{Failure, ImageDetails};
use crate::conductor::event::Event;
use crate::control::authentication::{AcceptAll, AllowAll};
use crate::mark_file::{MarkFile, read_positions};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::{
    ExtendRecordingRequest2, StartRecordingRequest, StopRecordingByIdentityRequest,
    StopRecordingRequest, StopRecordingSubscriptionRequest,
};

const UDP: &str = "aeron:udp?endpoint=a:1|alias=x";
const IPC: &str = "aeron:ipc";

fn stop(channel: &str) -> Vec<u8> {
    request(StopRecordingRequest::TEMPLATE_ID, &[8, 10], &[channel])
}

fn stop_subscription(id: i64) -> Vec<u8> {
    request(StopRecordingSubscriptionRequest::TEMPLATE_ID, &[8, id], &[])
}

fn stop_by_identity(recording: i64) -> Vec<u8> {
    request(StopRecordingByIdentityRequest::TEMPLATE_ID, &[8, recording], &[])
}

fn extend(recording: i64, stream_id: i32, channel: &str, auto_stop: bool) -> Vec<u8> {
    let fields = [7, recording, stream_id.into(), 1, auto_stop.into()];
    request(ExtendRecordingRequest2::TEMPLATE_ID, &fields, &[channel])
}

fn stop_position(harness: &Harness, recording: i64) -> i64 {
    harness.conductor.shared.catalog.get(recording.into()).expect("a recording").stop_position
}

/// A harness that records images of one subscription, and the subscription.
fn recording_images(auto_stop: bool, count: i64) -> (Harness, i64) {
    let mut harness = Harness::connected();
    harness.start(5, IPC, auto_stop);
    let subscription = harness.register();
    for recording in 0..count {
        harness.add_image(subscription, &image(20 + recording));
        harness.begin(recording);
    }
    harness.clear();
    (harness, subscription)
}

#[test]
fn start_answers_before_it_signals() {
    let mut harness = Harness::connected();
    harness.start(5, UDP, false);
    assert_eq!(
        harness.orders(),
        ["subscribe 1 stream=10 aeron-spy:aeron:udp?endpoint=a:1|alias=x"]
    );
    assert!(harness.sent().is_empty());
    let subscription = harness.register();
    assert_eq!(harness.sent(), [format!("5: ok {subscription}")]);

    harness.add_image(subscription, &ImageDetails { join_position: 96, ..image(20) });
    assert_eq!(harness.orders(), [format!("record 0 subscription={subscription} image=20 96+0")]);
    // In the catalog before anything is written, and active.
    let descriptor = *harness.conductor.shared.catalog.get(0.into()).expect("a recording");
    assert_eq!((descriptor.start_position, descriptor.stop_position), (96, -1));
    assert_eq!((descriptor.segment_length, descriptor.term_length), (128 * 1024, TERM_LENGTH));
    assert_eq!((descriptor.session_id, descriptor.stream_id, descriptor.mtu), (20, 10, 1408));
    // The client looks for the counter when it is told.
    assert!(harness.sent().is_empty());
    harness.begin(0);
    assert_eq!(
        harness.sent(),
        [format!("5: START recording=0 subscription={subscription} position=96")]
    );
    assert_eq!(harness.events(), [format!("started 0 at 96 {UDP}")]);
}

#[test]
fn remote_source_is_no_spy_and_ipc_neither() {
    for (location, channel, expected) in [
        (1, UDP, "aeron:udp?endpoint=a:1|alias=x"),
        (0, IPC, "aeron:ipc"),
        (0, "aeron:udp?endpoint=a:1", "aeron-spy:aeron:udp?endpoint=a:1"),
    ] {
        let mut harness = Harness::connected();
        harness.send(request(StartRecordingRequest::TEMPLATE_ID, &[5, 10, location], &[channel]));
        assert_eq!(harness.orders(), [format!("subscribe 1 stream=10 {expected}")]);
    }
}

#[test]
fn segments_are_not_shorter_than_terms() {
    let mut harness = Harness::connected();
    harness.start(5, IPC, false);
    let subscription = harness.register();
    harness.add_image(subscription, &ImageDetails { term_length: 1 << 20, ..image(20) });
    assert_eq!(
        harness.conductor.shared.catalog.get(0.into()).expect("a recording").segment_length,
        1 << 20
    );
}

#[test]
fn wrong_start_is_refused() {
    let mut harness = Harness::connected();
    harness.start(5, "udp", false);
    harness.start(6, IPC, false);
    harness.register();
    harness.start(7, "aeron:ipc?alias=other", false);
    harness.send(request(StartRecordingRequest::TEMPLATE_ID, &[8, 11, 7], &[IPC]));
    harness.start(9, UDP, false);
    harness.refuse_subscription("no socket");
    // The key is free again.
    harness.start(10, UDP, false);
    harness.register();
    assert_eq!(
        harness.sent(),
        [
            "5: error 0: Aeron URIs must start with 'aeron:', found: udp",
            "6: ok 1001",
            "7: error 3: recording exists for streamId=10 channel=aeron:ipc?alias=other",
            "8: error 0: sourceLocation=7: must be 0 (local) or 1 (remote)",
            "9: error 0: no socket",
            "10: ok 1002",
        ]
    );
}

#[test]
fn limit_counts_subscriptions_at_the_request() {
    let mut harness = Harness::connected();
    for id in 0..3 {
        harness.start(id, &format!("aeron:ipc?session-id={id}"), false);
        harness.register();
    }
    harness.clear();
    harness.start(5, IPC, false);
    harness.send(extend(0, 10, IPC, false));
    assert_eq!(
        harness.sent(),
        [
            "5: error 8: max concurrent recordings reached at 3",
            "7: error 8: max concurrent recordings reached at 3",
        ]
    );
}

#[test]
fn limit_counts_recordings_at_the_image() {
    let mut harness = Harness::connected();
    harness.start(5, IPC, false);
    let subscription = harness.register();
    for id in 0..3 {
        harness.add_image(subscription, &image(id));
    }
    harness.clear();
    harness.add_image(subscription, &image(3));
    let text = "max concurrent recordings reached at 3";
    assert_eq!(harness.sent(), [format!("5: error 8: {text}")]);
    assert_eq!((harness.mistakes(), harness.errors()), (vec![text.to_owned()], vec![]));
    assert!(harness.orders().is_empty());
    assert_eq!(harness.conductor.shared.catalog.next_id(), 3);
    harness.start(6, UDP, false);
    assert_eq!(harness.sent(), [format!("6: error 8: {text}")]);
}

#[test]
fn low_storage_refuses_start_and_image() {
    let mut harness = Harness::connected();
    harness.start(5, IPC, false);
    let subscription = harness.register();
    harness.clear();
    harness.storage.limit_space(Some(0));
    harness.start(6, UDP, false);
    harness.add_image(subscription, &image(20));
    let text = "low storage threshold=1000 <= usableSpace=0: free space, or lower the threshold \
                (AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD)";
    assert_eq!(harness.sent(), [format!("6: error 11: {text}"), format!("5: error 11: {text}")]);
    assert_eq!(harness.errors(), [text]);
    harness.storage.limit_space(None);
    harness.add_image(subscription, &image(20));
    assert_eq!(harness.orders(), [format!("record 0 subscription={subscription} image=20 0+0")]);
}

#[test]
fn end_of_image_is_in_the_catalog_before_it_is_signalled() {
    let (mut harness, subscription) = recording_images(false, 1);
    // Nothing can be sent, and still the catalog knows.
    harness.out.refusals = 1;
    harness.now.epoch_ms = 12_345;
    harness.stop(0, 640);
    let descriptor = *harness.conductor.shared.catalog.get(0.into()).expect("a recording");
    assert_eq!((descriptor.stop_position, descriptor.stop_timestamp), (640, 12_345));
    assert!(harness.sent().is_empty());
    harness.tick();
    assert_eq!(
        harness.sent(),
        [format!("5: STOP recording=0 subscription={subscription} position=640")]
    );
    assert_eq!(harness.events(), ["stopped 0 at 640"]);
    // The subscription waits for the next image.
    assert!(harness.orders().is_empty());
    harness.add_image(subscription, &image(21));
    assert_eq!(harness.orders(), [format!("record 1 subscription={subscription} image=21 0+0")]);
}

#[test]
fn failed_recording_is_an_error_before_its_stop() {
    let (mut harness, subscription) = recording_images(false, 1);
    let failure = Failure::new(ErrorCode::StorageSpace, "no space left");
    harness.tell(Event::RecordingStopped(0.into(), 64, Some(failure)));
    assert_eq!(
        harness.sent(),
        [
            "5: error 11: no space left".to_owned(),
            format!("5: STOP recording=0 subscription={subscription} position=64"),
        ]
    );
    assert_eq!(harness.errors(), ["no space left"]);
    assert_eq!(stop_position(&harness, 0), 64);
}

#[test]
fn refused_counter_ends_the_recording_without_signals() {
    let mut harness = Harness::connected();
    harness.start(5, IPC, true);
    let subscription = harness.register();
    harness.add_image(subscription, &ImageDetails { join_position: 64, ..image(20) });
    harness.clear();
    harness.tell(Event::RecordingStarted(0.into(), Err("no counters left".to_owned())));
    assert_eq!(harness.sent(), ["5: error 0: no counters left"]);
    assert!(harness.events().is_empty());
    assert_eq!(stop_position(&harness, 0), 64);
    assert_eq!(harness.orders(), [format!("close subscription {subscription}")]);
}

#[test]
fn stop_by_channel_aborts_then_closes() {
    let (mut harness, subscription) = recording_images(false, 2);
    // Another recording goes on.
    harness.add_active(UDP);
    harness.send(stop("aeron:ipc?alias=whatever"));
    assert_eq!(harness.sent(), ["8: ok 0"]);
    assert_eq!(harness.orders(), ["abort recording 0", "abort recording 1"]);
    // Images of a stopped subscription are not recorded, and its key is free.
    harness.add_image(subscription, &image(22));
    assert!(harness.orders().is_empty());
    harness.send(stop(IPC));
    assert_eq!(
        harness.sent(),
        ["8: error 4: no recording found for streamId=10 channel=aeron:ipc"]
    );
    harness.stop(1, 320);
    assert!(harness.orders().is_empty());
    harness.stop(0, 640);
    assert_eq!(harness.orders(), [format!("close subscription {subscription}")]);
    assert_eq!(
        harness.sent(),
        [
            format!("5: STOP recording=1 subscription={subscription} position=320"),
            format!("5: STOP recording=0 subscription={subscription} position=640"),
        ]
    );
}

#[test]
fn stop_by_subscription_without_images_closes_at_once() {
    let mut harness = Harness::connected();
    harness.start(5, IPC, false);
    let subscription = harness.register();
    harness.clear();
    harness.send(stop_subscription(subscription + 1));
    harness.send(stop_subscription(subscription));
    harness.send(stop_subscription(subscription));
    let unknown =
        |id| format!("8: error 4: no recording subscription found for subscriptionId={id}");
    assert_eq!(
        harness.sent(),
        [unknown(subscription + 1), "8: ok 0".to_owned(), unknown(subscription)]
    );
    assert_eq!(harness.orders(), [format!("close subscription {subscription}")]);
}

#[test]
fn stop_by_identity_leaves_other_images() {
    let (mut harness, subscription) = recording_images(false, 2);
    harness.send(stop_by_identity(9));
    harness.send(stop_by_identity(0));
    harness.send(stop_by_identity(1));
    assert_eq!(
        harness.sent(),
        // The subscription was stopped by the first of both.
        ["8: error 5: unknown recording id: 9", "8: ok 1", "8: ok 0"]
    );
    assert_eq!(harness.orders(), ["abort recording 0", "abort recording 1"]);
    harness.stop(0, 64);
    assert!(harness.orders().is_empty());
    harness.stop(1, 64);
    assert_eq!(harness.orders(), [format!("close subscription {subscription}")]);
    harness.clear();
    harness.send(stop_by_identity(0));
    assert_eq!(harness.sent(), ["8: ok 0"]);
}

#[test]
fn auto_stop_ends_all_images_by_the_first() {
    let (mut harness, subscription) = recording_images(true, 2);
    harness.stop(0, 64);
    assert_eq!(harness.orders(), ["abort recording 1"]);
    harness.stop(1, 128);
    assert_eq!(harness.orders(), [format!("close subscription {subscription}")]);
    harness.clear();
    harness.start(6, IPC, false);
    assert_eq!(harness.orders(), ["subscribe 2 stream=10 aeron:ipc"]);
}

#[test]
fn abort_waits_for_the_counter() {
    let mut harness = Harness::connected();
    harness.start(5, IPC, false);
    let subscription = harness.register();
    harness.add_image(subscription, &image(20));
    harness.clear();
    harness.send(stop(IPC));
    assert!(harness.orders().is_empty());
    harness.begin(0);
    assert_eq!(harness.orders(), ["abort recording 0"]);
    assert_eq!(
        harness.sent(),
        [
            "8: ok 0".to_owned(),
            format!("5: START recording=0 subscription={subscription} position=0"),
        ]
    );
}

#[test]
fn recording_outlives_its_session() {
    let (mut harness, subscription) = recording_images(false, 2);
    harness.out.is_connected = false;
    harness.tick();
    harness.clear();
    harness.out.is_connected = true;
    assert_eq!(harness.connect(), FIRST_SESSION + 1);
    harness.stop(0, 64);
    assert!(harness.sent().is_empty());
    assert_eq!(stop_position(&harness, 0), 64);
    // Another session stops the rest.
    let mut request = stop_subscription(subscription);
    request[8..16].copy_from_slice(&(FIRST_SESSION + 1).to_le_bytes());
    harness.send(request);
    assert_eq!(harness.orders(), ["abort recording 1"]);
}

#[test]
fn extend_marks_the_recording_active_before_it_begins() {
    let mut harness = Harness::connected();
    let recording = harness.add_stopped(IPC, 640);
    harness.send(extend(recording, 10, UDP, true));
    assert_eq!(harness.orders(), ["subscribe 2 stream=10 aeron:udp?endpoint=a:1|alias=x"]);
    let subscription = harness.register();
    harness.add_image(subscription, &ImageDetails { join_position: 640, ..image(31) });
    assert_eq!(harness.orders(), [format!("record 0 subscription={subscription} image=31 0+640")]);
    let descriptor = *harness.conductor.shared.catalog.get(recording.into()).expect("a recording");
    assert_eq!((descriptor.stop_position, descriptor.session_id), (-1, 31));
    assert_eq!((descriptor.control_session_id, descriptor.correlation_id), (FIRST_SESSION, 7));
    harness.begin(recording);
    assert_eq!(
        harness.sent(),
        [
            format!("7: ok {subscription}"),
            format!("7: EXTEND recording=0 subscription={subscription} position=640"),
        ]
    );
    harness.stop(recording, 960);
    assert_eq!(stop_position(&harness, recording), 960);
    assert_eq!(harness.orders(), [format!("close subscription {subscription}")]);
}

/// A server that follows a killed one needs the position from before the catalog forgets the end until it has another one.
#[test]
fn recordings_in_progress_have_slots() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut settings = ArchiveServerContext::new();
    settings.set_archive_dir(dir.path()).expect("a directory");
    let mark_file = MarkFile::activate(&settings, dir.path(), 1, 4096);
    let positions = || {
        let file = std::fs::read(dir.path().join("archive-mark.dat")).expect("the mark file");
        let positions =
            read_positions(&file).into_iter().map(|(id, position)| (id.get(), position));
        Vec::from_iter(BTreeMap::from_iter(positions))
    };
    let mut harness = Harness::connected();
    harness.conductor.keep_positions(Arc::new(mark_file.expect("a mark file")));
    let first = harness.add_active(UDP);
    assert_eq!(positions(), [(first, 0)]);
    harness.record_to(first, 320);
    let stopped = harness.add_stopped(IPC, 640);
    assert_eq!(positions(), [(first, 320)]);

    harness.send(extend(stopped, 10, IPC, false));
    let subscription = harness.register();
    let joined = ImageDetails { join_position: 640, ..image(31) };
    harness.storage.fail_after(0, ErrorKind::PermissionDenied);
    harness.add_image(subscription, &joined);
    assert_eq!(positions(), [(first, 320)]);
    harness.add_image(subscription, &joined);
    harness.begin(stopped);
    assert_eq!(positions(), [(first, 320), (stopped, 640)]);

    harness.storage.fail_after(0, ErrorKind::PermissionDenied);
    harness.stop(stopped, 640);
    assert_eq!(positions(), [(first, 320), (stopped, 640)]);
    harness.tick_after(1000);
    assert_eq!(positions(), [(first, 320)]);
}

#[test]
fn wrong_extension_is_refused_at_the_request() {
    let mut harness = Harness::connected();
    let stopped = harness.add_stopped(IPC, 640);
    let active = harness.add_active(UDP);
    harness.send(extend(9, 10, IPC, false));
    harness.send(extend(stopped, 11, IPC, false));
    harness.send(extend(active, 10, IPC, false));
    harness.send(extend(stopped, 10, UDP, false));
    harness.send(extend(stopped, 10, "x", false));
    assert_eq!(
        harness.sent(),
        [
            "7: error 5: unknown recording id: 9".to_owned(),
            "7: error 5: cannot extend recording 0 with streamId=11 for existing streamId=10"
                .to_owned(),
            "7: error 2: cannot extend active recording 1".to_owned(),
            format!("7: error 3: recording exists for streamId=10 channel={UDP}"),
            "7: error 0: Aeron URIs must start with 'aeron:', found: x".to_owned(),
        ]
    );
}

#[test]
fn wrong_extension_is_refused_at_the_image() {
    let joined = ImageDetails { join_position: 640, ..image(31) };
    let cases = [
        (
            ImageDetails { join_position: 0, ..joined.clone() },
            "image.joinPosition=0 != rec.stopPosition=640",
        ),
        (
            ImageDetails { initial_term_id: 8, ..joined.clone() },
            "image.initialTermId=8 != rec.initialTermId=7",
        ),
        (
            ImageDetails { term_length: 1 << 20, ..joined.clone() },
            "image.termBufferLength=1048576 != rec.termBufferLength=65536",
        ),
        (ImageDetails { mtu: 9000, ..joined }, "image.mtuLength=9000 != rec.mtuLength=1408"),
    ];
    for (image, reason) in cases {
        for auto_stop in [true, false] {
            let mut harness = Harness::connected();
            let recording = harness.add_stopped(IPC, 640);
            harness.send(extend(recording, 10, UDP, auto_stop));
            let subscription = harness.register();
            harness.clear();
            harness.add_image(subscription, &image);
            let text = format!("cannot extend recording 0 {reason}");
            assert_eq!(harness.sent(), [format!("7: error 9: {text}")]);
            assert_eq!((harness.mistakes(), harness.errors()), (vec![text], vec![]));
            assert_eq!(stop_position(&harness, recording), 640);
            let close = auto_stop.then(|| format!("close subscription {subscription}"));
            assert_eq!(harness.orders(), Vec::from_iter(close));
        }
    }
}

/// A replication can make an empty recording one of another stream while an image is awaited.
#[test]
fn image_of_another_stream_does_not_extend() {
    let mut harness = Harness::connected();
    let recording = harness.add_stopped(IPC, 0);
    harness.send(extend(recording, 10, UDP, true));
    let subscription = harness.register();
    harness.clear();
    let image = image(31);
    let source = NewRecording {
        start_position: 0,
        initial_term_id: image.initial_term_id,
        segment_length: image.term_length,
        term_length: image.term_length,
        mtu: image.mtu,
        session_id: 5,
        stream_id: 11,
        stripped_channel: IPC,
        original_channel: IPC,
        source_identity: IPC,
    };
    harness.conductor.shared.catalog.replace_by_copy(recording.into(), source, 1).expect("a copy");
    harness.add_image(subscription, &image);
    let text = "7: error 9: cannot extend recording 0 image.streamId=10 != rec.streamId=11";
    assert_eq!(harness.sent(), [text]);
}

#[test]
fn second_image_does_not_extend() {
    let mut harness = Harness::connected();
    let recording = harness.add_stopped(IPC, 640);
    harness.send(extend(recording, 10, UDP, false));
    let subscription = harness.register();
    let joined = ImageDetails { join_position: 640, ..image(31) };
    harness.add_image(subscription, &joined);
    harness.begin(recording);
    harness.clear();
    harness.add_image(subscription, &joined);
    assert_eq!(
        harness.sent(),
        [format!("7: error 2: cannot extend active recording 0 streamId=10 channel={UDP}")]
    );
    assert!(harness.orders().is_empty());
}

#[test]
fn refused_counter_of_an_extension_restores_the_end() {
    let mut harness = Harness::connected();
    let recording = harness.add_stopped(IPC, 640);
    harness.send(extend(recording, 10, UDP, false));
    let subscription = harness.register();
    harness.add_image(subscription, &ImageDetails { join_position: 640, ..image(31) });
    assert_eq!(stop_position(&harness, recording), -1);
    harness.tell(Event::RecordingStarted(recording.into(), Err("no counters left".to_owned())));
    assert_eq!(stop_position(&harness, recording), 640);
}

#[test]
fn events_announce_progress() {
    let mut harness = Harness::connected();
    let recording = harness.add_active(IPC);
    harness.tick();
    assert!(harness.events().is_empty());
    harness.record_to(recording, 320);
    harness.tick();
    harness.tick();
    assert_eq!(harness.events(), ["progress 0 to 320"]);
}

#[test]
fn events_are_not_asked_for_if_disabled() {
    let mut settings = settings();
    settings.recording_events_enabled = false;
    let mut harness = Harness::with(Box::new(AcceptAll), Box::new(AllowAll), settings);
    harness.connect();
    harness.send(start_request(5, IPC, false));
    let subscription = harness.register();
    harness.add_image(subscription, &image(20));
    harness.begin(0);
    harness.record_to(0, 320);
    harness.tick();
    harness.stop(0, 320);
    assert!(harness.events().is_empty());
}

#[test]
fn closing_stops_recordings_before_sessions() {
    let (mut harness, _) = recording_images(false, 2);
    harness.conductor.begin_close(harness.now, &mut harness.out);
    assert_eq!(harness.orders(), ["abort recording 0", "abort recording 1"]);
    assert!(!harness.is_idle());
    harness.stop(0, 64);
    harness.stop(1, 64);
    assert!(harness.is_idle());
    assert_eq!(harness.sent().len(), 2);
}
