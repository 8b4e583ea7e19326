//! Redirects and changes of leader, with stand-ins for the members.

use std::time::Duration;

use rusteron_client::{Action, Aeron};
use rusteron_cluster::codec::{
    MessageHeader, SessionKeepAlive, SessionMessageHeader, decode_values,
};
use rusteron_cluster::{
    ClusterClient, ClusterCloseCause, ClusterContext, ClusterSessionId, ClusterState, Egress,
    EgressAdapter, EventCode,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::StandIn;
use rusteron_test_support::{await_some, await_that, connect, free_port, launch};

/// Longer than anything takes on a loaded machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// Shorter than a test may take.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// Three members, and a client of the same media driver.
pub(crate) struct Members {
    pub(crate) aeron: Aeron,
    pub(crate) members: Vec<StandIn>,
    endpoints: Vec<String>,
    _driver: MediaDriver,
}

impl Members {
    pub(crate) fn new() -> Self {
        let driver = launch();
        let aeron = connect(&driver);
        let endpoints: Vec<String> =
            (0..3).map(|id| format!("{id}=localhost:{}", free_port())).collect();
        let member = |(id, endpoint): (usize, &String)| {
            StandIn::new(&aeron, &format!("aeron:udp?endpoint={}", &endpoint[2..]), id as i32)
        };
        let members = endpoints.iter().enumerate().map(member).collect();
        Self { members, endpoints, aeron, _driver: driver }
    }

    pub(crate) fn endpoints(&self) -> String {
        self.endpoints.join(",")
    }

    pub(crate) fn context(&self) -> ClusterContext {
        let mut context = ClusterContext::new();
        context
            .set_ingress_channel("aeron:udp?term-length=64k")
            .unwrap()
            .set_ingress_endpoints(self.endpoints().parse().expect("endpoints"))
            .unwrap()
            .set_egress_channel("aeron:udp?endpoint=localhost:0")
            .unwrap()
            .set_message_timeout(TIMEOUT)
            .unwrap()
            .set_new_leader_timeout(Some(TIMEOUT))
            .unwrap();
        context
    }

    /// Opens a session with member 0. All members can then send to the client.
    pub(crate) fn session(&mut self, mut context: ClusterContext) -> ClusterClient {
        // One member at a time listens, so that the request reaches it.
        context.set_ingress_endpoints(self.endpoints[0].parse().expect("endpoints")).unwrap();
        let mut attempt = ClusterClient::async_connect(&self.aeron, context).expect("settings");
        let request =
            self.members[0].await_request(|| assert!(attempt.poll().expect("no error").is_none()));
        self.members[0].accept(&request);
        let client = await_some("the session", || attempt.poll().expect("no error"));
        for member in &mut self.members[1..] {
            member.connect_to(&request);
        }
        client
    }
}

/// Polls once. Returns the events as texts.
fn poll(client: &mut ClusterClient) -> Vec<String> {
    let mut events = Vec::new();
    let handler = |_: &mut _, event: Egress<'_>| {
        events.push(match event {
            Egress::Message { payload, .. } => format!("message {}", payload.len()),
            Egress::NewLeader { leader_member_id, leadership_term_id, .. } => {
                format!("leader {leader_member_id} in {leadership_term_id}")
            }
            Egress::SessionEvent { code: EventCode::Closed, detail, .. } => {
                format!("closed {detail}")
            }
            Egress::Extension { schema_id, template_id, version, block_length, body, .. } => {
                format!(
                    "extension {schema_id} {template_id} {version} {block_length} {}",
                    body.len()
                )
            }
            event => format!("{event:?}"),
        });
    };
    client.poll_egress(handler, 10).expect("an open session");
    events
}

fn await_events(client: &mut ClusterClient, count: usize) -> Vec<String> {
    let mut events = Vec::new();
    await_that("events", || {
        events.extend(poll(client));
        events.len() >= count
    });
    events
}

fn await_state(client: &mut ClusterClient, state: ClusterState) {
    await_that("a state of the session", || {
        let events = if client.state() == state { Vec::new() } else { poll(client) };
        assert!(events.is_empty(), "{events:?}");
        client.state() == state
    });
}

fn offer(client: &mut ClusterClient, message: &[u8]) {
    await_that("an accepted offer", || match client.offer(message) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.is_retryable(), "{error}");
            poll(client);
            false
        }
    });
}

/// The term of a message from the client.
pub(crate) fn term(message: &[u8]) -> i64 {
    let (header, body) = MessageHeader::split(message).expect("a header");
    assert_eq!(header.template_id, SessionMessageHeader::TEMPLATE_ID);
    SessionMessageHeader::decode(header, body).expect("a header").leadership_term_id
}

