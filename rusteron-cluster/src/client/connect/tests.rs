//! The states of connecting, with a scripted clock and scripted I/O.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;
use crate::codec::{Challenge, decode_values};

const TIMEOUT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(1);
const RESPONSE_CHANNEL: &str = "aeron:udp?endpoint=localhost:40123";
const IMAGE: i64 = 77;

/// I/O that does what the test says.
#[derive(Default)]
struct Script {
    /// Errors of the next requests for the egress.
    egress_errors: VecDeque<Error>,
    /// Errors of the next requests for a member's publication.
    ingress_errors: BTreeMap<i32, VecDeque<Error>>,
    has_port: bool,
    connected: BTreeSet<i32>,
    /// Members with a publication, and its channel.
    added: BTreeMap<i32, String>,
    closed: Vec<i32>,
    /// Errors of the next offers.
    offer_errors: VecDeque<OfferError>,
    sent: Vec<(i32, Vec<u8>)>,
    responses: VecDeque<Vec<u8>>,
    is_client_closed: bool,
    next_correlation_id: i64,
}

impl ConnectIo for Script {
    fn check_open(&self) -> Result<(), Error> {
        match self.is_client_closed {
            true => Err(Error::new(ErrorKind::ClientClosed, "the client is closed")),
            false => Ok(()),
        }
    }

    fn poll_egress(&mut self) -> Result<bool, Error> {
        self.egress_errors.pop_front().map_or(Ok(true), Err)
    }

    fn response_channel(&mut self) -> Result<Option<String>, Error> {
        Ok(self.has_port.then(|| RESPONSE_CHANNEL.to_owned()))
    }

    fn poll_ingress(&mut self, member_id: MemberId, channel: &str) -> Result<bool, Error> {
        let member_id = member_id.get();
        let errors = self.ingress_errors.get_mut(&member_id);
        if let Some(error) = errors.and_then(VecDeque::pop_front) {
            return Err(error);
        }
        assert_eq!(self.added.insert(member_id, channel.to_string()), None, "added twice");
        Ok(true)
    }

    fn is_connected(&mut self, member_id: MemberId) -> bool {
        let member_id = member_id.get();
        self.added.contains_key(&member_id) && self.connected.contains(&member_id)
    }

    fn close_ingress(&mut self, member_id: MemberId) {
        let member_id = member_id.get();
        self.added.remove(&member_id);
        self.closed.push(member_id);
    }

    fn offer(&mut self, member_id: MemberId, message: &[u8]) -> Result<(), OfferError> {
        let member_id = member_id.get();
        assert!(self.added.contains_key(&member_id), "no publication to {member_id}");
        if let Some(error) = self.offer_errors.pop_front() {
            return Err(error);
        }
        self.sent.push((member_id, message.to_vec()));
        Ok(())
    }

    fn poll_responses(
        &mut self,
        handler: &mut dyn FnMut(&[u8], i64) -> bool,
    ) -> Result<(), PollError> {
        while let Some(response) = self.responses.pop_front() {
            if handler(&response, IMAGE) {
                break;
            }
        }
        Ok(())
    }

    fn next_correlation_id(&mut self) -> CorrelationId {
        self.next_correlation_id += 1;
        CorrelationId::new(self.next_correlation_id)
    }
}

/// Supplies `user`, and the challenge with a mark.
struct Supplier;

impl CredentialsSupplier for Supplier {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        b"user".to_vec()
    }

    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
        [encoded_challenge, b"!"].concat()
    }
}

struct Attempt {
    connect: Connect,
    io: Script,
    credentials: Mutex<Supplier>,
    now: Instant,
}

impl Attempt {
    /// All members are connected unless the test changes that.
    fn new(channel: &str, endpoints: Option<&str>) -> Self {
        let now = Instant::now();
        let mut context = ClusterContext::new();
        context.set_client_name("orders").unwrap().set_message_timeout(TIMEOUT).unwrap();
        if let Some(endpoints) = endpoints {
            context.set_ingress_endpoints(endpoints.parse().unwrap()).unwrap();
        }
        let connected = BTreeSet::from([ONLY_MEMBER.get(), 0, 1, 2]);
        let io = Script { has_port: true, connected, ..Script::default() };
        let connect = Connect::new(&context, channel.parse().unwrap(), now).unwrap();
        Self { connect, io, credentials: Mutex::new(Supplier), now }
    }

