//! Messages from a cluster.

use std::borrow::Cow;

use rusteron_client::{Action, Header};

use crate::codec::{self, MessageHeader, SCHEMA_ID, SessionMessageHeader};
use crate::ids::{ClusterSessionId, CorrelationId, LeadershipTermId, MemberId};

/// A message from the cluster to a session. Valid during the handler's call only.
///
/// Corresponds to the methods of `io.aeron.cluster.client.EgressListener` and
/// `EgressListenerExtension`.
#[doc(alias("EgressListener", "ControlledEgressListener", "EgressListenerExtension"))]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Egress<'a> {
    /// A message of a service.
    Message {
        /// Time of the cluster when the service offered the message, in the cluster's unit:
        /// milliseconds, unless the cluster is configured otherwise.
        timestamp: i64,
        /// The service's bytes. They start at a multiple of 32 bytes in memory.
        payload: &'a [u8],
        /// The header of the whole message. Its lengths and positions include the session header.
        header: &'a Header<'a>,
    },
    /// An event of the session. After [`EventCode::Closed`] the session is closed. A new leader can
    /// send [`EventCode::Ok`] again.
    SessionEvent {
        /// The request that the event answers, if any.
        correlation_id: CorrelationId,
        /// The leader's term.
        leadership_term_id: LeadershipTermId,
        /// The leader's member id.
        leader_member_id: MemberId,
        /// The kind of event.
        code: EventCode,
        /// The cluster's text, such as the reason of a close.
        detail: Cow<'a, str>,
    },
    /// Another member has become the leader. The client is connecting to it.
    NewLeader {
        /// The new leader's term.
        leadership_term_id: LeadershipTermId,
        /// The new leader's member id.
        leader_member_id: MemberId,
        /// The ingress endpoints of all members, as in
        /// [`IngressEndpoints`](crate::IngressEndpoints).
        ingress_endpoints: Cow<'a, str>,
    },
    /// The answer to an administrative request.
    AdminResponse {
        /// The correlation id of the request.
        correlation_id: CorrelationId,
        /// The requested action.
        request_type: AdminRequestType,
        /// The outcome.
        response_code: AdminResponseCode,
        /// The cluster's text, such as the reason of a refusal.
        message: Cow<'a, str>,
        /// The answer's bytes, usually none.
        payload: &'a [u8],
    },
    /// A message of another SBE schema than the cluster's. It names no session.
    Extension {
        /// The id of the schema.
        schema_id: u16,
        /// The id of the message in its schema.
        template_id: u16,
        /// The sender's version of the schema.
        version: u16,
        /// Length of the sender's fields in bytes.
        block_length: u16,
        /// The bytes behind the SBE header.
        body: &'a [u8],
        /// The header of the whole message.
        header: &'a Header<'a>,
    },
}

impl<'a> Egress<'a> {
    /// Decodes a message. Returns `None` for messages of other sessions, for unknown messages of
    /// the cluster's schema, and for truncated messages.
    #[inline]
    pub(crate) fn decode(
        cluster_session_id: ClusterSessionId,
        message: &'a [u8],
        header: &'a Header<'a>,
    ) -> Option<Self> {
        let (sbe, body) = MessageHeader::split(message)?;
        if sbe.schema_id == SCHEMA_ID && sbe.template_id == SessionMessageHeader::TEMPLATE_ID {
            let session = SessionMessageHeader::decode(sbe, body)?;
            let payload = body.get(usize::from(sbe.block_length)..)?;
            return (cluster_session_id == session.cluster_session_id).then_some(Self::Message {
                timestamp: session.timestamp,
                payload,
                header,
            });
        }
        Self::decode_event(cluster_session_id, sbe, body, header)
    }

    #[cold]
    fn decode_event(
        cluster_session_id: ClusterSessionId,
        sbe: MessageHeader,
        body: &'a [u8],
        header: &'a Header<'a>,
    ) -> Option<Self> {
        if sbe.schema_id != SCHEMA_ID {
            let MessageHeader { block_length, template_id, schema_id, version } = sbe;
            return Some(Self::Extension {
                schema_id,
                template_id,
                version,
                block_length,
                body,
                header,
            });
        }
        let (session_id, egress) = match codec::Message::decode(sbe, body)? {
            codec::Message::SessionEvent(event) => {
                let egress = Self::SessionEvent {
                    correlation_id: CorrelationId::new(event.correlation_id),
                    leadership_term_id: LeadershipTermId::new(event.leadership_term_id),
                    leader_member_id: MemberId::new(event.leader_member_id),
                    code: EventCode::from(event.code),
                    detail: String::from_utf8_lossy(event.detail),
                };
                (event.cluster_session_id, egress)
            }
            codec::Message::NewLeaderEvent(event) => {
                let egress = Self::NewLeader {
                    leadership_term_id: LeadershipTermId::new(event.leadership_term_id),
                    leader_member_id: MemberId::new(event.leader_member_id),
                    ingress_endpoints: String::from_utf8_lossy(event.ingress_endpoints),
                };
                (event.cluster_session_id, egress)
            }
            codec::Message::AdminResponse(response) => {
                let egress = Self::AdminResponse {
                    correlation_id: CorrelationId::new(response.correlation_id),
                    request_type: AdminRequestType::from(response.request_type),
                    response_code: AdminResponseCode::from(response.response_code),
                    message: String::from_utf8_lossy(response.message),
                    payload: response.payload,
                };
                (response.cluster_session_id, egress)
            }
            _ => return None,
        };
        (cluster_session_id == session_id).then_some(egress)
    }
}

