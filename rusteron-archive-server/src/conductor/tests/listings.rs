//! Listings, searches and positions.

use super::harness::{FIRST_SESSION, Harness, request};
use crate::conductor::effect::Sending;
use crate::protocol::messages::{
    CloseSessionRequest, FindLastMatchingRecordingRequest, ListRecordingRequest,
    ListRecordingSubscriptionsRequest, ListRecordingsForUriRequest, ListRecordingsRequest,
    MaxRecordedPositionRequest, RecordingPositionRequest, StartPositionRequest,
    StopPositionRequest, UpdateChannelRequest,
};
use crate::storage::{Storage, SyncLevel};

const IPC: &str = "aeron:ipc";
const UDP: &str = "aeron:udp?endpoint=a:1";

fn list(from: i64, count: i32) -> Vec<u8> {
    request(ListRecordingsRequest::TEMPLATE_ID, &[6, from, count.into()], &[])
}

fn list_for(from: i64, count: i32, stream_id: i32, fragment: &str) -> Vec<u8> {
    let fields = [6, from, count.into(), stream_id.into()];
    request(ListRecordingsForUriRequest::TEMPLATE_ID, &fields, &[fragment])
}

fn list_one(recording: i64) -> Vec<u8> {
    request(ListRecordingRequest::TEMPLATE_ID, &[7, recording], &[])
}

fn list_subscriptions(first: i32, count: i32, stream_id: Option<i32>, fragment: &str) -> Vec<u8> {
    let stream = [stream_id.is_some().into(), stream_id.unwrap_or(-1).into()];
    let fields = [&[8, first.into(), count.into()][..], &stream].concat();
    request(ListRecordingSubscriptionsRequest::TEMPLATE_ID, &fields, &[fragment])
}

fn find_last(min: i64, session_id: i32, stream_id: i32, fragment: &str) -> Vec<u8> {
    let fields = [9, min, session_id.into(), stream_id.into()];
    request(FindLastMatchingRecordingRequest::TEMPLATE_ID, &fields, &[fragment])
}

/// Three stopped recordings: 0 and 2 of IPC, 1 of UDP.
fn three_recordings() -> Harness {
    let mut harness = Harness::connected();
    for channel in [IPC, UDP, IPC] {
        harness.add_stopped(channel, 640);
    }
    harness
}

fn descriptor(recording: i64) -> String {
    format!("6: descriptor {recording} {}", if recording == 1 { UDP } else { IPC })
}

#[test]
fn list_sends_descriptors_then_an_answer_if_there_are_fewer() {
    for (from, count, expected, last) in [
        (0, 3, vec![0, 1, 2], None),
        (0, 2, vec![0, 1], None),
        (1, 5, vec![1, 2], Some(3)),
        (-5, 1, vec![0], None),
        (-5, 5, vec![0, 1, 2], Some(3)),
        (7, 1, vec![], Some(7)),
        (i64::MAX, 1, vec![], Some(i64::MAX)),
        (2, 0, vec![], Some(2)),
        (2, -1, vec![], Some(2)),
    ] {
        let mut harness = three_recordings();
        harness.send(list(from, count));
        harness.tick();
        let last = last.map(|id| format!("6: unknown recording {id}"));
        let expected: Vec<_> = expected.into_iter().map(descriptor).chain(last).collect();
        assert_eq!(harness.sent(), expected);
        harness.send(list(0, 1));
        harness.tick();
        assert_eq!(harness.sent(), [descriptor(0)]);
    }
}

#[test]
fn list_is_filtered_by_stream_and_channel() {
    for (stream_id, fragment, expected) in [
        (10, "ipc", vec![0, 2]),
        (10, "endpoint=a", vec![1]),
        (10, "", vec![0, 1, 2]),
        (11, "", vec![]),
        (10, "tcp", vec![]),
    ] {
        let mut harness = three_recordings();
        harness.send(list_for(0, 4, stream_id, fragment));
        harness.tick();
        let last = "6: unknown recording 3".to_owned();
        let expected: Vec<_> = expected.into_iter().map(descriptor).chain([last]).collect();
        assert_eq!(harness.sent(), expected);
    }
}