    fn with_members() -> Self {
        Self::new("aeron:udp?term-length=64k", Some("0=a:1,1=b:2,2=c:3"))
    }

    /// An attempt of which one member has got the request.
    fn sent_to(member_id: i32) -> Self {
        let mut attempt = Self::with_members();
        attempt.io.connected = BTreeSet::from([member_id]);
        assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
        assert_eq!(attempt.io.sent.last().map(|sent| sent.0), Some(member_id));
        attempt
    }

    fn try_poll(&mut self) -> Result<Option<Connected>> {
        self.connect.poll(&mut self.io, &self.credentials, self.now)
    }

    /// Polls, and expects no outcome.
    fn poll(&mut self) -> ConnectState {
        assert_eq!(self.try_poll().unwrap(), None);
        self.connect.state()
    }

    fn error(&mut self) -> ClusterError {
        let error = self.try_poll().unwrap_err();
        assert_eq!(self.connect.state(), ConnectState::Done);
        let again = self.try_poll().unwrap_err();
        assert_eq!(again.kind(), ClusterErrorKind::Client(ErrorKind::IllegalState));
        error
    }

    fn respond(&mut self, code: i32, detail: &str) {
        let event = event(self.connect.correlation_id, code, detail);
        self.io.responses.push_back(event);
    }
}

fn event(correlation_id: CorrelationId, code: i32, detail: &str) -> Vec<u8> {
    let event = SessionEvent {
        cluster_session_id: 9,
        correlation_id: correlation_id.get(),
        leadership_term_id: 4,
        leader_member_id: 1,
        code,
        version: PROTOCOL_VERSION,
        leader_heartbeat_timeout_ns: 10_000_000_000,
        detail: detail.as_bytes(),
    };
    event.to_vec()
}

fn challenge(correlation_id: CorrelationId) -> Vec<u8> {
    let encoded_challenge = b"who";
    Challenge { correlation_id: correlation_id.get(), cluster_session_id: 9, encoded_challenge }
        .to_vec()
}

fn temporary() -> Error {
    Error::new(ErrorKind::ResourceTemporarilyUnavailable, "busy")
}

fn invalid() -> Error {
    Error::new(ErrorKind::UnknownHost, "no such host")
}

#[test]
fn connects_to_first_connected_member() {
    let mut attempt = Attempt::sent_to(1);
    let (_, fields, data) = decode_values(&attempt.io.sent[0].1).unwrap();
    assert_eq!(fields, [1, 102, 768]);
    assert_eq!(data[..2], [RESPONSE_CHANNEL.as_bytes(), b"user"]);
    let info = String::from_utf8_lossy(data[2]);
    assert!(info.starts_with("name=orders version=") && info.contains(" commit="), "{info}");
    let channels: Vec<&str> = attempt.io.added.values().map(String::as_str).collect();
    let expected = ["a:1", "b:2", "c:3"].map(|x| format!("aeron:udp?endpoint={x}|term-length=64k"));
    assert_eq!(channels, expected);

    attempt.respond(0, "");
    let connected = attempt.try_poll().unwrap().unwrap();
    let expected = Connected {
        cluster_session_id: 9.into(),
        leadership_term_id: 4.into(),
        leader_member_id: MemberId::new(1),
        leader_heartbeat_timeout: Some(Duration::from_secs(10)),
        image_correlation_id: IMAGE,
        member_id: MemberId::new(1),
        has_endpoints: true,
    };
    assert_eq!(connected, expected);
    assert_eq!(attempt.connect.state(), ConnectState::Done);
}

#[test]
fn channel_alone_needs_no_endpoints() {
    let mut attempt = Attempt::new("aeron:ipc", None);
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!(attempt.io.added[&ONLY_MEMBER.get()], "aeron:ipc");
    attempt.respond(0, "");
    let connected = attempt.try_poll().unwrap().unwrap();
    assert_eq!((connected.member_id, connected.has_endpoints), (ONLY_MEMBER, false));
}

