//! The states of connecting to a cluster, without I/O.
//!
//! ```text
//! AddEgress → AddIngress → AwaitConnected → Send → AwaitResponse → Done
//!                 ▲                          ▲          │
//!                 │                          └──────────┤ challenge
//!                 └─────────────────────────────────────┘ redirect
//! ```
//!
//! - All members with endpoints get a publication, and the first connected member gets the request.
//! - The media driver's name resolver decides about an endpoint without a port.
//! - A temporary failure of the media driver is repeated. If one member's publication fails, the others go on;
//!   if all fail, the attempt ends.
//! - Only answers with the correlation id of the current request count.
//! - After a redirect, the leader alone is tried for a quarter of the message timeout, then all members. Java
//!   tries all at once, and can ask the same follower again.
//! - The poll ends with the answer, so later messages stay in the stream for the session.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusteron_client::{ChannelUri, Error, ErrorKind, Media, OfferError, PollError};
use rusteron_core::CredentialsSupplier;

use crate::client::context::ClusterContext;
use crate::client::egress::EventCode;
use crate::client::endpoints::IngressEndpoints;
use crate::codec::{
    ChallengeResponse, Message, MessageHeader, SCHEMA_ID, SessionConnectRequest, SessionEvent,
};
use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::ids::{ClusterSessionId, CorrelationId, LeadershipTermId, MemberId};
use crate::stream::{ingress_channel, is_temporary};

/// The version of the client's protocol, 0.3.0. The cluster compares the major number.
const PROTOCOL_VERSION: i32 = 3 << 8;

/// The id of the one member of a cluster without endpoints.
const ONLY_MEMBER: MemberId = MemberId::new(-1);

/// The state of an attempt to connect.
///
/// Corresponds to `io.aeron.cluster.client.AeronCluster.AsyncConnect.State`.
#[doc(alias("AeronCluster.AsyncConnect.State", "stepName"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectState {
    /// The subscription for the egress is being added.
    AddEgress,
    /// Publications to the members are being added.
    AddIngress,
    /// No member is connected yet.
    AwaitConnected,
    /// A request is being sent to a member.
    Send,
    /// The cluster has not answered yet.
    AwaitResponse,
    /// The outcome has been returned.
    Done,
}

/// The I/O of connecting. Members are known by their ids.
pub(crate) trait ConnectIo {
    /// Returns an error if a fatal error has ended the Aeron client.
    fn check_open(&self) -> Result<(), Error>;

    /// Requests the egress subscription if necessary. Returns whether it has been added.
    fn poll_egress(&mut self) -> Result<bool, Error>;

    /// Returns the channel that the cluster answers on, once its port is known.
    fn response_channel(&mut self) -> Result<Option<String>, Error>;

    /// Requests a publication to a member if necessary. Returns whether it has been added.
    fn poll_ingress(&mut self, member_id: MemberId, channel: &str) -> Result<bool, Error>;

    /// Returns whether the member's publication is connected.
    fn is_connected(&mut self, member_id: MemberId) -> bool;

    /// Closes the member's publication, or cancels its request.
    fn close_ingress(&mut self, member_id: MemberId);

    /// Offers a message to a member.
    fn offer(&mut self, member_id: MemberId, message: &[u8]) -> Result<(), OfferError>;

    /// Passes messages to the handler, with the id of their image, until the handler returns true.
    fn poll_responses(
        &mut self,
        handler: &mut dyn FnMut(&[u8], i64) -> bool,
    ) -> Result<(), PollError>;

    /// Returns an id that is unique among all clients of the media driver.
    fn next_correlation_id(&mut self) -> CorrelationId;
}