#[test]
fn list_of_one_has_its_descriptor_or_an_answer() {
    let mut harness = three_recordings();
    harness.send(list_one(1));
    harness.tick();
    harness.send(list_one(3));
    harness.send(list_one(-1));
    assert_eq!(
        harness.sent(),
        [
            format!("7: descriptor 1 {UDP}"),
            "7: unknown recording 3".to_owned(),
            "7: unknown recording -1".to_owned(),
        ]
    );
}

#[test]
fn list_meets_back_pressure_at_each_message() {
    for refused in 0..4 {
        let mut harness = three_recordings();
        harness.send(list(0, 4));
        harness.out.sent_before_refusal = Some(refused);
        harness.tick();
        let mut sent = harness.sent();
        assert_eq!(sent.len(), refused);
        harness.tick();
        sent.extend(harness.sent());
        assert_eq!(
            sent,
            [descriptor(0), descriptor(1), descriptor(2), "6: unknown recording 3".to_owned()]
        );
    }
}

#[test]
fn list_waits_behind_responses() {
    let mut harness = three_recordings();
    harness.out.refusals = 1;
    harness.send(list_one(9));
    harness.send(list(0, 1));
    harness.tick();
    assert_eq!(harness.sent(), ["7: unknown recording 9".to_owned(), descriptor(0)]);
}

#[test]
fn list_is_one_at_a_time() {
    let mut harness = three_recordings();
    harness.send(list(0, 3));
    harness.send(list(0, 3));
    harness.send(list_one(0));
    harness.send(list_subscriptions(0, 1, None, ""));
    let text = "error 1: active listing already in progress";
    assert_eq!(harness.sent(), [format!("6: {text}"), format!("7: {text}"), format!("8: {text}")]);
}

#[test]
fn list_scans_64_recordings_in_a_turn() {
    let mut harness = Harness::connected();
    for _ in 0..70 {
        harness.add_stopped(IPC, 640);
    }
    harness.send(list_for(0, 1, 10, "udp"));
    assert_eq!(harness.tick(), 1);
    assert!(harness.sent().is_empty());
    harness.tick();
    assert_eq!(harness.sent(), ["6: unknown recording 70"]);
    harness.send(list(0, 100));
    harness.tick();
    assert_eq!(harness.sent().len(), 64);
    harness.tick();
    assert_eq!(harness.sent().len(), 7);
}

#[test]
fn list_ends_with_its_session() {
    let mut harness = three_recordings();
    harness.out.sending = Sending::BackPressured;
    harness.send(list(0, 3));
    harness.tick();
    harness.send(CloseSessionRequest { control_session_id: FIRST_SESSION }.to_vec());
    harness.tick();
    harness.out.sending = Sending::Sent;
    harness.tick();
    assert!(harness.sent().is_empty());
    assert!(harness.conductor.parts.listings.is_empty());
}

#[test]
fn descriptor_that_is_too_long_ends_the_list() {
    let mut harness = three_recordings();
    harness.out.sending = Sending::TooLong;
    harness.send(list(0, 3));
    harness.tick();
    harness.out.sending = Sending::Sent;
    harness.tick();
    assert!(harness.conductor.parts.listings.is_empty());
}

#[test]
fn last_match_is_found() {
    let mut harness = three_recordings();
    for (min, session_id, stream_id, fragment, expected) in [
        (0, 5, 10, "ipc", "9: ok 2"),
        (0, 5, 10, "", "9: ok 2"),
        (0, 5, 10, "udp", "9: ok 1"),
        (2, 5, 10, "udp", "9: ok -1"),
        (0, 6, 10, "", "9: ok -1"),
        (0, 5, 11, "", "9: ok -1"),
        (i64::MAX, 5, 10, "", "9: ok -1"),
        (-1, 5, 10, "", "9: error 5: minRecordingId=-1 < 0"),
    ] {
        harness.send(find_last(min, session_id, stream_id, fragment));
        assert_eq!(harness.sent(), [expected]);
    }
}

