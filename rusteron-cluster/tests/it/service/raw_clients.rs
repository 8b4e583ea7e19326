//! Client sessions without clients: the messages alone, of many sessions on one pair of streams.

use std::io::IoSlice;

use rusteron_client::{Aeron, ExclusivePublication, Header, Subscription};
use rusteron_cluster::__private::{
    SessionConnectRequest, SessionEvent, SessionMessageHeader, decode_values,
};
use rusteron_cluster::SessionHeader;
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::JavaNode;

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