/// An attempt to connect.
#[derive(Debug)]
pub(crate) struct Connect {
    state: ConnectState,
    deadline: Instant,
    message_timeout: Duration,
    ingress: ChannelUri,
    egress_stream_id: i32,
    client_info: String,
    members: Vec<Member>,
    /// True if each member has an endpoint: by the settings, or by a redirect.
    has_endpoints: bool,
    /// The leader that a redirect has named, and the time until which other members are not asked.
    leader: Option<(MemberId, Instant)>,
    /// The member that gets the request.
    chosen: MemberId,
    is_challenged: bool,
    /// The time at which the chosen member's disconnection was noticed.
    lost_since: Option<Instant>,
    correlation_id: CorrelationId,
    request: Vec<u8>,
}

#[derive(Debug)]
struct Member {
    id: MemberId,
    channel: String,
    is_added: bool,
    /// The reason why there is no publication to the member.
    error: Option<Error>,
}

/// A session that the cluster has opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Connected {
    pub(crate) cluster_session_id: ClusterSessionId,
    pub(crate) leadership_term_id: LeadershipTermId,
    pub(crate) leader_member_id: MemberId,
    pub(crate) leader_heartbeat_timeout: Option<Duration>,
    /// The image on which the leader answered.
    pub(crate) image_correlation_id: i64,
    /// The member with the ingress publication.
    pub(crate) member_id: MemberId,
    pub(crate) has_endpoints: bool,
}

/// An answer to the current request.
enum Response {
    Connected(Connected),
    Challenge { cluster_session_id: ClusterSessionId, encoded_challenge: Vec<u8> },
    Redirect { leader_member_id: MemberId, endpoints: String },
    Refused(ClusterError),
}

impl Connect {
    /// `ingress` is the channel of the context.
    pub(crate) fn new(context: &ClusterContext, ingress: ChannelUri, now: Instant) -> Result<Self> {
        let ingress_endpoints = context.ingress_endpoints();
        let members = members(&ingress, ingress_endpoints);
        for member in &members {
            if let Some(error) = &member.error {
                let setting = match ingress_endpoints {
                    Some(endpoints) => {
                        let endpoint = endpoints.get(member.id).unwrap_or_default();
                        format!("ingress_endpoints: {}={endpoint}", member.id)
                    }
                    None => format!("ingress_channel={ingress}"),
                };
                return Err(ClusterError::invalid(format!("{setting}: {error}")));
            }
        }
        Ok(Self {
            state: ConnectState::AddEgress,
            deadline: now + context.message_timeout(),
            message_timeout: context.message_timeout(),
            ingress,
            egress_stream_id: context.egress_stream_id(),
            client_info: client_info(context.client_name()),
            members,
            has_endpoints: ingress_endpoints.is_some(),
            leader: None,
            chosen: ONLY_MEMBER,
            is_challenged: false,
            lost_since: None,
            correlation_id: CorrelationId::new(0),
            request: Vec::new(),
        })
    }

    pub(crate) fn state(&self) -> ConnectState {
        self.state
    }

    /// Proceeds as far as possible without waiting. Returns the session, if the cluster has opened
    /// one.
    pub(crate) fn poll(
        &mut self,
        io: &mut impl ConnectIo,
        credentials: &Mutex<dyn CredentialsSupplier>,
        now: Instant,
    ) -> Result<Option<Connected>> {
        if self.state == ConnectState::Done {
            return Err(ClusterError::new(
                ClusterErrorKind::Client(ErrorKind::IllegalState),
                "the attempt to connect has given its outcome already",
            ));
        }
        let outcome = self.proceed(io, credentials, now);
        if !matches!(outcome, Ok(None)) {
            self.state = ConnectState::Done;
        }
        outcome
    }

