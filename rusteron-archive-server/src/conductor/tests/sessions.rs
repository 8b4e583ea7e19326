//! Sessions: connecting, authentication, authorisation, ends.

use super::harness::{
    CONNECT, CONNECT_TIMEOUT_MS, FIRST_SESSION, Harness, IMAGE, MAX_UNAUTHENTICATED,
    connect_request, settings,
};
use crate::conductor::effect::Sending;
use crate::conductor::event::Event;
use crate::control::authentication::{
    AcceptAll, AllowAll, Authentication, Authenticator, Authorisation,
};
use crate::ids::ControlSessionId;
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::messages::{
    ArchiveIdRequest, ChallengeResponse, CloseSessionRequest, KeepAliveRequest,
};

fn archive_id(session: i64, correlation_id: i64) -> Vec<u8> {
    ArchiveIdRequest { control_session_id: session, correlation_id }.to_vec()
}

/// Challenges, then accepts one answer.
#[derive(Debug, Default)]
struct Challenging {
    answer: Option<Vec<u8>>,
}

impl Authenticator for Challenging {
    fn on_connect_request(&mut self, _: ControlSessionId, credentials: &[u8], _: i64) {
        assert_eq!(credentials, b"secret");
    }

    fn on_challenge_response(&mut self, _: ControlSessionId, credentials: &[u8], _: i64) {
        self.answer = Some(credentials.to_vec());
    }

    fn on_connected_session(&mut self, _: ControlSessionId, _: i64) -> Authentication {
        Authentication::Challenge(b"who?".to_vec())
    }

    fn on_challenged_session(&mut self, _: ControlSessionId, _: i64) -> Authentication {
        match self.answer.take().as_deref() {
            None => Authentication::Pending,
            Some(b"me") => Authentication::Accept(b"me".to_vec()),
            Some(b"panic") => panic!("of the authenticator"),
            Some(_) => Authentication::Reject,
        }
    }
}

/// Allows what `me` requests, but the archive id to nobody.
struct Only;

impl Authorisation for Only {
    fn is_authorised(&mut self, template_id: u16, principal: &[u8]) -> bool {
        principal == b"me" && template_id != ArchiveIdRequest::TEMPLATE_ID
    }
}

fn challenged() -> Harness {
    let mut harness = Harness::with(Box::new(Challenging::default()), Box::new(Only), settings());
    let session = harness.request_session();
    harness.publish_responses(session, Ok(()));
    harness.tick();
    harness.tick();
    harness
}

fn answer_challenge(harness: &mut Harness, image: i64, credentials: &[u8]) {
    let answer = ChallengeResponse {
        control_session_id: FIRST_SESSION,
        correlation_id: 3,
        encoded_credentials: credentials,
    };
    harness.send_on(image, &answer.to_vec());
}

#[test]
fn connect_is_answered_until_a_request_comes() {
    let mut harness = Harness::new();
    let session = harness.request_session();
    assert_eq!(
        harness.orders(),
        [format!(
            "respond {session} image={IMAGE} stream=20 \
             aeron:udp?endpoint=client:1|mtu=1408|term-length=64k|sparse=true test"
        )]
    );
    harness.tick();
    harness.publish_responses(session, Ok(()));
    harness.out.is_connected = false;
    harness.tick();
    harness.out.is_connected = true;
    assert_eq!(harness.tick(), 1);
    assert!(harness.sent().is_empty());
    harness.tick();
    let ok = [format!("{CONNECT}: ok {session}")];
    assert_eq!(harness.sent(), ok);
    harness.tick_after(199);
    assert!(harness.sent().is_empty());
    harness.tick_after(1);
    assert_eq!(harness.sent(), ok);
    harness.send(archive_id(session, 4));
    harness.tick_after(200);
    assert_eq!(harness.sent(), ["4: ok 42"]);
}

#[test]
fn connect_that_is_back_pressured_is_answered_later() {
    let mut harness = Harness::new();
    let session = harness.request_session();
    harness.publish_responses(session, Ok(()));
    harness.tick();
    harness.out.refusals = 1;
    harness.tick();
    // Not connected yet, as far as the client knows: its requests do not count.
    harness.send(archive_id(session, 4));
    assert!(harness.sent().is_empty());
    harness.tick_after(200);
    assert_eq!(harness.sent(), [format!("{CONNECT}: ok {session}")]);
}

