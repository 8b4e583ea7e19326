//! Starting, following, extending and stopping recordings.

use std::time::Duration;

use rusteron_archive::{
    Archive, ArchiveErrorKind, ArchiveId, RecordingEvent, RecordingId, RecordingPos, ReplayLength,
    ReplayParams, SourceLocation,
};
use rusteron_client::{Aeron, Context, Counter, OfferError};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::{
    ArchiveProcess, Options, STREAM, await_recording, offer_numbered, record, replay_all,
};
use rusteron_test_support::{DEADLINE, await_that, free_port};

fn recorded() -> ReplayParams {
    ReplayParams::new().length(ReplayLength::Recorded)
}

#[test]
fn start_and_stop() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let start = || {
        archive.start_recording("aeron:ipc", STREAM, SourceLocation::Local, false).expect("an id")
    };
    let by_id = start();
    let again = archive.start_recording("aeron:ipc", STREAM, SourceLocation::Local, false);
    assert_eq!(again.expect_err("twice").kind(), ArchiveErrorKind::ActiveSubscription);
    archive.stop_recording_subscription(by_id).expect("it was recorded");
    let error = archive.stop_recording_subscription(by_id).expect_err("it is over");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownSubscription, "{error}");
    assert_eq!((error.relevant_id(), error.code()), (Some(by_id.get()), 204));
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

    let (_publication, recording_id) =
        archive.add_recorded_publication("aeron:ipc", STREAM).expect("recorded");
    assert!(archive.try_stop_recording_by_identity(recording_id).expect("an answer"));
    assert!(!archive.try_stop_recording_by_identity(recording_id).expect("an answer"));

    let (publication, _) = archive.add_recorded_publication("aeron:ipc", 77).expect("recorded");
    archive.stop_recording_publication(&publication).expect("it was recorded");
    let again = archive.add_recorded_publication("aeron:ipc", 77).expect_err("twice");
    assert!(again.to_string().contains("already added"), "{again}");
}

#[test]
fn udp_without_subscriber_is_recorded() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let channel = format!("aeron:udp?endpoint=localhost:{}", free_port());
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication(&*channel, STREAM).expect("a publication");
    let position = offer_numbered(&mut publication, 0..100);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");

    // The caller decides.
    let (publication, _) =
        archive.add_recorded_publication(format!("{channel}|ssc=false"), 77).expect("recorded");
    assert!(publication.channel().ends_with("|ssc=false"), "{}", publication.channel());
    assert_eq!(publication.offer(b"message"), Err(OfferError::NotConnected));
}

#[test]
fn equal_session_ids_on_different_streams() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let channel = "aeron:ipc?session-id=7";
    let mut recordings = Vec::new();
    for stream_id in [1001, 1002] {
        let exclusive = archive.add_recorded_exclusive_publication(channel, stream_id);
        recordings.push((stream_id, exclusive.expect("a publication")));
    }
    // Both the archive's subscription without a session id and that of the publication record it.
    archive.start_recording("aeron:ipc", 1003, SourceLocation::Local, false).expect("an id");
    let shared = archive.add_recorded_publication(channel, 1003).expect("a publication");
    let ids = recordings.iter().map(|(stream_id, (_, id))| (*stream_id, *id));
    for (stream_id, recording_id) in ids.chain([(1003, shared.1)]) {
        let found = archive.recording(recording_id).expect("an answer").expect("a recording");
        assert_eq!((found.stream_id, found.session_id), (stream_id, 7));
        assert_eq!(found.original_channel, channel);
    }
    archive.stop_recording_publication(&shared.0).expect("it was recorded");
}

#[test]
fn recorded_publication_ends_its_subscription() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let exclusive = archive.add_recorded_exclusive_publication("aeron:ipc", STREAM);
    let shared = archive.add_recorded_publication("aeron:ipc", STREAM + 1);
    let ids = [exclusive.expect("a publication").1, shared.expect("a publication").1];
    for id in ids {
        await_that("its end", || archive.stop_position(id).expect("an answer").is_some());
    }
    let subscriptions = || archive.recording_subscriptions("", None).expect("an answer").count();
    await_that("no subscriptions", || subscriptions() == 0);
}