/// The kind of a session event.
///
/// Corresponds to `io.aeron.cluster.codecs.EventCode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventCode {
    /// The session is open.
    Ok,
    /// A request failed.
    Error,
    /// Another member is the leader.
    Redirect,
    /// The credentials are rejected.
    AuthenticationRejected,
    /// The session is closed.
    Closed,
    /// A code that this version does not know.
    Unknown(i32),
}

impl From<i32> for EventCode {
    fn from(code: i32) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Error,
            2 => Self::Redirect,
            3 => Self::AuthenticationRejected,
            4 => Self::Closed,
            code => Self::Unknown(code),
        }
    }
}

/// An administrative action.
///
/// Corresponds to `io.aeron.cluster.codecs.AdminRequestType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdminRequestType {
    /// All members take a snapshot.
    Snapshot,
    /// An action that this version does not know.
    Unknown(i32),
}

impl AdminRequestType {
    /// The number of [`Snapshot`](Self::Snapshot) in messages.
    pub(crate) const SNAPSHOT: i32 = 0;
}

impl From<i32> for AdminRequestType {
    fn from(number: i32) -> Self {
        match number {
            Self::SNAPSHOT => Self::Snapshot,
            number => Self::Unknown(number),
        }
    }
}

/// The outcome of an administrative request.
///
/// Corresponds to `io.aeron.cluster.codecs.AdminResponseCode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdminResponseCode {
    /// The cluster has accepted the request. A snapshot is requested; the answer does not say that
    /// it has been taken.
    Ok,
    /// The request failed.
    Error,
    /// The cluster's authorisation service does not allow the request.
    UnauthorisedAccess,
    /// An outcome that this version does not know.
    Unknown(i32),
}

impl From<i32> for AdminResponseCode {
    fn from(code: i32) -> Self {
        match code {
            0 => Self::Ok,
            1 => Self::Error,
            2 => Self::UnauthorisedAccess,
            code => Self::Unknown(code),
        }
    }
}

/// Decodes the messages of one session from a subscription of your own.
///
/// Use this type to read messages of a session from another subscription of its egress, such as a
/// recording's replay. The session's own [`ClusterClient`](crate::ClusterClient) or
/// [`ClusterEgress`](crate::ClusterEgress) still has to poll: only its polls follow changes of
/// leader. To receive on another thread than the one that sends, use
/// [`ClusterClient::split`](crate::ClusterClient::split) instead.
///
/// ```
/// use rusteron_client::{PollError, Subscription};
/// use rusteron_cluster::{Egress, EgressAdapter};
///
/// fn poll(subscription: &mut Subscription, session: EgressAdapter) -> Result<usize, PollError> {
///     let handler = |event: Egress<'_>| {
///         if let Egress::Message { payload, .. } = event {
///             println!("{} bytes", payload.len());
///         }
///     };
///     subscription.poll(session.handler(handler), 10)
/// }
/// ```
///
/// Corresponds to `io.aeron.cluster.client.EgressAdapter` and `ControlledEgressAdapter`.
#[doc(alias = "ControlledEgressAdapter")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EgressAdapter {
    cluster_session_id: ClusterSessionId,
}

impl EgressAdapter {
    /// Returns an adapter for the messages of a session.
    pub fn new(cluster_session_id: ClusterSessionId) -> Self {
        Self { cluster_session_id }
    }

    /// Decodes a whole message. Returns `None` for messages of other sessions, for unknown messages
    /// of the cluster's schema, and for truncated messages.
    ///
    /// Does not block. Allocates only for texts that are not UTF-8.
    #[inline]
    pub fn decode<'a>(&self, message: &'a [u8], header: &'a Header<'a>) -> Option<Egress<'a>> {
        Egress::decode(self.cluster_session_id, message, header)
    }

    /// Returns a handler for [`Subscription::poll`](rusteron_client::Subscription::poll) that
    /// passes decoded messages on.
    pub fn handler<F>(self, mut handler: F) -> impl FnMut(&[u8], &Header<'_>)
    where
        F: FnMut(Egress<'_>),
    {
        move |message: &[u8], header: &Header<'_>| {
            if let Some(egress) = self.decode(message, header) {
                handler(egress);
            }
        }
    }

    /// Returns a handler for
    /// [`Subscription::controlled_poll`](rusteron_client::Subscription::controlled_poll) that
    /// passes decoded messages on. Other messages get [`Action::Continue`].
    pub fn controlled_handler<F>(self, mut handler: F) -> impl FnMut(&[u8], &Header<'_>) -> Action
    where
        F: FnMut(Egress<'_>) -> Action,
    {
        move |message: &[u8], header: &Header<'_>| match self.decode(message, header) {
            Some(egress) => handler(egress),
            None => Action::Continue,
        }
    }
}