#[test]
fn subscriptions_are_listed_with_their_channels() {
    let mut harness = Harness::connected();
    harness.start(5, UDP, false);
    harness.register();
    harness.start(5, IPC, false);
    harness.register();
    // Not registered yet.
    harness.start(5, "aeron:ipc?tags=1", false);
    let udp = format!("8: subscription 1001 stream=10 aeron-spy:{UDP}");
    let ipc = format!("8: subscription 1002 stream=10 {IPC}");
    let unknown = "8: unknown subscription 0".to_owned();
    let second = harness.connect();
    for (first, count, stream_id, fragment, expected) in [
        (0, 2, None, "", vec![&udp, &ipc]),
        (0, 1, None, "", vec![&udp]),
        (1, 5, None, "", vec![&ipc, &unknown]),
        (0, 5, Some(10), "spy", vec![&udp, &unknown]),
        (0, 5, Some(11), "", vec![&unknown]),
        (2, 1, None, "", vec![&unknown]),
        (-1, 1, None, "", vec![&unknown]),
        (0, 0, None, "", vec![&unknown]),
        (0, -1, None, "", vec![&unknown]),
    ] {
        // The first session waits for the driver.
        let mut request = list_subscriptions(first, count, stream_id, fragment);
        request[8..16].copy_from_slice(&second.to_le_bytes());
        harness.send(request);
        let expected: Vec<_> =
            expected.into_iter().map(|line| format!("[{second}] {line}")).collect();
        assert_eq!(harness.sent(), expected);
    }
}

#[test]
fn positions_of_stopped_and_active_recordings() {
    let mut harness = three_recordings();
    let active = harness.add_active(UDP);
    harness.record_to(active, 320);
    for (recording, expected) in [
        (0, ["ok 0", "ok -1", "ok 640", "ok 640"]),
        (active, ["ok 0", "ok 320", "ok -1", "ok 320"]),
        (9, ["error 5: unknown recording id: 9"; 4]),
        (-1, ["error 5: unknown recording id: -1"; 4]),
    ] {
        for template_id in [
            StartPositionRequest::TEMPLATE_ID,
            RecordingPositionRequest::TEMPLATE_ID,
            StopPositionRequest::TEMPLATE_ID,
            MaxRecordedPositionRequest::TEMPLATE_ID,
        ] {
            harness.send(request(template_id, &[6, recording], &[]));
        }
        assert_eq!(harness.sent(), expected.map(|answer| format!("6: {answer}")));
    }
}

#[test]
fn refusal_says_why_a_recording_was_set_aside() {
    let mut killed = Harness::connected();
    let recording = killed.add_active(UDP);
    let mut file = killed.storage.create(&format!("{recording}-0.rec"), 128 << 10).expect("a file");
    file.write_all_at(&[7; 64], 0).expect("no frame");
    let mut harness = Harness::connected_on(killed.storage.clone(), SyncLevel::None);
    harness.send(request(StartPositionRequest::TEMPLATE_ID, &[6, recording], &[]));
    let text = &harness.sent()[0];
    assert!(text.starts_with("6: error 5: unknown recording id: 0: it was set aside"), "{text}");
    assert!(text.contains("`rusteron archive verify 0 --repair --last-fragment`"), "{text}");
}

#[test]
fn channel_is_updated_between_listings() {
    let update = |recording, channel| {
        request(UpdateChannelRequest::TEMPLATE_ID, &[5, recording], &[channel])
    };
    let mut harness = three_recordings();
    harness.send(update(1, "aeron:ipc?alias=b|mtu=8k"));
    harness.send(update(2, "udp"));
    harness.send(update(3, IPC));
    harness.send(list_for(0, 3, 10, "mtu"));
    harness.send(update(2, IPC));
    harness.tick();
    assert_eq!(
        harness.sent(),
        [
            "5: ok 0",
            "5: error 0: Aeron URIs must start with 'aeron:', found: udp",
            "5: unknown recording 3",
            "5: error 1: active listing already in progress",
            "6: descriptor 1 aeron:ipc?alias=b|mtu=8k",
            "6: unknown recording 3",
        ]
    );
}
