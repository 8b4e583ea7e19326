//! Sessions of many clients, and of clients that say strange things.

use std::io::IoSlice;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusteron_client::{Aeron, ExclusivePublication, Header, Subscription};
use rusteron_cluster::codec::{
    SessionConnectRequest, SessionEvent, SessionMessageHeader, decode_values,
};
use rusteron_cluster::{
    Cluster, ClusteredService, Lifecycle, ServiceContainer, ServiceContext, ServiceResult,
    SessionHeader, SessionInfo, SessionMessage, SnapshotReader, SnapshotWriter,
};
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::{JavaNode, Options};

use super::Node;

/// Id, response channel, response stream and principal.
type Session = (i64, String, i32, Vec<u8>);

/// Lists the sessions at its start and at each snapshot.
struct Listing(Arc<Mutex<Vec<Vec<Session>>>>, Vec<Session>);

impl Listing {
    fn note(&self, sessions: Vec<Session>) {
        self.0.lock().expect("no panic").push(sessions);
    }
}

fn list(cluster: &Lifecycle<'_>) -> Vec<Session> {
    let session = |info: &SessionInfo| {
        let channel = info.response_channel().to_owned();
        (info.id(), channel, info.response_stream_id(), info.encoded_principal().to_vec())
    };
    cluster.sessions().map(session).collect()
}

impl ClusteredService for Listing {
    fn on_start(
        &mut self,
        cluster: &mut Lifecycle<'_>,
        _: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        self.note(list(cluster));
        Ok(())
    }

    fn on_session_open(&mut self, cluster: &mut Cluster<'_>, _: i64, _: i64) -> ServiceResult {
        self.1 = list(cluster);
        Ok(())
    }

    fn on_session_message(&mut self, _: &mut Cluster<'_>, _: &SessionMessage<'_>) -> ServiceResult {
        Ok(())
    }

    fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
        let sessions = self.1.clone();
        self.note(sessions);
        Ok(())
    }
}

fn start_listing(node: &mut Node) -> Arc<Mutex<Vec<Vec<Session>>>> {
    let lists = Arc::default();
    let member = node.cluster.node(0);
    node.context
        .set_aeron_dir(member.aeron_dir())
        .unwrap()
        .set_cluster_dir(member.cluster_dir())
        .unwrap();
    let service = Listing(Arc::clone(&lists), Vec::new());
    let container = ServiceContainer::launch(node.context.clone(), service);
    node.container = Some(container.expect("a container"));
    node.cluster.await_leader();
    lists
}

#[test]
fn snapshot_of_200_sessions() {
    const SESSIONS: usize = 200;
    let mut options = Options { session_timeout: Duration::from_secs(600), ..Options::default() };
    options = options.with_security();
    options.properties.push(format!("aeron.cluster.max.sessions={SESSIONS}"));
    let Some(mut node) = Node::launch_alone(options, ServiceContext::new()) else { return };
    let before = start_listing(&mut node);
    let mut clients = RawClients::new(node.cluster.node(0));
    // Some principals need one fragment, some two, some three.
    let principal = |index: usize| vec![b'a' + (index % 26) as u8; 1 + index * 20];
    let ids: Vec<i64> =
        (0..SESSIONS).map(|index| clients.open("aeron:ipc", &principal(index))).collect();
    node.snapshot();
    let _ = node.kill();
    drop(clients);
    let written = before.lock().expect("no panic").pop().expect("a list");
    assert!(written.iter().map(|session| session.0).eq(ids));
    assert!(written.iter().zip(0..).all(|(session, index)| session.3 == principal(index)));

    node.restart_alone();
    let after = start_listing(&mut node);
    assert_eq!(after.lock().expect("no panic")[0], written);
}