#[test]
fn redirect_is_followed() {
    let mut members = Members::new();
    let endpoints = members.endpoints();
    let mut context = members.context();
    context.set_ingress_endpoints(members.endpoints[1].parse().expect("endpoints")).unwrap();
    let mut attempt = ClusterClient::async_connect(&members.aeron, context).expect("settings");
    let mut work = || assert!(attempt.poll().expect("no error").is_none());
    let first = members.members[1].await_request(&mut work);
    members.members[1].answer(&first, 2, 2, &endpoints);
    let second = members.members[2].await_request(&mut work);
    assert_ne!(first.correlation_id, second.correlation_id);
    assert_eq!(first.response_channel, second.response_channel);
    members.members[2].accept(&second);
    let mut client = await_some("the session", || attempt.poll().expect("no error"));
    assert_eq!(client.leader_member_id(), 2);
    offer(&mut client, b"to the leader");
    assert_eq!(members.members[2].receive()[32..], *b"to the leader");

    // The next leader is found by its endpoint.
    members.members[0].connect_to(&second);
    members.members[0].leadership_term_id = 3;
    members.members[0].announce(&endpoints);
    assert_eq!(await_events(&mut client, 1), ["leader 0 in 3"]);
    offer(&mut client, b"next");
    assert_eq!(term(&members.members[0].receive()), 3);
}

#[test]
fn late_event_of_old_leader_is_ignored() {
    let mut members = Members::new();
    let endpoints = members.endpoints();
    let mut client = members.session(members.context());
    members.members[1].leadership_term_id = 4;
    members.members[1].announce(&endpoints);
    assert_eq!(await_events(&mut client, 1), ["leader 1 in 4"]);
    offer(&mut client, b"x");
    members.members[2].leadership_term_id = 3;
    members.members[2].announce(&endpoints);
    members.members[2].send_message(b"after the event");
    assert_eq!(await_events(&mut client, 1), ["message 15"]);
    assert_eq!((client.leader_member_id(), client.leadership_term_id()), (1.into(), 4.into()));
    assert_eq!(client.state(), ClusterState::Connected);
}

#[test]
fn late_close_by_old_leader_is_ignored() {
    let mut members = Members::new();
    let endpoints = members.endpoints();
    let mut client = members.session(members.context());
    members.members[1].leadership_term_id = 4;
    members.members[1].announce(&endpoints);
    assert_eq!(await_events(&mut client, 1), ["leader 1 in 4"]);
    offer(&mut client, b"x");
    // Member 0 still believes that it leads term 2.
    members.members[0].close_session("TIMEOUT");
    members.members[0].send_message(b"late");
    assert_eq!(await_events(&mut client, 1), ["message 4"]);
    assert_eq!(client.state(), ClusterState::Connected);
    members.members[1].close_session("SERVICE_ACTION");
    assert_eq!(await_events(&mut client, 1), ["closed SERVICE_ACTION"]);
    assert_eq!(client.state(), ClusterState::Closed(ClusterCloseCause::ClosedByCluster));
}

#[test]
fn events_in_fragments_are_whole() {
    let mut members = Members::new();
    let mut client = members.session(members.context());
    let others: Vec<String> = (3..95).map(|id| format!("{id}=member-{id}.example:9002")).collect();
    let endpoints = format!("{},{}", others.join(","), members.endpoints());
    assert!(endpoints.len() > 2000);
    members.members[2].leadership_term_id = 3;
    members.members[2].announce(&endpoints);
    assert_eq!(await_events(&mut client, 1), ["leader 2 in 3"]);
    offer(&mut client, b"x");
    let reason = "r".repeat(5000);
    members.members[2].close_session(&reason);
    assert_eq!(await_events(&mut client, 1), [format!("closed {reason}")]);
}

#[test]
fn closed_session_holds_up_no_other() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut context = ClusterContext::new();
    context
        .set_ingress_channel("aeron:ipc")
        .unwrap()
        .set_egress_channel("aeron:ipc?term-length=64k")
        .unwrap()
        .set_message_timeout(TIMEOUT)
        .unwrap();
    let mut leader = StandIn::new(&aeron, "aeron:ipc", 0);
    let mut attempt = ClusterClient::async_connect(&aeron, context).expect("valid settings");
    let request = leader.await_request(|| assert!(attempt.poll().expect("no error").is_none()));
    leader.accept(&request);
    let mut closed = await_some("the session", || attempt.poll().expect("no error"));
    let mut other = aeron.add_subscription(&*request.response_channel, 102).expect("another");
    await_that("the other's image", || other.is_connected());
    leader.close_session("TIMEOUT");
    assert_eq!(await_events(&mut closed, 1), ["closed TIMEOUT"]);
    assert!(closed.egress_subscription().is_none());

    // More than the terms hold.
    let (mut sent, mut received) = (0, 0);
    await_that("messages for another session", || {
        sent += usize::from(sent < 1000 && leader.try_send_message(&[7; 500]));
        received += other.poll(|_, _| {}, 10).expect("an open subscription");
        received >= 1000
    });
}

