//! Events that an archive publishes about its recordings.

use rusteron_archive::RecordingEvent;
use rusteron_test_support::archive::{
    JavaArchive, Options, STREAM, await_recording, offer_numbered,
};
use rusteron_test_support::{DEADLINE, await_that};

const EVENTS_STREAM: i32 = 30;

#[test]
fn events_from_start_to_stop() {
    let properties = [
        "aeron.archive.recording.events.enabled=true".to_owned(),
        "aeron.archive.recording.events.channel=aeron:ipc".to_owned(),
        format!("aeron.archive.recording.events.stream.id={EVENTS_STREAM}"),
    ];
    let options = Options { properties: properties.into(), ..Options::default() };
    let Some(java) = JavaArchive::launch_with(options) else { return };
    let archive = java.connect();
    let mut subscription =
        archive.aeron().add_subscription("aeron:ipc", EVENTS_STREAM).expect("a subscription");
    await_that("the archive", || subscription.is_connected());
    let mut publication = archive
        .add_recorded_exclusive_publication("aeron:ipc?alias=events", STREAM)
        .expect("a publication");
    let session = publication.session_id();
    let recording = await_recording(&archive, session);
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