#[test]
fn other_major_version_is_refused_until_timeout() {
    let mut harness = Harness::new();
    harness.send(connect_request(2 << 16 | 3, "aeron:ipc"));
    harness.publish_responses(FIRST_SESSION, Ok(()));
    harness.tick();
    harness.tick();
    harness.tick_after(200);
    let error = format!(
        "{CONNECT}: error {FIRST_SESSION}: invalid client version 2.0.3, archive is 1.12.0"
    );
    assert_eq!(harness.sent(), [error.clone(), error]);
    // Authenticated or not, it never becomes active.
    harness.send(archive_id(FIRST_SESSION, 4));
    harness.clear();
    harness.tick_after(CONNECT_TIMEOUT_MS);
    let reason = "failed to establish initial connection: state=CONNECTED";
    assert_eq!(
        harness.orders(),
        [format!("close session {FIRST_SESSION} image={IMAGE}: {reason}")]
    );
}

#[test]
fn session_that_does_not_connect_ends_in_each_state() {
    let close = |state: &str| {
        format!(
            "close session {FIRST_SESSION} image={IMAGE}: \
             failed to establish initial connection: state={state}"
        )
    };
    for (state, is_published, is_connected) in [("INIT", false, false), ("CONNECTING", true, false)]
    {
        let mut harness = Harness::new();
        let session = harness.request_session();
        if is_published {
            harness.publish_responses(session, Ok(()));
        }
        harness.out.is_connected = is_connected;
        harness.tick_after(CONNECT_TIMEOUT_MS);
        harness.clear();
        harness.tick_after(1);
        assert_eq!(harness.orders(), [close(state)]);
        assert_eq!(
            harness.errors(),
            [format!(
                "controlSessionId={session} (controlResponseStreamId=20 \
                 controlResponseChannel=aeron:udp?endpoint=client:1|mtu=1408|term-length=64k|\
                 sparse=true) terminated: failed to establish initial connection: state={state}"
            )]
        );
    }

    let mut harness = challenged();
    harness.tick_after(CONNECT_TIMEOUT_MS);
    harness.clear();
    harness.tick_after(1);
    assert_eq!(harness.orders(), [close("CHALLENGED")]);

    let mut harness = challenged();
    answer_challenge(&mut harness, IMAGE, b"another");
    harness.tick();
    harness.tick_after(CONNECT_TIMEOUT_MS);
    harness.clear();
    harness.tick_after(1);
    assert_eq!(harness.orders(), [close("REJECTED")]);
}

#[test]
fn refused_publication_ends_session() {
    let mut harness = Harness::new();
    let session = harness.request_session();
    harness.clear();
    harness.publish_responses(session, Err("no such host"));
    harness.tick();
    assert_eq!(
        harness.orders(),
        [format!("close session {session} image={IMAGE}: failed with exception: no such host")]
    );
}

#[test]
fn challenge_is_repeated_under_back_pressure_and_answered() {
    let mut harness = Harness::with(Box::new(Challenging::default()), Box::new(Only), settings());
    let session = harness.request_session();
    harness.publish_responses(session, Ok(()));
    harness.tick();
    harness.out.refusals = 1;
    harness.tick();
    assert!(harness.sent().is_empty());
    harness.tick_after(200);
    assert_eq!(harness.sent(), ["1: challenge who?"]);
    // On another image, it is somebody else's.
    answer_challenge(&mut harness, IMAGE + 1, b"me");
    harness.tick();
    assert!(harness.sent().is_empty());
    answer_challenge(&mut harness, IMAGE, b"me");
    harness.tick();
    assert_eq!(harness.sent(), [format!("3: ok {session}")]);
}

#[test]
fn rejection_is_repeated() {
    let mut harness = challenged();
    harness.clear();
    answer_challenge(&mut harness, IMAGE, b"another");
    harness.tick_after(200);
    harness.tick();
    harness.tick_after(200);
    let rejected = "3: error 10: authentication rejected";
    assert_eq!(harness.sent(), [rejected, rejected]);
    harness.send(archive_id(FIRST_SESSION, 4));
    assert!(harness.sent().is_empty());
}

#[test]
fn panic_of_authenticator_ends_its_session() {
    let mut harness = challenged();
    harness.clear();
    answer_challenge(&mut harness, IMAGE, b"panic");
    harness.tick();
    assert_eq!(
        harness.orders(),
        [format!(
            "close session {FIRST_SESSION} image={IMAGE}: failed with exception: of the authenticator"
        )]
    );
}

#[test]
fn unauthorised_request_is_refused() {
    let mut harness = challenged();
    answer_challenge(&mut harness, IMAGE, b"me");
    harness.tick();
    harness.clear();
    harness.send(archive_id(FIRST_SESSION, 4));
    assert_eq!(harness.sent(), ["4: error 13: unauthorised action"]);
    assert_eq!(
        harness.mistakes(),
        [format!(
            "unauthorised archive action=68 controlSessionId={FIRST_SESSION} source=client:1"
        )]
    );
}

