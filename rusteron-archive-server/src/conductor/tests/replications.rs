//! Replications: states and signals.

use std::mem;

use super::harness::{Harness, IMAGE, MAX_CONCURRENT_REPLICATIONS, TERM_LENGTH, image, request};
use super::source::{
    ID, LIVE, Peer, SOURCE, SOURCE_SESSION, USUAL, Wanted, replicate, replicated, stop,
};
use crate::conductor::effect::ImageDetails;
use crate::conductor::event::Event;
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::messages::{
    ControlResponse, ListRecordingRequest, ReplayRequest, TaggedReplicateRequest,
};
use crate::storage::Storage;

fn copy_of(harness: &Harness, id: i64) -> crate::catalog::Descriptor {
    *harness.conductor.shared.catalog.get(id.into()).expect("a copy")
}

/// A stopped recording that ends here, as an earlier replication has left it.
fn existing(harness: &mut Harness, start: i64, end: i64) -> i64 {
    harness.start(90, "aeron:ipc?alias=existing", true);
    let subscription = harness.register();
    harness.add_image(subscription, &ImageDetails { join_position: start, ..image(4) });
    harness.begin(0);
    harness.stop(0, end);
    harness.clear();
    0
}

#[test]
fn new_recording_is_copied_until_it_is_in_sync() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    assert_eq!(
        replicated(&mut harness, &mut peer, USUAL),
        [
            format!("6: ok {ID}"),
            format!("{ID}: REPLICATE recording=0 subscription=-1 position=64"),
            format!("{ID}: ok 1001"),
            format!("{ID}: EXTEND recording=0 subscription=1001 position=64"),
            format!("{ID}: SYNC recording=0 subscription=1001 position=4096"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
            format!("{ID}: STOP recording=0 subscription=1001 position=4096"),
        ]
    );
    let defaults = "term-length=65536|mtu=1408|sparse=true";
    assert_eq!(
        peer.orders,
        [
            &format!(
                "connect source {ID} stream=10 {SOURCE}|{defaults} stream=20 \
                 aeron:udp?endpoint=copy:0|{defaults}"
            ),
            "subscribe 1 stream=10 aeron:udp?endpoint=copy:0|session-id=5|rejoin=false",
            "record 0 subscription=1001 image=5 64+0",
            &format!("close source {ID}"),
            "abort recording 0",
            "close subscription 1001",
        ]
    );
    let replay = peer.requests.iter().find(|request| request.starts_with("ReplayRequest"));
    let replay = replay.expect("a replay");
    assert!(replay.contains("position: 64, length: -1, replay_stream_id: 10"), "{replay}");
    assert!(peer.requests.last().expect("requests").starts_with("CloseSession"));
    let copy = copy_of(&harness, 0);
    assert_eq!((copy.start_position, copy.stop_position, copy.start_timestamp), (64, 4096, 1234));
    assert_eq!((copy.segment_length, copy.mtu), (256 * 1024, 1408));
    assert!(harness.conductor.shared.catalog.channel_contains(0.into(), b"alias=o"));
    assert!(harness.is_idle());
    assert_eq!(harness.errors(), [""; 0]);
}

#[test]
fn copy_goes_on_behind_its_end() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    let recording = existing(&mut harness, 0, 1024);
    peer.join_position = 1024;
    let sent = replicated(&mut harness, &mut peer, Wanted { recording, ..USUAL });
    assert!(!sent.iter().any(|line| line.contains(": REPLICATE ")), "{sent:?}");
    assert!(sent.contains(&format!("{ID}: SYNC recording=0 subscription=1002 position=4096")));
    assert!(peer.requests.iter().any(|request| request.contains("position: 1024, length: -1")));
    assert_eq!(copy_of(&harness, 0).stop_position, 4096);
}

#[test]
fn copy_that_is_in_sync_ends_at_once() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    let recording = existing(&mut harness, 0, 4096);
    assert_eq!(
        replicated(&mut harness, &mut peer, Wanted { recording, ..USUAL }),
        [
            format!("6: ok {ID}"),
            format!("{ID}: SYNC recording=0 subscription=-1 position=4096"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
        ]
    );
    assert!(!peer.has_order("subscribe"));
    assert!(harness.is_idle());
}

