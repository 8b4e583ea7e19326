//! Replays: ranges, limits, tokens, ends.

use super::harness::{FIRST_SESSION, Harness, IMAGE, TERM_LENGTH, request as encode};
use crate::conductor::effect::{CounterView, Failure};
use crate::conductor::event::Event;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::{
    BoundedReplayRequest, CloseSessionRequest, ReplayRequest, ReplayTokenRequest,
    StopAllReplaysRequest, StopReplayRequest,
};

const IPC: &str = "aeron:ipc";
/// What a replay's channel has behind the client's parameters.
const AT_0: &str = "mtu=1408|term-length=64k|init-term-id=7|term-id=7|term-offset=0|linger=5s";

fn request(recording: i64, position: i64, length: i64) -> ReplayRequest<'static> {
    ReplayRequest {
        control_session_id: FIRST_SESSION,
        correlation_id: 6,
        recording_id: recording,
        position,
        length,
        replay_stream_id: 30,
        file_io_max_length: -1,
        replay_token: -1,
        replay_channel: IPC.as_bytes(),
    }
}

fn bounded(recording: i64, position: i64, length: i64, counter: i64) -> Vec<u8> {
    let fields = [6, recording, position, length, counter, 30, -1, -1];
    encode(BoundedReplayRequest::TEMPLATE_ID, &fields, &[IPC])
}

fn stop(id: i64) -> Vec<u8> {
    encode(StopReplayRequest::TEMPLATE_ID, &[8, id], &[])
}

fn stop_all(recording: i64) -> Vec<u8> {
    encode(StopAllReplaysRequest::TEMPLATE_ID, &[8, recording], &[])
}

fn begin(harness: &mut Harness, replay: i64, session_id: i32) {
    harness.tell(Event::ReplayStarted(replay.into(), Ok(session_id)));
}

fn end(harness: &mut Harness, replay: i64, failure: Option<Failure>) {
    harness.tell(Event::ReplayEnded(replay.into(), failure));
}

/// Draws a token for a recording.
fn draw_token(harness: &mut Harness, recording: i64) -> i64 {
    harness.send(encode(ReplayTokenRequest::TEMPLATE_ID, &[9, recording], &[]));
    let sent = harness.sent();
    let token = sent[0].strip_prefix("9: ok ").and_then(|token| token.parse().ok());
    token.expect("a token")
}

#[test]
fn replay_is_answered_when_its_segment_is_open() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    harness.send(request(0, -1, -1).to_vec());
    assert_eq!(
        harness.orders(),
        [format!("replay 1 of 0 0..640 known=640 limit=None io=65536 stream=30 aeron:ipc?{AT_0}")]
    );
    assert!(harness.sent().is_empty());
    begin(&mut harness, 1, -2);
    assert_eq!(harness.sent(), [format!("6: ok {}", 1_i64 << 32 | 0xFFFF_FFFE)]);
    end(&mut harness, 1, None);
    assert!(harness.sent().is_empty());
    assert!(harness.is_idle());
}

#[test]
fn range_follows_position_and_length() {
    let position = "mtu=1408|term-length=64k|init-term-id=7|term-id=8|term-offset=32|linger=5s";
    for (position, length, expected, channel) in [
        (-1, -1, "0..131072", AT_0),
        (0, i64::MAX, "0..131072", AT_0),
        (-1, -2, "0..131072", AT_0),
        (0, 64, "0..64", AT_0),
        (65568, -1, "65568..131072", position),
        (65568, 1 << 40, "65568..131072", position),
        (65568, 0, "65568..65568", position),
    ] {
        let mut harness = Harness::connected();
        harness.add_stopped(IPC, 2 * i64::from(TERM_LENGTH));
        harness.send(request(0, position, length).to_vec());
        assert_eq!(
            harness.orders(),
            [format!(
                "replay 1 of 0 {expected} known=131072 limit=None io=65536 stream=30 \
                 aeron:ipc?{channel}"
            )]
        );
    }
}

#[test]
fn wrong_range_is_refused() {
    let exceeds = |position: i64| {
        format!(
            "error 16: requested replay start position={position} must be less than the limit \
             position=640 for recording 0"
        )
    };
    let cases = [
        (9, 0, -1, "error 5: unknown recording id: 9".to_owned()),
        (-1, 0, -1, "error 5: unknown recording id: -1".to_owned()),
        (
            0,
            33,
            -1,
            "error 0: requested replay start position=33 is not a multiple of FRAME_ALIGNMENT (32) \
             for recording 0"
                .to_owned(),
        ),
        (
            0,
            -32,
            -1,
            "error 16: requested replay start position=-32 is less than recording start position=0 \
             for recording 0"
                .to_owned(),
        ),
        (
            0,
            i64::MIN,
            -1,
            format!(
                "error 16: requested replay start position={} is less than recording start \
                 position=0 for recording 0",
                i64::MIN
            ),
        ),
        (0, 640, -1, exceeds(640)),
        (0, i64::MAX - 31, -1, exceeds(i64::MAX - 31)),
        (
            0,
            32,
            -3,
            "error 0: replay length must be positive: replayLength=-3, length=-3, \
             stopPosition=640, replayPosition=32 for recording 0"
                .to_owned(),
        ),
    ];
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    for (recording, position, length, expected) in cases {
        harness.send(request(recording, position, length).to_vec());
        assert_eq!(harness.sent(), [format!("6: {expected}")]);
    }
    assert!(harness.orders().is_empty());
}