#[test]
fn request_counts_on_its_own_image_only() {
    let mut harness = Harness::connected();
    harness.send_on(IMAGE + 1, &archive_id(FIRST_SESSION, 4));
    assert!(harness.sent().is_empty());
    assert_eq!(
        harness.errors(),
        [format!(
            "unauthorised archive action=68 controlSessionId={FIRST_SESSION} source=client:1"
        )]
    );
    let close = CloseSessionRequest { control_session_id: FIRST_SESSION }.to_vec();
    harness.send_on(IMAGE + 1, &close);
    harness.tick();
    assert!(harness.orders().is_empty());
    harness.send(archive_id(7, 4));
    assert!(harness.errors().is_empty());
    assert_eq!(
        harness.mistakes(),
        ["control request for unknown session: controlSessionId=7 templateId=68"]
    );
}

#[test]
fn session_ends_without_rejection_when_the_client_leaves() {
    let close = [format!("close session {FIRST_SESSION} image={IMAGE}")];

    let mut harness = Harness::connected();
    harness.send(CloseSessionRequest { control_session_id: FIRST_SESSION }.to_vec());
    harness.tick();
    assert_eq!(harness.orders(), close);

    let mut harness = Harness::connected();
    harness.tell(Event::RequestImageUnavailable((IMAGE + 1).into()));
    harness.tick();
    assert!(harness.orders().is_empty());
    harness.tell(Event::RequestImageUnavailable(IMAGE.into()));
    harness.tick();
    assert_eq!(harness.orders(), close);

    let mut harness = Harness::connected();
    harness.out.is_connected = false;
    harness.tick();
    assert_eq!(harness.orders(), close);
    assert!(harness.errors().is_empty());

    let mut harness = Harness::connected();
    harness.out.sending = Sending::NotConnected;
    harness.send(archive_id(FIRST_SESSION, 4));
    harness.tick();
    assert_eq!(harness.orders(), close);
}

#[test]
fn publication_that_takes_no_more_ends_session() {
    for (sending, state) in [(Sending::Closed, "closed"), (Sending::MaxPosition, "at max position")]
    {
        let mut harness = Harness::connected();
        harness.out.sending = sending;
        harness.send(archive_id(FIRST_SESSION, 4));
        harness.tick();
        assert_eq!(
            harness.orders(),
            [format!(
                "close session {FIRST_SESSION} image={IMAGE}: control response publication is {state}"
            )]
        );
    }
}

#[test]
fn active_session_is_pinged() {
    let mut harness = Harness::connected();
    harness.tick_after(999);
    assert!(harness.sent().is_empty());
    harness.tick_after(1);
    harness.tick_after(999);
    assert_eq!(harness.sent(), ["ping"]);
    harness.tick_after(1);
    assert_eq!(harness.sent(), ["ping"]);
}

#[test]
fn responses_keep_their_order_under_back_pressure() {
    let mut harness = Harness::connected();
    harness.out.refusals = 1;
    for correlation_id in 4..7 {
        harness.send(archive_id(FIRST_SESSION, correlation_id));
    }
    assert!(harness.sent().is_empty());
    harness.tick();
    assert_eq!(harness.sent(), ["4: ok 42", "5: ok 42", "6: ok 42"]);
}

#[test]
fn client_that_does_not_read_is_ended_after_the_timeout() {
    let mut harness = Harness::connected();
    harness.out.sending = Sending::BackPressured;
    harness.send(archive_id(FIRST_SESSION, 4));
    harness.tick_after(CONNECT_TIMEOUT_MS);
    assert!(harness.orders().is_empty());
    // One message that is sent begins the time anew.
    harness.out.sending = Sending::Sent;
    harness.tick();
    harness.out.sending = Sending::BackPressured;
    harness.send(archive_id(FIRST_SESSION, 5));
    harness.tick_after(CONNECT_TIMEOUT_MS);
    assert!(harness.orders().is_empty());
    harness.tick_after(1);
    assert_eq!(
        harness.orders(),
        [format!(
            "close session {FIRST_SESSION} image={IMAGE}: \
             failed to send response for more than connectTimeoutMs=5000"
        )]
    );
}