    fn proceed(
        &mut self,
        io: &mut impl ConnectIo,
        credentials: &Mutex<dyn CredentialsSupplier>,
        now: Instant,
    ) -> Result<Option<Connected>> {
        io.check_open()?;
        if now >= self.deadline {
            return Err(self.timeout(io));
        }
        loop {
            let has_proceeded = match self.state {
                ConnectState::AddEgress => self.add_egress(io)?,
                ConnectState::AddIngress => self.add_ingress(io, now)?,
                ConnectState::AwaitConnected => self.await_connected(io, credentials, now)?,
                ConnectState::Send => self.send(io)?,
                ConnectState::AwaitResponse => match self.response(io)? {
                    None => self.gives_up_member(io, now),
                    Some(Response::Connected(session)) => return Ok(Some(session)),
                    Some(Response::Refused(error)) => return Err(error),
                    Some(Response::Challenge { cluster_session_id, encoded_challenge }) => {
                        self.answer(io, credentials, cluster_session_id, &encoded_challenge);
                        true
                    }
                    Some(Response::Redirect { leader_member_id, endpoints }) => {
                        self.redirect(io, leader_member_id, &endpoints, now)?;
                        true
                    }
                },
                ConnectState::Done => false,
            };
            if !has_proceeded {
                if self.state != ConnectState::AwaitResponse {
                    // Messages to other clients on the stream are passed over, or they would pile up.
                    let _ = io.poll_responses(&mut |_, _| false);
                }
                return Ok(None);
            }
        }
    }

    fn add_egress(&mut self, io: &mut impl ConnectIo) -> Result<bool> {
        let is_added = unless_temporary(io.poll_egress())?;
        if is_added {
            self.state = ConnectState::AddIngress;
        }
        Ok(is_added)
    }

    /// Adds the publications to all members that may get a request.
    fn add_ingress(&mut self, io: &mut impl ConnectIo, now: Instant) -> Result<bool> {
        let only = self.leader.filter(|(_, until)| now < *until).map(|(leader, _)| leader);
        for member in &mut self.members {
            let may_be_asked = only.is_none_or(|leader| leader == member.id);
            if member.is_added || member.error.is_some() || !may_be_asked {
                continue;
            }
            match unless_temporary(io.poll_ingress(member.id, &member.channel)) {
                Ok(is_added) => member.is_added = is_added,
                Err(error) => member.error = Some(error),
            }
        }
        if self.members.iter().all(|member| member.error.is_some()) {
            return Err(self.no_ingress());
        }
        let is_any_added = self.members.iter().any(|member| member.is_added);
        if is_any_added {
            self.state = ConnectState::AwaitConnected;
        }
        Ok(is_any_added)
    }

    fn await_connected(
        &mut self,
        io: &mut impl ConnectIo,
        credentials: &Mutex<dyn CredentialsSupplier>,
        now: Instant,
    ) -> Result<bool> {
        self.add_ingress(io, now)?;
        let Some(response_channel) = io.response_channel()? else { return Ok(false) };
        let added = self.members.iter().filter(|member| member.is_added);
        let Some(connected) = added.map(|x| x.id).find(|id| io.is_connected(*id)) else {
            return Ok(false);
        };
        self.chosen = connected;
        self.correlation_id = io.next_correlation_id();
        let encoded_credentials =
            credentials.lock().unwrap_or_else(PoisonError::into_inner).encoded_credentials();
        let request = SessionConnectRequest {
            correlation_id: self.correlation_id.get(),
            response_stream_id: self.egress_stream_id,
            version: PROTOCOL_VERSION,
            response_channel: response_channel.as_bytes(),
            encoded_credentials: &encoded_credentials,
            client_info: self.client_info.as_bytes(),
        };
        self.request = request.to_vec();
        self.state = ConnectState::Send;
        Ok(true)
    }