#[test]
fn refused_response_channel_is_recorded() {
    // Java's driver does not look at the flow control of an IPC channel. C would read beyond the duration's end.
    const CHANNEL: &str = "aeron:ipc?fc=min,t:5m";
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    let mut raw = RawClients::new(node.cluster.node(0));
    let deaf = raw.open(CHANNEL, b"");
    let other = raw.open("aeron:ipc", b"");
    assert_eq!(client.ask("echo both are open"), "both are open");
    assert_eq!(node.counter(215), Some(1));
    // The service gets the messages of the session, and goes on without its answers.
    raw.send(deaf, b"echo lost");
    raw.send(other, b"echo heard");
    let mut received = Vec::new();
    await_that("the other session's answer", || {
        received.extend(raw.poll());
        !received.is_empty()
    });
    assert_eq!(received, [(other, "heard".to_owned())]);
    let ids = [client.cluster.cluster_session_id(), deaf, other];
    assert_eq!(client.ask("sessions"), format!("{ids:?}"));
    // The session closes like any other.
    raw.send(deaf, b"close");
    await_that("the end of the session", || {
        client.ask("sessions") == format!("{:?}", [ids[0], other])
    });
    assert_eq!(node.counter(215), Some(1));
    let before = node.digests();
    let _ = node.kill();
    drop((client, raw));
    // A replay answers nobody, and comes to the same digests.
    node.restart();
    assert_eq!(node.digests()[..before.len()], before[..]);
}

/// The protocol's version 0.3.0.
const PROTOCOL_VERSION: i32 = 768;
const INGRESS_STREAM_ID: i32 = 101;
const EGRESS_STREAM_ID: i32 = 777;

/// Many sessions of one Aeron client, over IPC.
pub(super) struct RawClients {
    ingress: ExclusivePublication,
    egress: Subscription,
    leadership_term_id: i64,
    aeron: Aeron,
}

impl RawClients {
    pub(super) fn new(node: &JavaNode) -> Self {
        let aeron = node.aeron();
        let ingress = aeron.add_exclusive_publication("aeron:ipc", INGRESS_STREAM_ID);
        let egress = aeron.add_subscription("aeron:ipc", EGRESS_STREAM_ID).expect("a subscription");
        let ingress = ingress.expect("a publication");
        Self { ingress, egress, leadership_term_id: 0, aeron }
    }

    /// Opens a session whose answers go to a channel. Returns the session's id.
    pub(super) fn open(&mut self, response_channel: &str, credentials: &[u8]) -> i64 {
        let correlation_id = self.aeron.next_correlation_id();
        let request = SessionConnectRequest {
            correlation_id,
            response_stream_id: EGRESS_STREAM_ID,
            version: PROTOCOL_VERSION,
            response_channel: response_channel.as_bytes(),
            encoded_credentials: credentials,
            client_info: b"name=raw",
        };
        self.offer(&request.to_vec(), &[]);
        let mut opened = None;
        await_that("an open session", || {
            let on_message = |message: &[u8], _: &Header<'_>| {
                let Some((template_id, fields, data)) = decode_values(message) else { return };
                if template_id == SessionEvent::TEMPLATE_ID && fields[1] == correlation_id {
                    assert_eq!(fields[4], 0, "{}", String::from_utf8_lossy(data[0]));
                    opened = Some((fields[0], fields[2]));
                }
            };
            self.egress.poll(on_message, 10).expect("an open subscription");
            opened.is_some()
        });
        let (session_id, leadership_term_id) = opened.expect("awaited");
        self.leadership_term_id = leadership_term_id;
        session_id
    }

    /// Sends a message of a session.
    pub(super) fn send(&mut self, session_id: i64, message: &[u8]) {
        let header = SessionHeader::new(self.leadership_term_id, session_id);
        self.offer(header.as_bytes(), message);
    }

    /// Returns the messages that have arrived, with their sessions.
    pub(super) fn poll(&mut self) -> Vec<(i64, String)> {
        let mut received = Vec::new();
        let on_message = |message: &[u8], _: &Header<'_>| {
            let Some((template_id, fields, _)) = decode_values(message) else { return };
            if template_id == SessionMessageHeader::TEMPLATE_ID {
                let text = String::from_utf8_lossy(&message[SessionHeader::LENGTH..]);
                received.push((fields[1], text.into_owned()));
            }
        };
        self.egress.poll(on_message, 10).expect("an open subscription");
        received
    }

    fn offer(&mut self, header: &[u8], message: &[u8]) {
        let parts = [IoSlice::new(header), IoSlice::new(message)];
        await_that("an accepted message", || self.ingress.offer_parts(&parts).is_ok());
    }
}