#[test]
fn failed_publication_leaves_no_subscription() {
    let server = ArchiveProcess::launch();
    // The publication is on another media driver than the archive, which cannot spy on it.
    let driver = rusteron_test_support::launch_with(|context| Ok(context));
    let aeron = rusteron_test_support::connect(&driver);
    let mut context = server.udp_context();
    context.set_message_timeout(Duration::from_secs(5)).expect("a timeout");
    let archive = Archive::connect(&aeron, context).expect("a session");
    let channel = format!("aeron:udp?endpoint=localhost:{}|ssc=true|session-id=7", free_port());
    let error =
        archive.add_recorded_exclusive_publication(&channel, STREAM).expect_err("not recorded");
    assert_eq!(error.kind(), ArchiveErrorKind::Timeout, "{error}");
    assert_eq!(error.operation(), "await_recording");
    assert!(!archive.try_stop_recording(&channel, STREAM).expect("an answer"));
}

#[test]
fn remote_source_location() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
fn auto_stop() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
fn extend_stopped_recording() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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
fn await_recording_times_out() {
    let server = ArchiveProcess::launch();
    for aeron in [server.aeron(), server.aeron_with_invoker()] {
        let archive = Archive::connect(&aeron, server.context()).expect("a session");
        let mut adding = aeron.async_add_counter(1001, b"", "counter").expect("begun");
        // A client without a conductor thread has the answer only if the wait does the conductor's work.
        await_that("a counter", || {
            let timeout = Duration::from_millis(10);
            let error = archive.await_recording(77, timeout).expect_err("no recording");
            assert_eq!(error.kind(), ArchiveErrorKind::Timeout, "{error}");
            adding.poll().expect("no error").is_some()
        });
    }
}

#[test]
fn await_recorded_times_out() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (publication, recording_id, position) = record(&archive, 10);
    let timeout = Duration::from_millis(50);
    let error = archive.await_recorded(recording_id, position + 32, timeout).expect_err("never");
    assert_eq!(error.kind(), ArchiveErrorKind::Timeout);
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
    let error = archive.await_recorded(recording_id, position + 32, DEADLINE).expect_err("stopped");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition);
    assert_eq!(archive.await_recorded(recording_id, position, DEADLINE).expect("there"), position);
}

#[test]
fn recording_pos_follows() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
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

const EVENTS_STREAM: i32 = 30;

#[test]
fn events_from_start_to_stop() {
    let properties = [
        "aeron.archive.recording.events.enabled=true".to_owned(),
        "aeron.archive.recording.events.channel=aeron:ipc".to_owned(),
        format!("aeron.archive.recording.events.stream.id={EVENTS_STREAM}"),
    ];
    let options = Options { properties: properties.into(), ..Options::default() };
    let server = ArchiveProcess::launch_with(options);
    let archive = server.connect();
    let mut subscription =
        archive.aeron().add_subscription("aeron:ipc", EVENTS_STREAM).expect("a subscription");
    await_that("the archive", || subscription.is_connected());
    let (mut publication, recording) = archive
        .add_recorded_exclusive_publication("aeron:ipc?alias=events", STREAM)
        .expect("a publication");
    let session = publication.session_id();
    let end = offer_numbered(&mut publication, 0..10);
    archive.await_recorded(recording, end, DEADLINE).expect("a recording");
    drop(publication);
    let mut events = Vec::new();
    await_that("the end of the recording", || {
        let poll = subscription.poll(
            |message, _| {
                events.push(RecordingEvent::decode(message).expect("nothing but events"));
            },
            10,
        );
        poll.expect("open");
        matches!(events.last(), Some(RecordingEvent::Stopped { .. }))
    });
    let first = RecordingEvent::Started {
        recording_id: recording,
        start_position: 0,
        session_id: session,
        stream_id: STREAM,
        channel: format!("aeron:ipc?session-id={session}|alias=events"),
        source_identity: "aeron:ipc".to_owned(),
    };
    assert_eq!(events.first(), Some(&first));
    let last =
        RecordingEvent::Stopped { recording_id: recording, start_position: 0, stop_position: end };
    assert_eq!(events.last(), Some(&last));
    let mut reached = 0;
    for event in &events[1..events.len() - 1] {
        let RecordingEvent::Progress { recording_id, start_position: 0, position } = event else {
            panic!("{event:?}");
        };
        assert_eq!(*recording_id, recording);
        assert!(*position > reached, "{events:?}");
        reached = *position;
    }
    assert_eq!(reached, end);
}