#[test]
fn endpoints_of_members_replace_the_channels() {
    for (channel, endpoints, expected) in [
        ("aeron:udp?endpoint=x:9", "0=a:1,1=b:1", ["a:1", "b:1"]),
        // An endpoint may be a name.
        ("aeron:udp?", "0=node-a,1=b:1", ["node-a", "b:1"]),
    ] {
        let mut attempt = Attempt::new(channel, Some(endpoints));
        attempt.poll();
        let added: Vec<&str> = attempt.io.added.values().map(String::as_str).collect();
        assert_eq!(added, expected.map(|it| format!("aeron:udp?endpoint={it}")));
    }
}

#[test]
fn invalid_endpoint_is_refused() {
    let mut context = ClusterContext::new();
    context.set_ingress_endpoints("0=a:b".parse().unwrap()).unwrap();
    let error = Connect::new(&context, "aeron:udp?".parse().unwrap(), Instant::now()).unwrap_err();
    assert_eq!(error.kind(), ClusterErrorKind::InvalidArgument);
    assert!(error.message().contains("ingress_endpoints: 0=a:b: "), "{error}");
}

#[test]
fn messages_before_the_request_are_discarded() {
    let mut attempt = Attempt::with_members();
    attempt.io.connected.clear();
    attempt.io.responses.push_back(event(1.into(), 0, ""));
    assert_eq!(attempt.poll(), ConnectState::AwaitConnected);
    assert!(attempt.io.responses.is_empty());
    attempt.io.connected.insert(0);
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
}

#[test]
fn disconnected_member_is_given_up() {
    let mut attempt = Attempt::sent_to(0);
    let first = attempt.connect.correlation_id;
    attempt.io.connected = BTreeSet::from([2]);
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    attempt.now += TIMEOUT / 8 - TICK;
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    attempt.now += TICK;
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!(attempt.io.sent.last().unwrap().0, 2);
    assert_ne!(attempt.connect.correlation_id, first);
}

#[test]
fn shortly_disconnected_member_may_answer() {
    let mut attempt = Attempt::sent_to(0);
    for _ in 0..3 {
        attempt.io.connected.clear();
        attempt.poll();
        attempt.now += TIMEOUT / 8 - TICK;
        attempt.poll();
        attempt.io.connected.insert(0);
        attempt.poll();
    }
    assert_eq!(attempt.io.sent.len(), 1);
    attempt.respond(0, "");
    assert!(attempt.try_poll().unwrap().is_some());
}

#[test]
fn unusable_endpoint_of_another_member_is_passed_over() {
    let mut attempt = Attempt::sent_to(0);
    attempt.io.connected.insert(1);
    attempt.respond(2, "0=resolver-name,1=b:2,2=c:3");
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!(attempt.io.sent.last().unwrap().0, 1);
}

#[test]
fn temporary_failures_are_retried() {
    let mut attempt = Attempt::new("aeron:udp?endpoint=a:1", None);
    attempt.io.egress_errors.extend([temporary(), temporary()]);
    attempt.io.ingress_errors.insert(ONLY_MEMBER.get(), VecDeque::from([temporary(), temporary()]));
    let states: Vec<ConnectState> = (0..5).map(|_| attempt.poll()).collect();
    use ConnectState::*;
    assert_eq!(states, [AddEgress, AddEgress, AddIngress, AddIngress, AwaitResponse]);
}

