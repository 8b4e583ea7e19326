//! Starting, following, extending and stopping recordings.

use rusteron_archive::{ArchiveErrorKind, RecordingEvent, RecordingPos, SourceLocation};
use rusteron_archive_server::ArchiveThreadingMode;
use rusteron_client::OfferError;
use rusteron_test_support::archive::{
    STREAM, await_recording, message, offer_numbered, record, replay_all,
};
use rusteron_test_support::{DEADLINE, await_that, free_port};

use crate::support::{Fixture, Turns, await_stop, recorded};

const LOCAL: SourceLocation = SourceLocation::Local;

#[test]
fn start_and_stop_in_every_form() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let start =
        || archive.start_recording("aeron:ipc", STREAM, LOCAL, false).expect("a subscription");
    let by_id = start();
    let again = archive.start_recording("aeron:ipc", STREAM, LOCAL, false).expect_err("twice");
    assert_eq!(again.kind(), ArchiveErrorKind::ActiveSubscription, "{again}");
    archive.stop_recording_subscription(by_id).expect("it was recorded");
    let error = archive.stop_recording_subscription(by_id).expect_err("it is over");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownSubscription, "{error}");

    start();
    archive.stop_recording("aeron:ipc", STREAM).expect("it was recorded");
    assert!(!archive.try_stop_recording("aeron:ipc", STREAM).expect("an answer"));

    let (_publication, recording_id) =
        archive.add_recorded_publication("aeron:ipc", STREAM).expect("recorded");
    assert!(archive.try_stop_recording_by_identity(recording_id).expect("an answer"));
    assert!(!archive.try_stop_recording_by_identity(recording_id).expect("an answer"));
}

#[test]
fn position_counter_follows_until_stop() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let (publication, recording_id, position) = record(&archive, 3000);
    assert!(position > 128 * 1024, "several segments");
    let counter =
        RecordingPos::find_by_recording_id(archive.aeron(), recording_id, archive.archive_id())
            .expect("a counter");
    assert_eq!(counter.session_id(), publication.session_id());
    assert_eq!(counter.source_identity(), "aeron:ipc");
    assert_eq!(counter.position(), Some(position));
    assert_eq!(archive.recording_position(recording_id).expect("an answer"), Some(position));
    drop(publication);
    assert_eq!(await_stop(&archive, recording_id), position);
    await_that("the end of the counter", || !counter.is_active());
}

#[test]
fn auto_stop_closes_subscription() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let id = archive.start_recording("aeron:ipc", STREAM, LOCAL, true).expect("an id");
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
    assert_eq!(await_stop(&archive, recording_id), position);
}

#[test]
fn each_publisher_has_a_recording() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    archive.start_recording("aeron:ipc", STREAM, LOCAL, false).expect("a subscription");
    let aeron = archive.aeron();
    let publications: Vec<_> = (0..3)
        .map(|_| aeron.add_exclusive_publication("aeron:ipc", STREAM).expect("a publication"))
        .collect();
    let mut recordings = Vec::new();
    for (index, mut publication) in publications.into_iter().enumerate() {
        let recording_id = await_recording(&archive, publication.session_id());
        let count = 10 * (index as u64 + 1);
        let position = offer_numbered(&mut publication, 0..count);
        archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
        recordings.push((recording_id, count, publication));
    }
    archive.stop_recording("aeron:ipc", STREAM).expect("they were recorded");
    for (recording_id, count, _publication) in &recordings {
        await_stop(&archive, *recording_id);
        let numbers: Vec<_> = (0..*count).collect();
        assert_eq!(replay_all(&archive, *recording_id, recorded()), numbers);
    }
}

#[test]
fn udp_is_recorded_by_spy_and_as_subscriber() {
    let fixture = Fixture::launch();
    let archive = fixture.connect_over_udp();
    let channel = format!("aeron:udp?endpoint=localhost:{}|ssc=true", free_port());
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication(&*channel, STREAM).expect("a publication");
    let position = offer_numbered(&mut publication, 0..500);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..500).collect::<Vec<_>>());

    let channel = format!("aeron:udp?endpoint=localhost:{}", free_port());
    archive.start_recording(&*channel, STREAM, SourceLocation::Remote, false).expect("an id");
    let driver = rusteron_test_support::launch();
    let aeron = rusteron_test_support::connect(&driver);
    let channel = format!("{channel}|term-length=64k");
    let mut publication = aeron.add_exclusive_publication(&*channel, STREAM).expect("added");
    let recording_id = await_recording(&archive, publication.session_id());
    let position = offer_numbered(&mut publication, 0..1000);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..1000).collect::<Vec<_>>());
}