    fn send(&mut self, io: &mut impl ConnectIo) -> Result<bool> {
        match io.offer(self.chosen, &self.request) {
            Ok(()) => {
                self.state = ConnectState::AwaitResponse;
                Ok(true)
            }
            // Only the member that has sent a challenge knows the future session.
            Err(OfferError::NotConnected) if self.is_challenged => Err(ClusterError::new(
                ClusterErrorKind::ConnectionLost,
                format!("member {} disconnected after its challenge", self.chosen),
            )),
            Err(OfferError::NotConnected) => {
                self.state = ConnectState::AwaitConnected;
                Ok(false)
            }
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns to other members if the chosen member disconnects for a while before it answers. If
    /// that member has opened a session, the session times out there. A challenge is not repeated.
    fn gives_up_member(&mut self, io: &mut impl ConnectIo, now: Instant) -> bool {
        if self.is_challenged || io.is_connected(self.chosen) {
            self.lost_since = None;
            return false;
        }
        let lost_since = *self.lost_since.get_or_insert(now);
        let is_lost = now >= lost_since + self.message_timeout / 8;
        if is_lost {
            self.lost_since = None;
            self.leader = None;
            self.state = ConnectState::AwaitConnected;
        }
        is_lost
    }

    /// Looks for an answer to the current request.
    fn response(&mut self, io: &mut impl ConnectIo) -> Result<Option<Response>> {
        let mut response = None;
        let polled = io.poll_responses(&mut |message, image_correlation_id| {
            response = self.decode(message, image_correlation_id);
            response.is_some()
        });
        match polled {
            Ok(()) => Ok(response),
            Err(error) => Err(Error::from(error).into()),
        }
    }

    /// Decodes an answer. Returns `None` for answers to other requests and for other messages.
    fn decode(&self, message: &[u8], image_correlation_id: i64) -> Option<Response> {
        let (header, body) = MessageHeader::split(message)?;
        if header.schema_id != SCHEMA_ID {
            return None;
        }
        match Message::decode(header, body)? {
            Message::Challenge(challenge) if self.correlation_id == challenge.correlation_id => {
                Some(Response::Challenge {
                    cluster_session_id: ClusterSessionId::new(challenge.cluster_session_id),
                    encoded_challenge: challenge.encoded_challenge.to_vec(),
                })
            }
            Message::SessionEvent(event) if self.correlation_id == event.correlation_id => {
                let detail = String::from_utf8_lossy(event.detail);
                let refused = |kind| Response::Refused(ClusterError::new(kind, &*detail));
                Some(match EventCode::from(event.code) {
                    EventCode::Ok => {
                        Response::Connected(self.connected(&event, image_correlation_id))
                    }
                    EventCode::Error => refused(ClusterErrorKind::Rejected),
                    EventCode::AuthenticationRejected => {
                        refused(ClusterErrorKind::AuthenticationRejected)
                    }
                    EventCode::Redirect => Response::Redirect {
                        leader_member_id: MemberId::new(event.leader_member_id),
                        endpoints: detail.into_owned(),
                    },
                    EventCode::Closed | EventCode::Unknown(_) => return None,
                })
            }
            _ => None,
        }
    }

    fn connected(&self, event: &SessionEvent<'_>, image_correlation_id: i64) -> Connected {
        let heartbeat_timeout = u64::try_from(event.leader_heartbeat_timeout_ns).ok();
        Connected {
            cluster_session_id: ClusterSessionId::new(event.cluster_session_id),
            leadership_term_id: LeadershipTermId::new(event.leadership_term_id),
            leader_member_id: MemberId::new(event.leader_member_id),
            leader_heartbeat_timeout: heartbeat_timeout.map(Duration::from_nanos),
            image_correlation_id,
            member_id: self.chosen,
            has_endpoints: self.has_endpoints,
        }
    }

    fn answer(
        &mut self,
        io: &mut impl ConnectIo,
        credentials: &Mutex<dyn CredentialsSupplier>,
        cluster_session_id: ClusterSessionId,
        encoded_challenge: &[u8],
    ) {
        self.is_challenged = true;
        self.correlation_id = io.next_correlation_id();
        let encoded_credentials = credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .on_challenge(encoded_challenge);
        let response = ChallengeResponse {
            correlation_id: self.correlation_id.get(),
            cluster_session_id: cluster_session_id.get(),
            encoded_credentials: &encoded_credentials,
        };
        self.request = response.to_vec();
        self.state = ConnectState::Send;
    }

    /// Turns to the leader. Its publication is kept if the endpoint is the same.
    fn redirect(
        &mut self,
        io: &mut impl ConnectIo,
        leader_member_id: MemberId,
        endpoints: &str,
        now: Instant,
    ) -> Result<()> {
        let unusable = |reason: &str| {
            let text = format!("redirect to member {leader_member_id} in {endpoints:?}: {reason}");
            ClusterError::new(ClusterErrorKind::Rejected, text)
        };
        if self.ingress.media() != Media::Udp {
            return Err(unusable("IPC reaches only the member on this media driver"));
        }
        let endpoints =
            endpoints.parse().map_err(|error: ClusterError| unusable(error.message()))?;
        let mut members = members(&self.ingress, Some(&endpoints));
        match members.iter().find(|member| member.id == leader_member_id) {
            Some(Member { error: Some(error), .. }) => return Err(unusable(&error.to_string())),
            Some(_) => {}
            None => return Err(unusable("the leader has no endpoint")),
        }
        for old in &self.members {
            let kept = members.iter_mut().find(|new| {
                new.id == leader_member_id && new.id == old.id && new.channel == old.channel
            });
            match kept {
                Some(leader) if old.error.is_none() => leader.is_added = old.is_added,
                _ => io.close_ingress(old.id),
            }
        }
        self.members = members;
        self.has_endpoints = true;
        self.leader = Some((leader_member_id, now + self.message_timeout / 4));
        self.is_challenged = false;
        self.state = ConnectState::AddIngress;
        Ok(())
    }

    fn timeout(&self, io: &mut impl ConnectIo) -> ClusterError {
        let mut text = format!("no session after {:?}", self.message_timeout);
        for member in &self.members {
            let state = match &member.error {
                Some(error) => error.to_string(),
                None if !member.is_added => "not added yet".to_owned(),
                None if io.is_connected(member.id) => "connected".to_owned(),
                None => "not connected".to_owned(),
            };
            let _ = write!(text, "; {}: {state}", member.channel);
        }
        if matches!(self.state, ConnectState::Send | ConnectState::AwaitResponse) {
            text += ". The cluster has not answered, perhaps because it has no leader";
        } else {
            text += ". If no consensus module runs, start one. If one runs, compare its ingress channel with these";
        }
        let response_channel = match self.state {
            ConnectState::AddEgress => None,
            _ => io.response_channel().ok().flatten(),
        };
        if let Some(channel) = response_channel {
            let channel = channel.trim_end_matches("|rejoin=false");
            let _ = write!(text, "; its answers have to reach {channel}");
        }
        ClusterError::new(ClusterErrorKind::Timeout, text)
    }

    /// Returns the error of a client that can add no publication to any member.
    fn no_ingress(&self) -> ClusterError {
        let errors: Vec<&Error> = self.members.iter().filter_map(|x| x.error.as_ref()).collect();
        let kind = errors.first().map_or(ErrorKind::Other, |error| error.kind());
        let texts: Vec<String> = errors.iter().map(|error| error.to_string()).collect();
        ClusterError::new(ClusterErrorKind::Client(kind), texts.join("; "))
    }
}

/// Returns the members of a cluster. A member with an unusable endpoint has an error.
fn members(ingress: &ChannelUri, endpoints: Option<&IngressEndpoints>) -> Vec<Member> {
    let member = |id, endpoint| {
        let (channel, error) = match ingress_channel(ingress, endpoint) {
            Ok(channel) => (channel, None),
            Err(error) => (ingress.to_string(), Some(error)),
        };
        Member { id, channel, is_added: false, error }
    };
    match endpoints {
        Some(endpoints) => {
            endpoints.iter().map(|(id, endpoint)| member(id, Some(endpoint))).collect()
        }
        None => vec![member(ONLY_MEMBER, None)],
    }
}

fn client_info(client_name: &str) -> String {
    format!("name={client_name} version={} commit=unknown", env!("CARGO_PKG_VERSION"))
}

/// Makes a temporary failure look like a request that has not been answered yet.
fn unless_temporary(outcome: Result<bool, Error>) -> Result<bool, Error> {
    match outcome {
        Err(error) if is_temporary(&error) => Ok(false),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests;