#[test]
fn requests_of_a_client_that_does_not_read_are_bounded() {
    let mut harness = Harness::connected();
    harness.out.sending = Sending::BackPressured;
    for correlation_id in 0..70_000 {
        harness.send(archive_id(FIRST_SESSION, correlation_id));
    }
    harness.tick();
    let orders = harness.orders();
    assert!(orders[0].ends_with("too many responses wait for a client that does not read them"));
}

#[test]
fn malformed_messages_are_reported_and_unknown_ones_ignored() {
    let mut harness = Harness::connected();
    harness.send(vec![1, 2, 3]);
    harness.send(vec![0, 0, 68, 0, 111, 0, 14, 0]);
    harness.send(archive_id(FIRST_SESSION, 4)[..20].to_vec());
    harness.send(vec![0, 0, 2, 0, 101, 0, 14, 0]);
    harness.send(vec![8, 0, 106, 0, 101, 0, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        harness.errors(),
        [
            "a control message of 3 bytes has no header",
            "expected schemaId=101, actual=111",
            "control message with templateId=68 is truncated",
        ]
    );
    assert!(harness.sent().is_empty());
}

#[test]
fn wrong_response_channel_is_reported() {
    let mut harness = Harness::new();
    harness.send(connect_request(PROTOCOL_VERSION, "udp"));
    assert!(harness.orders().is_empty());
    assert_eq!(
        harness.errors(),
        ["connect request with responseChannel=udp: \
             Aeron URIs must start with 'aeron:', found: udp"]
    );
}

#[test]
fn sessions_are_independent() {
    let mut harness = Harness::connected();
    let second = harness.connect();
    assert_eq!(second, FIRST_SESSION + 1);
    harness.send(archive_id(second, 4));
    harness.send(CloseSessionRequest { control_session_id: FIRST_SESSION }.to_vec());
    harness.tick();
    harness.send(KeepAliveRequest { control_session_id: second, correlation_id: 5 }.to_vec());
    harness.send(archive_id(second, 6));
    assert_eq!(harness.sent(), [format!("[{second}] 4: ok 42"), format!("[{second}] 6: ok 42")]);
    assert_eq!(harness.orders(), [format!("close session {FIRST_SESSION} image={IMAGE}")]);
}

#[test]
fn closing_ends_all_sessions() {
    let mut harness = Harness::with(Box::new(AcceptAll), Box::new(AllowAll), settings());
    harness.connect();
    harness.conductor.begin_close(harness.now, &mut harness.out);
    assert!(harness.is_idle());
    harness.conductor.finish_close(harness.now, &mut harness.out);
    assert_eq!(harness.orders(), [format!("close session {FIRST_SESSION} image={IMAGE}")]);
}

/// Requests a session, and returns whether it has begun.
fn request_session(harness: &mut Harness, image: i64, source: &str) -> bool {
    let request = connect_request(PROTOCOL_VERSION, "aeron:udp?endpoint=client:1");
    harness.offer_on(image, source, &request)
}

#[test]
fn strangers_have_a_limited_number_of_sessions() {
    let mut harness = Harness::new();
    let begun = (0..1000).filter(|_| request_session(&mut harness, 9, "other:1")).count();
    assert_eq!((begun, harness.orders().len()), (MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED));
    // They end by themselves, and their log buffers linger: the next ones begin after the connect
    // timeout.
    harness.tell(Event::RequestImageUnavailable(9.into()));
    harness.tick();
    assert!(!request_session(&mut harness, 9, "other:1"));
    harness.tick_after(CONNECT_TIMEOUT_MS);
    assert!(request_session(&mut harness, 9, "other:1"));
}

#[test]
fn known_sessions_leave_their_places() {
    let mut harness = Harness::new();
    for _ in 0..3 * MAX_UNAUTHENTICATED {
        harness.connect();
    }
    assert!(harness.errors().is_empty());
}

#[test]
fn stranger_gets_the_place_of_a_greedy_host() {
    let mut harness = Harness::new();
    for _ in 0..MAX_UNAUTHENTICATED {
        assert!(request_session(&mut harness, 9, "other:1"));
    }
    assert!(!request_session(&mut harness, IMAGE, "client:1"));
    harness.tick_after(1000);
    harness.clear();
    assert!(request_session(&mut harness, IMAGE, "client:1"));
    harness.tick();
    let reason = "too many sessions are not authenticated: max_unauthenticated_sessions=8 \
                  (AERON_ARCHIVE_MAX_UNAUTHENTICATED_SESSIONS)";
    let orders = harness.orders();
    assert_eq!(orders[1], format!("close session {FIRST_SESSION} image=9: {reason}"));
    assert_eq!(orders.len(), 2);
    assert!(!request_session(&mut harness, 9, "other:1"));
}