#[test]
fn failure_of_one_member_waits_for_others() {
    let mut attempt = Attempt::with_members();
    attempt.io.connected.clear();
    attempt.io.ingress_errors.insert(0, VecDeque::from([invalid()]));
    assert_eq!(attempt.poll(), ConnectState::AwaitConnected);
    assert_eq!(attempt.poll(), ConnectState::AwaitConnected);
    attempt.now += TIMEOUT;
    let error = attempt.error();
    assert_eq!(error.kind(), ClusterErrorKind::Timeout);
    for part in [
        "If no consensus module runs",
        RESPONSE_CHANNEL,
        "endpoint=a:1",
        "no such host",
        "c:3",
        "not connected",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn request_waits_for_response_port() {
    let mut attempt = Attempt::with_members();
    attempt.io.has_port = false;
    assert_eq!(attempt.poll(), ConnectState::AwaitConnected);
    attempt.io.has_port = true;
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
}

#[test]
fn request_is_offered_until_accepted() {
    let mut attempt = Attempt::with_members();
    attempt.io.offer_errors.extend([OfferError::BackPressured, OfferError::AdminAction]);
    assert_eq!(attempt.poll(), ConnectState::Send);
    assert_eq!(attempt.poll(), ConnectState::Send);
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!(attempt.io.sent.len(), 1);
}

#[test]
fn lost_member_is_replaced_by_another() {
    let mut attempt = Attempt::with_members();
    attempt.io.offer_errors.push_back(OfferError::NotConnected);
    assert_eq!(attempt.poll(), ConnectState::AwaitConnected);
    attempt.io.connected.remove(&0);
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!(attempt.io.sent[0].0, 1);
}

#[test]
fn lasting_failures_end_attempt() {
    let too_long = OfferError::MessageTooLong { length: 9000, max_message_length: 8192 };
    type Fail = fn(&mut Script, OfferError);
    let failures: [(Fail, ErrorKind); 3] = [
        (|io, _| io.egress_errors.push_back(invalid()), ErrorKind::UnknownHost),
        (
            |io, _| io.ingress_errors.extend((0..3).map(|id| (id, VecDeque::from([invalid()])))),
            ErrorKind::UnknownHost,
        ),
        (|io, too_long| io.offer_errors.push_back(too_long), ErrorKind::InvalidArgument),
    ];
    for (fail, kind) in failures {
        let mut attempt = Attempt::with_members();
        fail(&mut attempt.io, too_long);
        assert_eq!(attempt.error().kind(), ClusterErrorKind::Client(kind));
    }
}

#[test]
fn no_answer_is_a_timeout() {
    let mut attempt = Attempt::sent_to(0);
    attempt.now += TIMEOUT - TICK;
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    attempt.now += TICK;
    let error = attempt.error();
    assert_eq!(error.kind(), ClusterErrorKind::Timeout);
    assert!(error.message().contains("no leader"), "{error}");
}

#[test]
fn other_answers_are_ignored() {
    let mut attempt = Attempt::sent_to(0);
    let own = attempt.connect.correlation_id;
    let another = CorrelationId::new(own.get() + 1);
    let mut other_schema = event(own, 0, "");
    other_schema[4] = 101;
    let mut other_template = event(own, 0, "");
    other_template[2] = 99;
    let truncated = event(own, 0, "")[..40].to_vec();
    let others = [
        event(another, 0, ""),
        event(another, 1, "another session's"),
        challenge(another),
        other_schema,
        other_template,
        truncated,
        event(own, 4, "closed"),
        event(own, 5, "unknown"),
        vec![1, 2, 3],
    ];
    attempt.io.responses.extend(others);
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!((attempt.io.sent.len(), attempt.connect.correlation_id), (1, own));
    attempt.respond(0, "");
    assert!(attempt.try_poll().unwrap().is_some());
}

#[test]
fn messages_behind_the_answer_stay() {
    let mut attempt = Attempt::sent_to(0);
    attempt.respond(0, "");
    attempt.io.responses.push_back(b"of the session".to_vec());
    assert!(attempt.try_poll().unwrap().is_some());
    assert_eq!(attempt.io.responses.len(), 1);
}

#[test]
fn refusals_have_their_kind_and_reason() {
    for (code, kind) in
        [(1, ClusterErrorKind::Rejected), (3, ClusterErrorKind::AuthenticationRejected)]
    {
        let mut attempt = Attempt::sent_to(0);
        attempt.respond(code, "concurrent session limit");
        let error = attempt.error();
        assert_eq!((error.kind(), error.message()), (kind, "concurrent session limit"));
    }
}

#[test]
fn challenge_is_answered() {
    let mut attempt = Attempt::sent_to(0);
    let first = attempt.connect.correlation_id;
    attempt.io.responses.push_back(challenge(first));
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    let second = attempt.connect.correlation_id;
    assert_ne!(first, second);
    let (template, fields, data) = decode_values(&attempt.io.sent[1].1).unwrap();
    assert_eq!((template, fields), (ChallengeResponse::TEMPLATE_ID, vec![second.get(), 9]));
    assert_eq!(data, [b"who!"]);
    // An answer to the first request is not meant any more.
    attempt.io.responses.push_back(event(first, 0, ""));
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    attempt.respond(3, "wrong answer");
    assert_eq!(attempt.error().kind(), ClusterErrorKind::AuthenticationRejected);
}

#[test]
fn lost_challenger_ends_attempt() {
    let mut attempt = Attempt::sent_to(0);
    attempt.io.responses.push_back(challenge(attempt.connect.correlation_id));
    attempt.io.offer_errors.push_back(OfferError::NotConnected);
    assert_eq!(attempt.error().kind(), ClusterErrorKind::ConnectionLost);
}

#[test]
fn redirect_keeps_publication_to_leader() {
    let mut attempt = Attempt::sent_to(0);
    attempt.io.connected.insert(1);
    attempt.respond(2, "0=a:1,1=b:2,2=c:3");
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!(attempt.io.closed, [0, 2]);
    assert_eq!(attempt.io.sent.last().unwrap().0, 1);
    attempt.respond(0, "");
    assert_eq!(attempt.try_poll().unwrap().unwrap().member_id, 1);
}

#[test]
fn redirect_replaces_publication_elsewhere() {
    // The other members' publications are not the leader's, wherever they lead.
    for (endpoints, endpoint) in [("0=a:1,1=moved:2", "moved:2"), ("0=b:2,1=a:1", "a:1")] {
        let mut attempt = Attempt::sent_to(0);
        attempt.io.connected.insert(1);
        attempt.respond(2, endpoints);
        assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
        assert_eq!(attempt.io.closed, [0, 1, 2]);
        let channel = format!("aeron:udp?endpoint={endpoint}|term-length=64k");
        assert_eq!(attempt.io.added[&1], channel);
    }
}

#[test]
fn redirect_without_endpoints_is_remembered() {
    let mut attempt = Attempt::new("aeron:udp?endpoint=a:1", None);
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    attempt.respond(2, "0=a:1,1=b:2");
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!(attempt.io.added[&1], "aeron:udp?endpoint=b:2");
    attempt.respond(0, "");
    assert!(attempt.try_poll().unwrap().unwrap().has_endpoints);
}

#[test]
fn unconnected_leader_leads_back_to_others() {
    let mut attempt = Attempt::sent_to(0);
    attempt.respond(2, "0=a:1,1=b:2,2=c:3");
    assert_eq!(attempt.poll(), ConnectState::AwaitConnected);
    attempt.io.connected.insert(2);
    attempt.now += TIMEOUT / 4 - TICK;
    assert_eq!(attempt.poll(), ConnectState::AwaitConnected);
    attempt.now += TICK;
    assert_eq!(attempt.poll(), ConnectState::AwaitResponse);
    assert_eq!(attempt.io.sent.last().unwrap().0, 0);
}

#[test]
fn unusable_redirects_end_attempt() {
    for (channel, detail, expected) in [
        ("aeron:udp?endpoint=a:1", "nonsense", "endpoints are written"),
        ("aeron:udp?endpoint=a:1", "0=a:1,2=c:3", "the leader has no endpoint"),
        ("aeron:udp?endpoint=a:1", "0=a:1,1=b:c", "endpoint=b:c"),
        ("aeron:ipc", "1=b:2", "IPC reaches only the member on this media driver"),
    ] {
        let mut attempt = Attempt::new(channel, None);
        attempt.poll();
        attempt.respond(2, detail);
        let error = attempt.error();
        assert_eq!(error.kind(), ClusterErrorKind::Rejected);
        assert!(error.message().contains(expected), "{error}");
    }
}

#[test]
fn redirects_do_not_extend_the_deadline() {
    let mut attempt = Attempt::with_members();
    attempt.poll();
    let mut redirects = 0;
    let outcome = loop {
        attempt.respond(2, "0=a:1,1=b:2,2=c:3");
        attempt.now += TIMEOUT / 10;
        redirects += 1;
        match attempt.try_poll() {
            Ok(connected) => assert_eq!(connected, None),
            Err(error) => break error,
        }
    };
    assert_eq!((outcome.kind(), redirects), (ClusterErrorKind::Timeout, 10));
}

#[test]
fn closed_client_ends_attempt() {
    for mut attempt in [Attempt::with_members(), Attempt::sent_to(0)] {
        attempt.io.is_client_closed = true;
        assert_eq!(attempt.error().kind(), ClusterErrorKind::Client(ErrorKind::ClientClosed));
    }
}