#[test]
fn empty_recording_cannot_be_replayed_up_to_its_end() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 0);
    harness.send(request(0, -1, -2).to_vec());
    assert_eq!(
        harness.sent(),
        ["6: error 15: when replaying and stopping the replay length must be non-zero, \
             recordingId=0"]
    );
    harness.send(request(0, -1, -1).to_vec());
    assert!(harness.orders()[0].starts_with("replay 1 of 0 0..0 "));
}

#[test]
fn recording_in_progress_is_followed() {
    let mut harness = Harness::connected();
    let recording = harness.add_active(IPC);
    harness.record_to(recording, 320);
    for (position, length, expected) in [
        (-1, -1, format!("0..{}", i64::MAX)),
        (32, -1, format!("32..{}", i64::MAX)),
        (320, -1, format!("320..{}", i64::MAX)),
        (0, 1000, "0..1000".to_owned()),
    ] {
        harness.send(request(0, position, length).to_vec());
        let order = harness.orders().remove(0);
        let expected = format!(" of 0 {expected} known=320 limit=Recording(Progress");
        assert!(order.contains(&expected), "{order}");
        harness.send(stop_all(-1));
        let replay: i64 = order.split(' ').nth(1).and_then(|id| id.parse().ok()).expect("an id");
        end(&mut harness, replay, None);
        harness.clear();
    }
    harness.send(request(0, 352, -1).to_vec());
    harness.send(request(0, 0, -2).to_vec());
    assert_eq!(
        harness.sent(),
        ["6: error 16: requested replay start position=352 must be less than the limit \
             position=320 for recording 0"]
    );
    assert!(harness.orders()[0].contains(" of 0 0..320 known=320 limit=Recording(Progress"));
}

#[test]
fn bounded_replay_follows_its_counter() {
    let mut harness = Harness::connected();
    harness.add_active(IPC);
    harness.send(bounded(0, -1, -1, 4));
    assert_eq!(
        harness.sent(),
        ["6: error 0: unable to create replay limit counter id= 4 because of: no counter 4"]
    );
    harness.out.counters.insert(4, CounterView { value: 128, registration_id: 70.into() });
    harness.send(bounded(0, 160, -1, 4));
    assert_eq!(
        harness.sent(),
        ["6: error 16: requested replay start position=160 must be less than the limit \
             position=128 for recording 0"]
    );
    harness.send(bounded(0, -1, -1, 4));
    assert_eq!(
        harness.orders(),
        [format!(
            "replay 1 of 0 0..{} known=128 limit=Counter {{ id: 4, registration_id: 70 }} io=65536 \
             stream=30 aeron:ipc?{AT_0}",
            i64::MAX
        )]
    );
}

#[test]
fn counter_without_a_position_is_no_limit() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    harness.out.counters.insert(4, CounterView { value: -1, registration_id: 70.into() });
    harness.send(bounded(0, -1, -1, 4));
    assert!(harness.orders()[0].starts_with("replay 1 of 0 0..640 known=640 limit=Counter"));
}

#[test]
fn replays_are_limited_in_number() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    for _ in 0..3 {
        harness.send(request(0, -1, -1).to_vec());
    }
    assert_eq!(harness.sent(), ["6: error 7: max concurrent replays reached 2"]);
    let failure = Failure::generic("failed to create replay publication: no socket");
    harness.tell(Event::ReplayStarted(1.into(), Err(failure)));
    harness.clear();
    harness.send(request(0, -1, -1).to_vec());
    assert!(harness.orders()[0].starts_with("replay 3 "));
}

#[test]
fn reads_are_bounded_by_client_and_server() {
    for (file_io_max, expected) in [
        (-1, Ok(65536)),
        (0, Ok(65536)),
        (1408, Ok(1408)),
        (1 << 30, Ok(65536)),
        (1407, Err("6: error 0: fileIoMaxLength=1407 < mtuLength=1408")),
    ] {
        let mut harness = Harness::connected();
        harness.add_stopped(IPC, 640);
        let request = ReplayRequest { file_io_max_length: file_io_max, ..request(0, -1, -1) };
        harness.send(request.to_vec());
        match expected {
            Ok(length) => assert!(harness.orders()[0].contains(&format!(" io={length} "))),
            Err(text) => assert_eq!(harness.sent(), [text]),
        }
    }
}

#[test]
fn reads_are_checked_between_position_and_length() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    for (position, length, expected) in [
        (640, -3, "6: error 16: requested replay start position=640 "),
        (32, -3, "6: error 0: fileIoMaxLength=100 < mtuLength=1408"),
    ] {
        let request = ReplayRequest { file_io_max_length: 100, ..request(0, position, length) };
        harness.send(request.to_vec());
        assert!(harness.sent()[0].starts_with(expected));
    }
}

