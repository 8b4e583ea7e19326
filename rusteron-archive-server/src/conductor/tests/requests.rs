//! Requests that wait, and requests that are refused.

use super::harness::{FIRST_SESSION, Harness, IMAGE, image, request, start_request};
use crate::conductor::event::Event;
use crate::protocol::messages::{
    ArchiveIdRequest, AuthConnectRequest, ChallengeResponse, CloseSessionRequest, LAYOUTS,
    OF_SERVER, PurgeRecordingRequest, StopRecordingRequest, UpdateChannelRequest,
};

const IPC: &str = "aeron:ipc";

fn archive_id(correlation_id: i64) -> Vec<u8> {
    request(ArchiveIdRequest::TEMPLATE_ID, &[correlation_id], &[])
}

fn stop(correlation_id: i64) -> Vec<u8> {
    request(StopRecordingRequest::TEMPLATE_ID, &[correlation_id, 10], &[IPC])
}

/// As in Java's archive, the error log has no other refusals of requests.
#[test]
fn refused_channels_are_recorded_as_mistakes() {
    let mut harness = Harness::connected();
    let recording = harness.add_stopped(IPC, 64);
    let update = request(UpdateChannelRequest::TEMPLATE_ID, &[5, recording], &["nonsense"]);
    let stop = request(StopRecordingRequest::TEMPLATE_ID, &[6, 10], &["nonsense"]);
    for message in [start_request(4, "nonsense", false), update, stop] {
        harness.send(message);
        let mistakes = harness.mistakes();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(harness.sent()[0].ends_with(&mistakes[0]));
    }
    harness.start(7, IPC, false);
    harness.refuse_subscription("no log buffer");
    assert_eq!(harness.mistakes(), ["no log buffer"]);
    harness.send(request(PurgeRecordingRequest::TEMPLATE_ID, &[8, 99], &[]));
    assert!(harness.mistakes().is_empty() && harness.errors().is_empty());
}

#[test]
fn each_request_of_the_protocol_is_carried_out() {
    let of_sessions = [
        AuthConnectRequest::TEMPLATE_ID,
        ChallengeResponse::TEMPLATE_ID,
        CloseSessionRequest::TEMPLATE_ID,
    ];
    for layout in LAYOUTS {
        let template = layout.template_id;
        if OF_SERVER.contains(&template) || of_sessions.contains(&template) {
            continue;
        }
        let mut harness = Harness::connected();
        let fields = vec![0; layout.fields.len() - 1];
        harness.send(request(template, &fields, &vec![""; layout.data.len()]));
        let sent = harness.sent().join("; ");
        assert!(!sent.contains("no part of the archive"), "{}: {sent}", layout.name);
    }
}

#[test]
fn requests_behind_a_start_wait_for_its_answer() {
    let mut harness = Harness::connected();
    harness.start(3, IPC, false);
    harness.send(stop(4));
    harness.start(5, IPC, false);
    harness.send(archive_id(6));
    harness.tick();
    assert!(harness.sent().is_empty());
    harness.clear();
    let first = harness.register();
    // The second start waits for the driver again.
    assert_eq!(harness.sent(), [format!("3: ok {first}"), "4: ok 0".to_owned()]);
    assert_eq!(
        harness.orders(),
        [format!("close subscription {first}"), "subscribe 2 stream=10 aeron:ipc".to_owned()]
    );
    harness.refuse_subscription("no log buffer");
    assert_eq!(harness.sent(), ["5: error 0: no log buffer", "6: ok 42"]);
}

#[test]
fn another_session_does_not_wait() {
    let mut harness = Harness::connected();
    let second = harness.connect();
    harness.start(3, IPC, false);
    let on_second = |mut request: Vec<u8>| {
        request[8..16].copy_from_slice(&second.to_le_bytes());
        request
    };
    harness.send(on_second(archive_id(4)));
    // The subscription is not there for others before its answer; its key is taken.
    harness.send(on_second(stop(5)));
    harness.send(on_second(start_request(6, IPC, false)));
    assert_eq!(
        harness.sent(),
        [
            format!("[{second}] 4: ok 42"),
            format!("[{second}] 5: error 4: no recording found for streamId=10 channel={IPC}"),
            format!("[{second}] 6: error 3: recording exists for streamId=10 channel={IPC}"),
        ]
    );
}

#[test]
fn subscription_of_a_session_that_has_ended_records() {
    let mut harness = Harness::connected();
    harness.start(3, IPC, false);
    harness.send(archive_id(4));
    harness.out.is_connected = false;
    harness.tick();
    harness.clear();
    let subscription = harness.register();
    harness.add_image(subscription, &image(20));
    harness.begin(0);
    assert!(harness.sent().is_empty());
    assert_eq!(harness.orders(), [format!("record 0 subscription={subscription} image=20 0+0")]);
}

#[test]
fn close_waits_for_the_requests_before() {
    let close = CloseSessionRequest { control_session_id: FIRST_SESSION }.to_vec();
    let mut harness = Harness::connected();
    harness.start(3, IPC, false);
    harness.send(stop(4));
    harness.send(close);
    harness.send(archive_id(5));
    harness.tick();
    harness.clear();
    let subscription = harness.register();
    harness.tick();
    assert_eq!(harness.sent(), [format!("3: ok {subscription}"), "4: ok 0".to_owned()]);
    assert_eq!(
        harness.orders(),
        [
            format!("close subscription {subscription}"),
            format!("close session {FIRST_SESSION} image={IMAGE}"),
        ]
    );
}

#[test]
fn requests_of_a_gone_client_are_carried_out() {
    let leave: [fn(&mut Harness); 2] = [
        |harness| harness.tell(Event::RequestImageUnavailable(IMAGE.into())),
        |harness| harness.out.is_connected = false,
    ];
    for leave in leave {
        let mut harness = Harness::connected();
        harness.start(3, IPC, false);
        harness.send(stop(4));
        harness.clear();
        leave(&mut harness);
        harness.tick();
        let subscription = harness.register();
        harness.tick();
        assert_eq!(
            harness.orders(),
            [
                format!("close subscription {subscription}"),
                format!("close session {FIRST_SESSION} image={IMAGE}"),
            ]
        );
    }
}

#[test]
fn requests_that_wait_are_bounded() {
    let mut harness = Harness::connected();
    harness.start(3, IPC, false);
    for correlation_id in 0..=64 * 1024 {
        harness.send(archive_id(correlation_id));
    }
    harness.clear();
    harness.tick();
    assert!(harness.orders()[0].ends_with(": too many requests wait for the driver"));
}