#[test]
fn empty_recording_of_the_source_is_described_only() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    peer.stop_position = 64;
    assert_eq!(
        replicated(&mut harness, &mut peer, USUAL)[1..],
        [
            format!("{ID}: REPLICATE recording=0 subscription=-1 position=64"),
            format!("{ID}: SYNC recording=0 subscription=-1 position=64"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
        ]
    );
    let copy = copy_of(&harness, 0);
    assert_eq!((copy.start_position, copy.stop_position), (64, 64));
}

#[test]
fn empty_copy_is_replaced() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    let recording = existing(&mut harness, 32, 32);
    // A segment of the length that segments had.
    harness.storage.create("0-0.rec", 64 * 1024).expect("a segment");
    let sent = replicated(&mut harness, &mut peer, Wanted { recording, ..USUAL });
    assert!(!sent.iter().any(|line| line.contains(": REPLICATE ")), "{sent:?}");
    assert_eq!(harness.storage.length("0-0.rec").expect("a length"), Some(256 * 1024));
    let copy = copy_of(&harness, 0);
    assert_eq!((copy.start_position, copy.stop_position), (64, 4096));
    assert!(harness.conductor.shared.catalog.channel_contains(0.into(), b"alias=o"));
}

#[test]
fn copy_ends_at_stop_position_without_sync() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(8192));
    peer.recorded = 2048;
    let wanted = Wanted { stop_position: 2048, file_io_max: 4096, session_id: -9, ..USUAL };
    let sent = replicated(&mut harness, &mut peer, wanted);
    assert!(peer.has_order("session-id=-9"));
    assert_eq!(
        sent[4..],
        [
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
            format!("{ID}: STOP recording=0 subscription=1001 position=2048"),
        ]
    );
    assert!(peer.requests.iter().any(|request| request.contains("length: 1984")));
    assert!(harness.is_idle());
}

#[test]
fn stream_that_ends_ends_replication_behind_its_stop() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    replicated(&mut harness, &mut peer, USUAL);
    harness.stop(0, 4096);
    peer.run(&mut harness);
    assert_eq!(
        harness.sent(),
        [
            format!("{ID}: STOP recording=0 subscription=1001 position=4096"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
        ]
    );
    assert!(peer.requests.iter().any(|request| request.starts_with("StopReplay")));
    assert!(harness.is_idle());
}

#[test]
fn stream_that_ends_in_sync_is_signalled_as_such() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    peer.recorded = 2048;
    replicated(&mut harness, &mut peer, USUAL);
    // It reaches the end of the source's recording and ends before the next turn.
    harness.stop(0, 4096);
    peer.run(&mut harness);
    assert_eq!(
        harness.sent(),
        [
            format!("{ID}: SYNC recording=0 subscription=1001 position=4096"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
            format!("{ID}: STOP recording=0 subscription=1001 position=4096"),
        ]
    );
    assert!(harness.is_idle());
}

#[test]
fn answers_to_other_sessions_of_the_source_do_not_count() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    peer.fault = Some((ListRecordingRequest::TEMPLATE_ID, None));
    replicated(&mut harness, &mut peer, USUAL);
    let request = peer.requests.last().expect("a request");
    let id = request.split_once("correlation_id: ").and_then(|(_, rest)| rest.split(',').next());
    let correlation_id = id.and_then(|id| id.parse().ok()).expect("a correlation id");
    let mut answer = |control_session_id, text: &str| {
        let answer = ControlResponse {
            control_session_id,
            correlation_id,
            relevant_id: 0,
            code: 1,
            version: PROTOCOL_VERSION,
            error_message: text.as_bytes(),
        };
        harness.tell(Event::SourceMessage(ID.into(), answer.to_vec()));
        peer.run(&mut harness);
        harness.sent()
    };
    assert!(answer(SOURCE_SESSION + 1, "not you").is_empty());
    assert_eq!(answer(SOURCE_SESSION, "no")[0], format!("{ID}: error 0: ERROR - no"));
}

/// A short stream is there before the source's answer, which is lost once.
#[test]
fn copy_that_is_whole_before_the_replay_is_acknowledged_is_in_sync() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    peer.fault = Some((ReplayRequest::TEMPLATE_ID, None));
    replicated(&mut harness, &mut peer, USUAL);
    harness.stop(0, 4096);
    assert_eq!(
        harness.sent()[..2],
        [
            format!("{ID}: SYNC recording=0 subscription=1001 position=4096"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
        ]
    );
    assert!(harness.is_idle());
}

