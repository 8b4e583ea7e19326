//! A stand-in for a member of a cluster, which sends what the test says.

use std::io::IoSlice;

use rusteron_client::{Aeron, ExclusivePublication, Header, Subscription};
use rusteron_cluster::SessionHeader;
use rusteron_cluster::codec::{NewLeaderEvent, SessionConnectRequest, SessionEvent, decode_values};

use crate::{await_some, await_that};

/// The protocol's version 0.3.0.
const PROTOCOL_VERSION: i32 = 768;

/// A member that accepts one session. There is no cluster behind it.
pub struct StandIn {
    aeron: Aeron,
    ingress: Option<Subscription>,
    /// Of this member alone, as members have media drivers of their own.
    egress: Option<ExclusivePublication>,
    pub member_id: i32,
    pub leadership_term_id: i64,
    pub cluster_session_id: i64,
}

/// A client's request for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    pub correlation_id: i64,
    pub response_stream_id: i32,
    pub response_channel: String,
}

impl StandIn {
    /// Listens on an ingress channel.
    pub fn new(aeron: &Aeron, channel: &str, member_id: i32) -> Self {
        let ingress = aeron.add_subscription(channel, 101).expect("a subscription");
        Self {
            aeron: aeron.clone(),
            ingress: Some(ingress),
            egress: None,
            member_id,
            leadership_term_id: 2,
            cluster_session_id: 5,
        }
    }

    /// Waits for a connect request; `poll` lets the client work meanwhile.
    pub fn await_request(&mut self, mut poll: impl FnMut()) -> ConnectRequest {
        let bytes = await_some("the connect request", || {
            poll();
            self.poll()
        });
        let (template_id, fields, data) = decode_values(&bytes).expect("a message");
        assert_eq!(template_id, SessionConnectRequest::TEMPLATE_ID);
        ConnectRequest {
            correlation_id: fields[0],
            response_stream_id: fields[1] as i32,
            response_channel: String::from_utf8(data[0].to_vec()).expect("ASCII"),
        }
    }

    /// Answers a request with a session event.
    pub fn answer(&mut self, request: &ConnectRequest, code: i32, leader: i32, detail: &str) {
        self.connect_to(request);
        let event = SessionEvent {
            cluster_session_id: self.cluster_session_id,
            correlation_id: request.correlation_id,
            leadership_term_id: self.leadership_term_id,
            leader_member_id: leader,
            code,
            version: PROTOCOL_VERSION,
            leader_heartbeat_timeout_ns: 10_000_000_000,
            detail: detail.as_bytes(),
        };
        self.send(&event.to_vec());
    }

    /// Opens the session.
    pub fn accept(&mut self, request: &ConnectRequest) {
        self.answer(request, 0, self.member_id, "");
    }

    /// Adds the publication to the client.
    pub fn connect_to(&mut self, request: &ConnectRequest) {
        let channel = &request.response_channel;
        let egress = self.aeron.add_exclusive_publication(channel, request.response_stream_id);
        self.egress = Some(egress.expect("a publication"));
    }

    /// Announces this member as the leader of its term.
    pub fn announce(&mut self, ingress_endpoints: &str) {
        let event = NewLeaderEvent {
            leadership_term_id: self.leadership_term_id,
            cluster_session_id: self.cluster_session_id,
            leader_member_id: self.member_id,
            ingress_endpoints: ingress_endpoints.as_bytes(),
        };
        self.send(&event.to_vec());
    }

    /// Closes the session for a reason.
    pub fn close_session(&mut self, reason: &str) {
        let event = SessionEvent {
            cluster_session_id: self.cluster_session_id,
            correlation_id: 0,
            leadership_term_id: self.leadership_term_id,
            leader_member_id: self.member_id,
            code: 4,
            version: PROTOCOL_VERSION,
            leader_heartbeat_timeout_ns: 10_000_000_000,
            detail: reason.as_bytes(),
        };
        self.send(&event.to_vec());
    }

    /// Sends any bytes to the client.
    pub fn send(&mut self, bytes: &[u8]) {
        let egress = self.egress.as_mut().expect("a connected client");
        await_that("an accepted message", || egress.offer(bytes).is_ok());
    }

    /// Sends a message of the session.
    pub fn send_message(&mut self, payload: &[u8]) {
        await_that("an accepted message", || self.try_send_message(payload));
    }

    /// Offers a message of the session once. Returns whether it was accepted.
    pub fn try_send_message(&mut self, payload: &[u8]) -> bool {
        let header =
            SessionHeader::new(self.leadership_term_id.into(), self.cluster_session_id.into());
        let parts = [IoSlice::new(header.as_bytes()), IoSlice::new(payload)];
        self.egress.as_mut().expect("a connected client").offer_parts(&parts).is_ok()
    }

    /// Ends the stream to the client at once.
    pub fn disconnect(&mut self) {
        self.egress.take().expect("a connected client").revoke();
    }

    /// Leaves the ingress, and keeps the stream to the client.
    pub fn stop_listening(&mut self) {
        self.ingress = None;
    }

    /// The next message from the client, if there is one.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        let mut received = None;
        let handler = |message: &[u8], _: &Header<'_>| received = Some(message.to_vec());
        let ingress = self.ingress.as_mut().expect("a listening member");
        ingress.poll(handler, 1).expect("an open subscription");
        received
    }

    /// The next message from the client.
    pub fn receive(&mut self) -> Vec<u8> {
        await_some("a message from the client", || self.poll())
    }
}