#[test]
fn wrong_channel_is_refused() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    let request = ReplayRequest { replay_channel: b"x", ..request(0, -1, -1) };
    harness.send(request.to_vec());
    assert_eq!(
        harness.sent(),
        [
            "6: error 0: failed to process replayChannel - Aeron URIs must start with 'aeron:', found: x"
        ]
    );
}

#[test]
fn failed_replay_is_an_error_of_its_request() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    harness.send(request(0, -1, -1).to_vec());
    begin(&mut harness, 1, 2);
    harness.clear();
    let failure = Failure::new(ErrorCode::InvalidPosition, "within a frame");
    end(&mut harness, 1, Some(failure));
    assert_eq!(harness.sent(), ["6: error 16: within a frame"]);
    assert_eq!(harness.mistakes(), ["within a frame"]);
    assert!(harness.errors().is_empty());
}

#[test]
fn stop_needs_the_whole_id() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    harness.send(request(0, -1, -1).to_vec());
    begin(&mut harness, 1, 2);
    harness.clear();
    harness.send(stop(1 << 32 | 3));
    harness.send(stop(1));
    assert!(harness.orders().is_empty());
    harness.send(stop(1 << 32 | 2));
    harness.send(stop(1 << 32 | 2));
    assert_eq!(harness.orders(), ["abort replay 1"]);
    assert_eq!(harness.sent(), ["8: ok 0"; 4]);
}

#[test]
fn stop_all_is_for_one_recording_or_for_all() {
    for (recording, expected) in [(0, vec!["abort replay 1"]), (7, vec![])] {
        let mut harness = Harness::connected();
        harness.add_stopped(IPC, 640);
        harness.add_stopped(IPC, 640);
        for recording in [0, 1] {
            harness.send(request(recording, -1, -1).to_vec());
            begin(&mut harness, recording + 1, 2);
        }
        harness.clear();
        harness.send(stop_all(recording));
        assert_eq!(harness.orders(), expected);
        harness.send(stop_all(-1));
        assert_eq!(harness.orders().len(), 2 - expected.len());
        assert_eq!(harness.sent(), ["8: ok 0"; 2]);
    }
}

#[test]
fn token_lets_a_replay_come_on_another_image() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    let token = draw_token(&mut harness, 0);
    let channel = b"aeron:udp?control=a:1|control-mode=response";
    let with_token = |recording, replay_token| {
        let request = request(recording, -1, -1);
        ReplayRequest { replay_token, control_session_id: 3, replay_channel: channel, ..request }
            .to_vec()
    };
    harness.send_on(IMAGE + 1, &with_token(0, token));
    assert_eq!(
        harness.orders(),
        [format!(
            "replay 1 of 0 0..640 known=640 limit=None io=65536 stream=30 \
             aeron:udp?control=a:1|control-mode=response|{AT_0}|response-correlation-id={}",
            IMAGE + 1
        )]
    );
    begin(&mut harness, 1, 2);
    assert_eq!(harness.sent(), [format!("6: ok {}", 1_i64 << 32 | 2)]);

    // For another recording, after the timeout, or guessed, it is worth nothing.
    harness.send_on(IMAGE + 1, &with_token(1, token));
    harness.send_on(IMAGE + 1, &with_token(0, token ^ 1));
    harness.tick_after(4999);
    harness.send_on(IMAGE + 1, &with_token(0, token));
    assert_eq!(harness.orders().len(), 1);
    harness.tick_after(1);
    harness.send_on(IMAGE + 1, &with_token(0, token));
    assert!(harness.orders().is_empty());
    let unknown = |token| format!("Unknown session or token timeout for replayToken={token}");
    assert_eq!(harness.errors(), [unknown(token), unknown(token ^ 1), unknown(token)]);
}

#[test]
fn token_ends_with_its_session() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    let token = draw_token(&mut harness, 0);
    harness.send(CloseSessionRequest { control_session_id: FIRST_SESSION }.to_vec());
    harness.tick();
    harness.clear();
    let channel = b"aeron:udp?control=a:1|control-mode=response";
    let request =
        ReplayRequest { replay_token: token, replay_channel: channel, ..request(0, -1, -1) };
    harness.send_on(IMAGE + 1, &request.to_vec());
    assert!(harness.orders().is_empty());
}

#[test]
fn replay_outlives_its_session() {
    let mut harness = Harness::connected();
    harness.add_stopped(IPC, 640);
    harness.send(request(0, -1, -1).to_vec());
    harness.send(CloseSessionRequest { control_session_id: FIRST_SESSION }.to_vec());
    harness.tick();
    harness.clear();
    begin(&mut harness, 1, 2);
    assert!(harness.orders().is_empty() && harness.sent().is_empty());
    assert!(!harness.is_idle());
    end(&mut harness, 1, Some(Failure::generic("whatever")));
    assert!(harness.is_idle());
}