#[test]
fn tagged_copy_has_a_destination() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    let fields = [6, 17, -1, 333, -1, 10];
    harness.send(request(TaggedReplicateRequest::TEMPLATE_ID, &fields, &[SOURCE, ""]));
    peer.run(&mut harness);
    assert!(peer.has_order(&format!(
        "subscribe 1 stream=10 aeron:udp?tags=333,{ID}|control-mode=manual|session-id=5|rejoin=false \
         + aeron:udp?endpoint=copy:0"
    )));
}

#[test]
fn live_stream_joins() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(TERM_LENGTH.into()));
    peer.recorded = 4096;
    let wanted = Wanted { live: LIVE, ..USUAL };
    let sent = replicated(&mut harness, &mut peer, wanted);
    assert_eq!(
        sent.last(),
        Some(&format!("{ID}: EXTEND recording=0 subscription=1001 position=64"))
    );
    assert!(!peer.has_order("add destination"));
    // Up to the position that the source had, but it has gone on.
    peer.position = i64::from(TERM_LENGTH) * 2;
    harness.record_to(0, TERM_LENGTH.into());
    peer.run(&mut harness);
    assert!(!peer.has_order("add destination"));
    harness.record_to(0, peer.position - i64::from(TERM_LENGTH / 4));
    peer.run(&mut harness);
    assert!(peer.has_order(&format!("add destination 1001 {LIVE}")));
    assert!(!peer.has_order("count"));
    peer.transports = 1;
    harness.record_to(0, peer.position);
    peer.run(&mut harness);
    assert!(peer.has_order("count transports 0"));
    // Transports of another recording say nothing about this one.
    let mut orders = Vec::new();
    while orders.is_empty() {
        harness.tick();
        orders = harness.orders();
        for request in mem::take(&mut harness.out.requests) {
            peer.answer(&request, &mut harness);
        }
    }
    assert_eq!(orders, ["count transports 0"]);
    harness.tell(Event::Transports(1.into(), 2));
    harness.tick();
    assert!(harness.sent().is_empty());
    harness.tell(Event::Transports(0.into(), 1));
    peer.transports = 2;
    peer.run(&mut harness);
    let position = peer.position;
    assert_eq!(
        harness.sent(),
        [
            format!("{ID}: MERGE recording=0 subscription=-1 position={position}"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
        ]
    );
    assert!(peer.has_order("remove destination 1001 aeron:udp?endpoint=copy:0"));
    let replay = peer.requests.iter().find(|request| request.starts_with("ReplayRequest"));
    assert!(replay.is_some());
    // The recording goes on.
    assert_eq!(harness.conductor.parts.replications.len(), 0);
    assert!(!harness.is_idle());
    harness.stop(0, position);
    assert_eq!(
        harness.sent(),
        [format!("{ID}: STOP recording=0 subscription=1001 position={position}")]
    );
    assert!(harness.is_idle());
}

#[test]
fn live_merge_needs_an_active_source() {
    let wanted = Wanted { live: LIVE, ..USUAL };
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    let text = "cannot live merge without active source recording";
    assert_eq!(
        replicated(&mut harness, &mut peer, wanted)[1..],
        [
            format!("{ID}: REPLICATE recording=0 subscription=-1 position=64"),
            format!("{ID}: error 0: {text}"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
        ]
    );
    // It stops while the stream catches up.
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    peer.recorded = 2048;
    replicated(&mut harness, &mut peer, wanted);
    peer.position = -1;
    harness.record_to(0, 4096);
    peer.run(&mut harness);
    let sent = harness.sent();
    assert_eq!(sent[0], format!("{ID}: error 0: ERROR - {text}"));
    assert!(harness.is_idle());
    // The stream ends while it catches up.
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    peer.recorded = 2048;
    replicated(&mut harness, &mut peer, wanted);
    harness.stop(0, 2048);
    peer.run(&mut harness);
    let sent = harness.sent();
    assert_eq!(sent[1], format!("{ID}: error 0: ERROR - replication image closed unexpectedly"));
    assert!(harness.is_idle());
}

#[test]
fn response_channel_is_requested_on_a_stream_of_its_own() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    let channel = "aeron:udp?control-mode=response|control=copy:9";
    let sent = replicated(&mut harness, &mut peer, Wanted { channel, ..USUAL });
    assert_eq!(sent.len(), 7, "{sent:?}");
    assert!(peer.has_order(
        "subscribe 1 stream=10 aeron:udp?control=copy:9|control-mode=response|rejoin=false"
    ));
    assert!(peer.has_order(&format!("replay requests {ID} stream=10 {SOURCE}")));
    assert!(peer.requests.iter().any(|request| request.contains("replay_token: 99")));
    for wanted in [Wanted { live: LIVE, ..USUAL }, Wanted { tags: [1, -1], ..USUAL }] {
        replicate(&mut harness, Wanted { channel, ..wanted });
    }
    assert_eq!(
        harness.sent(),
        [
            "6: error 0: response channels can't be used with live destinations",
            "6: error 0: response channels can't be used with tagged replication",
        ]
    );
}