const TYPE_ID: i32 = 100;

const SESSION_ID: i32 = -7;

const ARCHIVE_IDS: [ArchiveId; 2] = [ArchiveId::new(41), ArchiveId::new(42)];

/// Adds the counter that an archive shows for a recording.
fn recording(aeron: &Aeron, recording_id: RecordingId, archive_id: ArchiveId) -> Counter {
    let source = b"aeron:ipc";
    let mut key = recording_id.get().to_le_bytes().to_vec();
    key.extend(SESSION_ID.to_le_bytes());
    key.extend((source.len() as i32).to_le_bytes());
    key.extend(source);
    key.extend(archive_id.get().to_le_bytes());
    aeron.add_counter(TYPE_ID, &key, "a recording").expect("a counter")
}

const fn can_be_shared<T: Send + Sync>() {}

const _: () = can_be_shared::<RecordingPos>();

#[test]
fn find_by_archive_id() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut context = Context::new().expect("a context");
    context.set_dir(driver.aeron_dir()).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    let counters = ARCHIVE_IDS.map(|archive_id| recording(&aeron, 0.into(), archive_id));
    for (counter, archive_id) in counters.iter().zip(ARCHIVE_IDS) {
        let by_id = RecordingPos::find_by_recording_id(&aeron, 0.into(), Some(archive_id));
        let by_session = RecordingPos::find_by_session_id(&aeron, SESSION_ID, Some(archive_id));
        for found in [by_id, by_session] {
            let found = found.expect("a counter");
            assert_eq!(found.counter_id(), counter.counter_id());
            assert_eq!((found.recording_id(), found.archive_id()), (0.into(), Some(archive_id)));
            assert_eq!((found.session_id(), found.source_identity()), (SESSION_ID, "aeron:ipc"));
            assert!(found.is_active());
        }
    }
    assert!(RecordingPos::find_by_recording_id(&aeron, 0.into(), Some(43.into())).is_none());
    assert!(RecordingPos::find_by_recording_id(&aeron, 1.into(), Some(41.into())).is_none());
    assert!(RecordingPos::find_by_session_id(&aeron, SESSION_ID, Some(43.into())).is_none());
    assert!(RecordingPos::find_by_session_id(&aeron, SESSION_ID + 1, Some(41.into())).is_none());
    assert!(RecordingPos::find_by_recording_id(&aeron, 0.into(), None).is_some());
}

#[test]
fn counter_of_another_recording_is_not_active() {
    let driver = rusteron_test_support::launch_with(|context| {
        context.set_counters_free_to_reuse_timeout(Duration::ZERO)
    });
    let aeron = rusteron_test_support::connect(&driver);
    for (other_id, other_archive) in [(8, 41), (7, 42)] {
        let first = recording(&aeron, 7.into(), 41.into());
        let found = RecordingPos::find_by_recording_id(&aeron, 7.into(), Some(41.into()))
            .expect("a counter");
        drop(first);
        // The driver gives the id to another recording's counter.
        let mut others = Vec::new();
        await_that("the counter's id", || {
            others.push(recording(&aeron, RecordingId::new(other_id), other_archive.into()));
            others.iter().any(|other| other.counter_id() == found.counter_id())
        });
        assert!(!found.is_active());
        assert_eq!(found.position(), None);
    }
}