#[test]
fn adapter_passes_messages_of_its_session() {
    let mut members = Members::new();
    let mut context = members.context();
    context.set_egress_channel(format!("aeron:udp?endpoint=localhost:{}", free_port())).unwrap();
    let client = members.session(context);
    let channel = client.egress_subscription().expect("an open session").channel().to_owned();
    let mut subscription = members.aeron.add_subscription(channel, 102).expect("a subscription");
    await_that("the image", || subscription.is_connected());
    let adapter = EgressAdapter::new(ClusterSessionId::new(members.members[1].cluster_session_id));
    let is_message = |event: &Egress<'_>| matches!(event, Egress::Message { payload: b"own", .. });
    for is_controlled in [false, true] {
        members.members[1].cluster_session_id += 1;
        members.members[1].send_message(b"of another session");
        members.members[1].cluster_session_id -= 1;
        members.members[1].send_message(b"own");
        let mut events = 0;
        await_that("the message", || {
            let mut count = |event: Egress<'_>| {
                assert!(is_message(&event), "{event:?}");
                events += 1;
            };
            if is_controlled {
                let controlled = |event: Egress<'_>| {
                    count(event);
                    Action::Break
                };
                subscription.controlled_poll(adapter.controlled_handler(controlled), 10)
            } else {
                subscription.poll(adapter.handler(count), 10)
            }
            .expect("an open subscription");
            events == 1
        });
    }
}

#[test]
fn aborted_message_comes_again() {
    let mut members = Members::new();
    let mut client = members.session(members.context());
    for number in 0..8_u8 {
        members.members[0].send_message(&[number]);
    }
    // An event has changed the session, and comes once.
    let endpoints = members.endpoints();
    members.members[0].leadership_term_id = 3;
    members.members[0].announce(&endpoints);
    members.members[0].send_message(&[8]);
    let (mut seen, mut accepted, mut leaders) = (Vec::new(), Vec::new(), 0);
    await_that("all messages", || {
        let handler = |_: &mut _, event: Egress<'_>| {
            if matches!(event, Egress::NewLeader { .. }) {
                leaders += 1;
                return if leaders < 3 { Action::Abort } else { Action::Continue };
            }
            let Egress::Message { payload: &[number], .. } = event else { panic!("{event:?}") };
            let is_first = seen.last() != Some(&number);
            seen.push(number);
            if number % 4 == 0 && is_first {
                return Action::Abort;
            }
            accepted.push(number);
            [Action::Continue, Action::Break, Action::Commit][usize::from(number) % 3]
        };
        client.controlled_poll_egress(handler, 10).expect("an open session");
        accepted.len() == 9
    });
    assert!(accepted.iter().copied().eq(0..9), "{accepted:?}");
    assert_eq!((seen.len(), leaders), (12, 1), "{seen:?}");
}

#[test]
fn automatic_keep_alive_connects_to_new_leader() {
    let mut members = Members::new();
    let endpoints = members.endpoints();
    let mut context = members.context();
    // The first regular keep-alive is far away.
    context.set_keep_alive_interval(Some(10 * TIMEOUT)).unwrap();
    let mut client = members.session(context);
    members.members[1].leadership_term_id = 3;
    members.members[1].announce(&endpoints);
    await_events(&mut client, 1);
    await_state(&mut client, ClusterState::Connected);
    let (template_id, fields, _) = decode_values(&members.members[1].receive())
        .map(|x| (x.0, x.1, x.2.len()))
        .expect("a message");
    assert_eq!((template_id, fields), (SessionKeepAlive::TEMPLATE_ID, vec![3, 5]));
}

#[test]
fn unusable_endpoints_close_session() {
    for endpoints in ["0=localhost:1", "", "1=localhost:x", "1=localhost:1|mtu=9"] {
        let mut members = Members::new();
        let mut client = members.session(members.context());
        members.members[1].leadership_term_id = 3;
        members.members[1].announce(endpoints);
        assert_eq!(await_events(&mut client, 1), ["leader 1 in 3"]);
        let closed = ClusterState::Closed(ClusterCloseCause::NewLeaderIngressFailed);
        assert_eq!(client.state(), closed, "{endpoints}");
    }
}

#[test]
fn foreign_and_malformed_messages() {
    let mut members = Members::new();
    let mut client = members.session(members.context());
    let member = &mut members.members[0];
    let message = |template_id, schema_id, block_length| {
        let header = MessageHeader { block_length, template_id, schema_id, version: 17 };
        [&header.to_bytes()[..], &[0; 64]].concat()
    };
    member.send(b"short");
    member.send(&message(99, 111, 16));
    member.send(&message(1, 111, 1000));
    member.send(&message(2, 111, 44));
    member.send(&message(7, 444, 8));
    member.send(&message(1, 111, 24));
    // Of another session on the same stream.
    member.cluster_session_id += 1;
    member.send_message(b"of another session");
    member.close_session("of another session");
    member.cluster_session_id -= 1;
    member.send_message(b"end");
    let events = await_events(&mut client, 2);
    assert_eq!(events, ["extension 444 7 17 8 64", "message 3"]);
}