#[test]
fn stopped_recording_is_extended() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let (publication, recording_id, position) = record(&archive, 1500);
    let active = archive.extend_recording(recording_id, "aeron:ipc", STREAM, LOCAL, true);
    assert_eq!(active.expect_err("active").kind(), ArchiveErrorKind::ActiveRecording);
    drop(publication);
    assert_eq!(await_stop(&archive, recording_id), position);

    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    let channel = descriptor.continuation("aeron:ipc").expect("a channel").expect("an end");
    let mut publication =
        archive.aeron().add_exclusive_publication(&channel, STREAM).expect("a publication");
    archive
        .extend_recording(recording_id, "aeron:ipc", STREAM, LOCAL, false)
        .expect("a subscription");
    assert_eq!(await_recording(&archive, publication.session_id()), recording_id);
    let end = offer_numbered(&mut publication, 1500..3000);
    archive.await_recorded(recording_id, end, DEADLINE).expect("a recording");
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..3000).collect::<Vec<_>>());
}

#[test]
fn paused_server_holds_up_publisher() {
    let mut fixture = Fixture::launch_with(|context| {
        context.set_threading_mode(ArchiveThreadingMode::Invoker).expect("a mode");
    });
    let turns = Turns::run(fixture.take());
    let archive = fixture.connect();
    let (mut publication, recording_id, _) = record(&archive, 1);
    turns.pause();
    // A turn that has begun goes on, so there can be space once more.
    let mut next = 1;
    let mut refusals = 0;
    await_that("back pressure", || {
        match publication.offer(&message(next)) {
            Ok(_) => next += 1,
            Err(OfferError::BackPressured) => refusals += 1,
            Err(OfferError::AdminAction) => {}
            Err(error) => panic!("{error}"),
        }
        refusals > 1000
    });
    turns.go_on();
    let position = offer_numbered(&mut publication, next..next + 100);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    let all: Vec<_> = (0..next + 100).collect();
    assert_eq!(replay_all(&archive, recording_id, recorded()), all);
    drop(archive);
    turns.end().close().expect("a good end");
}

#[test]
fn limit_of_recordings_is_kept() {
    let fixture = Fixture::launch_with(|context| {
        context.set_max_concurrent_recordings(1).expect("a number");
    });
    let archive = fixture.connect();
    let (publication, recording_id, _) = record(&archive, 1);
    let error = archive.start_recording("aeron:ipc", 77, LOCAL, false).expect_err("a second");
    assert_eq!(error.kind(), ArchiveErrorKind::MaxRecordings, "{error}");
    archive.stop_recording_exclusive_publication(&publication).expect("it was recorded");
    await_stop(&archive, recording_id);
    archive.start_recording("aeron:ipc", 77, LOCAL, false).expect("the only one");
}

#[test]
fn events_tell_start_progress_and_stop() {
    let fixture = Fixture::launch_with(|context| {
        context
            .set_recording_events_enabled(true)
            .and_then(|context| context.set_recording_events_channel("aeron:ipc"))
            .expect("settings");
    });
    let archive = fixture.connect();
    let mut subscription = archive.aeron().add_subscription("aeron:ipc", 30).expect("added");
    await_that("the server", || subscription.is_connected());
    let (publication, recording, end) = record(&archive, 10);
    drop(publication);
    let mut events = Vec::new();
    await_that("the end of the recording", || {
        let polled = subscription
            .poll(|event, _| events.push(RecordingEvent::decode(event).expect("an event")), 10);
        polled.expect("open");
        matches!(events.last(), Some(RecordingEvent::Stopped { .. }))
    });
    let started = |event: &RecordingEvent| matches!(event, RecordingEvent::Started { recording_id, start_position: 0, .. } if *recording_id == recording);
    assert!(started(&events[0]), "{events:?}");
    assert!(events.len() > 2, "{events:?}");
    let stopped =
        RecordingEvent::Stopped { recording_id: recording, start_position: 0, stop_position: end };
    assert_eq!(events.last(), Some(&stopped));
}