#[test]
fn wrong_requests_are_refused() {
    let mut harness = Harness::connected();
    replicate(&mut harness, Wanted { recording: 88, ..USUAL });
    harness.add_active("aeron:ipc");
    replicate(&mut harness, Wanted { recording: 0, ..USUAL });
    replicate(&mut harness, Wanted { channel: "udp", ..USUAL });
    stop(&mut harness, ID);
    assert_eq!(
        harness.sent(),
        [
            "6: error 2: cannot replicate to active recording 0",
            "6: error 0: Aeron URIs must start with 'aeron:', found: udp",
            &format!("8: error 12: unknown replication id {ID}"),
        ]
    );
    harness.conductor.shared.settings.replication.channel.clear();
    replicate(&mut harness, USUAL);
    let name = "replication_channel (AERON_ARCHIVE_REPLICATION_CHANNEL)";
    assert_eq!(harness.sent(), [format!("6: error 0: {name} is not set")]);
    assert_eq!(harness.conductor.parts.replications.len(), 0);
}

#[test]
fn stop_is_answered_before_the_end_is_signalled() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    replicated(&mut harness, &mut peer, USUAL);
    stop(&mut harness, ID);
    stop(&mut harness, ID);
    peer.run(&mut harness);
    assert_eq!(
        harness.sent(),
        [
            "8: ok 0".to_owned(),
            format!("8: error 12: unknown replication id {ID}"),
            format!("{ID}: REPLICATE_END recording=0 subscription=-1 position=-1"),
            format!("{ID}: STOP recording=0 subscription=1001 position=4096"),
        ]
    );
}

#[test]
fn challenge_is_answered_without_credentials_only() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    peer.is_challenging = true;
    let sent = replicated(&mut harness, &mut peer, USUAL);
    assert!(sent.last().expect("an end").contains("STOP"), "{sent:?}");
    assert!(peer.requests.iter().any(|request| request.starts_with("ChallengeResponse")));

    let (mut harness, mut peer) = (Harness::connected(), Peer::new());
    peer.is_challenging = true;
    let sent = replicated(&mut harness, &mut peer, Wanted { credentials: "admin:admin", ..USUAL });
    assert!(sent[1].starts_with(&format!("{ID}: error 14: ")), "{sent:?}");
    assert!(peer.requests[0].contains("encoded_credentials: ["), "{:?}", peer.requests);
}

#[test]
fn replication_outlives_its_session_and_ends_with_the_server() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    replicated(&mut harness, &mut peer, USUAL);
    harness.tell(Event::RequestImageUnavailable(IMAGE.into()));
    peer.run(&mut harness);
    assert_eq!(harness.conductor.parts.replications.len(), 1);
    harness.conductor.begin_close(harness.now, &mut harness.out);
    peer.run(&mut harness);
    assert!(harness.is_idle());
}

#[test]
fn other_requests_of_the_session_do_not_wait() {
    let (mut harness, mut peer) = (Harness::connected(), Peer::active(4096));
    replicate(&mut harness, USUAL);
    // A recording whose subscription is being added holds up requests until then.
    harness.start(30, "aeron:ipc?alias=other", false);
    stop(&mut harness, 4711);
    assert_eq!(harness.sent(), [format!("6: ok {ID}")]);
    harness.register();
    assert_eq!(harness.sent().len(), 2);
    peer.run(&mut harness);
}

#[test]
fn concurrent_replications_are_limited() {
    let mut harness = Harness::connected();
    for _ in 0..=MAX_CONCURRENT_REPLICATIONS {
        replicate(&mut harness, USUAL);
    }
    let text = "6: error 0: max concurrent replications reached at 4";
    let answers = harness.sent();
    assert_eq!(answers.iter().filter(|answer| *answer == text).count(), 1, "{answers:?}");
    assert_eq!(answers.last().map(String::as_str), Some(text));
    stop(&mut harness, ID);
    harness.tick();
    harness.sent();
    replicate(&mut harness, USUAL);
    assert_eq!(harness.sent(), [format!("6: ok {}", ID + 4)]);
}
