//! The sending half of a session.

use std::fmt;
use std::io::IoSlice;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, ChannelUri, OfferError, Position};

use crate::client::claim::IngressClaim;
use crate::client::egress::{AdminRequestType, Egress, EventCode};
use crate::client::endpoints::find_endpoint;
use crate::client::ingress_channel::IngressChannel;
use crate::client::ingress_publication::{
    IngressPublication, IngressStream, PendingIngress, is_temporary,
};
use crate::client::session::{CloseCause, ClusterState, Session};
use crate::client::session_header::SessionHeader;
use crate::codec::{AdminRequest, SessionCloseRequest, SessionKeepAlive};
use crate::error::{ClusterError, Result};

/// The sending half of a session: messages, keep-alives and requests to the cluster.
///
/// Handlers of [`ClusterClient::poll_egress`](crate::ClusterClient::poll_egress) get it with each
/// message, to answer at once. [`ClusterClient::ingress`](crate::ClusterClient::ingress) returns it
/// as well. The methods of [`ClusterClient`](crate::ClusterClient) with the same names do the same.
///
/// # Offers
/// An accepted offer is in the log buffer of the ingress, and on its way to the leader. It is not
/// committed, and can be lost; see [the crate's documentation](crate#what-can-be-lost).
///
/// Offers neither block nor allocate. They make no system call, unless a new leader is being
/// connected to. Rejected offers have these reasons:
/// - [`OfferError::BackPressured`] and [`OfferError::AdminAction`]: try again;
/// - [`OfferError::NotConnected`]: the connection to the leader is lost. Poll the egress, which
///   follows the new leader, and try again;
/// - [`OfferError::Closed`]: the session is [closed](ClusterState::Closed);
/// - [`OfferError::MaxPositionExceeded`]: the session closes;
/// - [`OfferError::MessageTooLong`], with lengths that include the session header of 32 bytes.
pub struct Ingress {
    aeron: Aeron,
    header: SessionHeader,
    publication: Option<IngressPublication>,
    session: Session,
    leader_member_id: i32,
    /// The image on which the leader sends.
    image_correlation_id: i64,
    channel: ChannelUri,
    stream: IngressStream,
    /// True if events of new leaders say where to connect.
    has_endpoints: bool,
    /// The publication to a new leader, until it is added.
    next: Option<(IngressChannel, PendingIngress)>,
    keep_alive: Option<KeepAlive>,
}

/// The state of a session, and whether there is a publication.
pub(crate) type Progress = (ClusterState, bool);

/// Automatic keep-alives.
#[derive(Debug)]
struct KeepAlive {
    interval: Duration,
    next: Instant,
}

/// The parts of a new session's ingress.
pub(crate) struct IngressParts {
    pub(crate) aeron: Aeron,
    pub(crate) publication: IngressPublication,
    pub(crate) session: Session,
    pub(crate) cluster_session_id: i64,
    pub(crate) leadership_term_id: i64,
    pub(crate) leader_member_id: i32,
    pub(crate) image_correlation_id: i64,
    pub(crate) channel: ChannelUri,
    pub(crate) stream: IngressStream,
    pub(crate) has_endpoints: bool,
    pub(crate) keep_alive_interval: Option<Duration>,
}

impl Ingress {
    pub(crate) fn new(parts: IngressParts, now: Instant) -> Self {
        let keep_alive =
            parts.keep_alive_interval.map(|interval| KeepAlive { interval, next: now + interval });
        Self {
            aeron: parts.aeron,
            header: SessionHeader::new(parts.leadership_term_id, parts.cluster_session_id),
            publication: Some(parts.publication),
            session: parts.session,
            leader_member_id: parts.leader_member_id,
            image_correlation_id: parts.image_correlation_id,
            channel: parts.channel,
            stream: parts.stream,
            has_endpoints: parts.has_endpoints,
            next: None,
            keep_alive,
        }
    }

    /// Offers one message to the cluster, of any length up to
    /// [`max_message_length`](Self::max_message_length) bytes. Returns the position of the ingress
    /// after the message.
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Self#offers).
    ///
    /// Corresponds to `AeronCluster.offer`.
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        let (publication, header) = self.publication()?;
        let offered = publication.offer(header.as_bytes(), message);
        self.track(offered)
    }

    /// Offers one message whose bytes lie in several slices. Allocates for more than 15 parts.
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Self#offers).
    ///
    /// Corresponds to `AeronCluster.offer` with a vector.
    #[inline]
    pub fn offer_parts(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        let (publication, header) = self.publication()?;
        let offered = publication.offer_parts(header.as_bytes(), parts);
        self.track(offered)
    }

    /// Claims a range of the ingress for a message of `length` bytes, up to
    /// [`max_payload_length`](Self::max_payload_length). The caller writes the message there
    /// without a copy. The session header in front is written already.
    ///
    /// # Errors
    /// Nothing has been claimed; see [offers](Self#offers).
    ///
    /// Corresponds to `AeronCluster.tryClaim`.
    #[inline]
    pub fn try_claim(&mut self, length: usize) -> Result<IngressClaim<'_>, OfferError> {
        self.check_publication()?;
        let Self { publication, session, aeron, header, .. } = self;
        let Some(publication) = publication else { return Err(OfferError::NotConnected) };
        match publication.try_claim(length.saturating_add(SessionHeader::LENGTH)) {
            Ok(claim) => {
                session.on_accepted();
                Ok(IngressClaim::new(claim, header))
            }
            Err(error) => {
                session.on_rejected(error, aeron.close_cause(), Instant::now);
                Err(error)
            }
        }
    }

    /// Offers a keep-alive, once. Returns the position of the ingress after it.
    ///
    /// The cluster closes a session from which it has heard nothing for the session timeout, 10 s
    /// by default. After a change of leader, send a keep-alive before other messages.
    /// [`set_keep_alive_interval`](crate::ClusterContext::set_keep_alive_interval) makes polls of
    /// the egress send keep-alives.
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Self#offers). Try again.
    ///
    /// Corresponds to `AeronCluster.sendKeepAlive`, which tries three times.
    #[doc(alias = "sendKeepAlive")]
    pub fn send_keep_alive(&mut self) -> Result<Position, OfferError> {
        let keep_alive = SessionKeepAlive {
            leadership_term_id: self.leadership_term_id(),
            cluster_session_id: self.cluster_session_id(),
        };
        self.send(keep_alive.encoded_length(), |target| keep_alive.encode(target))
    }

    /// Asks the cluster to take a snapshot. [`Egress::AdminResponse`] has the answer, with the
    /// correlation id.
    ///
    /// The cluster's authorisation service has to allow this; Java's default does not.
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Self#offers). Try again.
    ///
    /// Corresponds to `AeronCluster.sendAdminRequestToTakeASnapshot`, which tries three times.
    #[doc(alias = "sendAdminRequestToTakeASnapshot")]
    pub fn request_snapshot(&mut self, correlation_id: i64) -> Result<Position, OfferError> {
        let request = AdminRequest {
            leadership_term_id: self.leadership_term_id(),
            cluster_session_id: self.cluster_session_id(),
            correlation_id,
            request_type: AdminRequestType::SNAPSHOT,
            payload: &[],
        };
        self.send(request.encoded_length(), |target| request.encode(target))
    }

    /// Returns the state of the session.
    #[inline]
    pub fn state(&self) -> ClusterState {
        self.session.state()
    }

    /// Returns the id of the session.
    #[doc(alias = "clusterSessionId")]
    pub fn cluster_session_id(&self) -> i64 {
        self.header.cluster_session_id()
    }

    /// Returns the term of the current leader.
    #[doc(alias = "leadershipTermId")]
    pub fn leadership_term_id(&self) -> i64 {
        self.header.leadership_term_id()
    }

    /// Returns the member id of the current leader.
    #[doc(alias = "leaderMemberId")]
    pub fn leader_member_id(&self) -> i32 {
        self.leader_member_id
    }

    /// Returns the header in front of the session's messages.
    pub fn session_header(&self) -> &SessionHeader {
        &self.header
    }

    /// Returns whether the publication to the leader is connected.
    pub fn is_connected(&self) -> bool {
        self.publication.as_ref().is_some_and(IngressPublication::is_connected)
    }

    /// Returns the length of the longest message that can be claimed, in bytes, without the session
    /// header. Returns 0 while there is no publication.
    pub fn max_payload_length(&self) -> usize {
        let length = self.publication.as_ref().map_or(0, IngressPublication::max_payload_length);
        length.saturating_sub(SessionHeader::LENGTH)
    }

    /// Returns the length of the longest message that can be offered, in bytes, without the session
    /// header. Returns 0 while there is no publication.
    pub fn max_message_length(&self) -> usize {
        let length = self.publication.as_ref().map_or(0, IngressPublication::max_message_length);
        length.saturating_sub(SessionHeader::LENGTH)
    }

    /// Sends a message of the protocol in one fragment.
    fn send(
        &mut self,
        length: usize,
        encode: impl FnOnce(&mut [u8]) -> Option<()>,
    ) -> Result<Position, OfferError> {
        let (publication, _) = self.publication()?;
        let sent = publication.try_claim(length).and_then(|mut claim| {
            // The claim is as long as the message.
            let encoded = encode(&mut claim);
            debug_assert!(encoded.is_some());
            claim.commit()
        });
        self.track(sent)
    }

    /// Returns the publication and the header of messages.
    #[inline]
    fn publication(&mut self) -> Result<(&mut IngressPublication, &SessionHeader), OfferError> {
        self.check_publication()?;
        match &mut self.publication {
            Some(publication) => Ok((publication, &self.header)),
            None => Err(OfferError::NotConnected),
        }
    }

    #[inline]
    fn check_publication(&mut self) -> Result<(), OfferError> {
        if self.session.is_connected() { Ok(()) } else { self.look_for_publication() }
    }

    #[cold]
    fn look_for_publication(&mut self) -> Result<(), OfferError> {
        self.poll_next();
        match self.session.close_cause() {
            Some(CloseCause::MaxPositionExceeded) => Err(OfferError::MaxPositionExceeded),
            Some(CloseCause::ClientClosed(cause)) => Err(OfferError::Closed(cause)),
            Some(_) => Err(OfferError::Closed(rusteron_client::CloseCause::Handle)),
            None if self.publication.is_none() => Err(OfferError::NotConnected),
            None => Ok(()),
        }
    }

    /// Follows the outcome of an offer.
    #[inline]
    fn track(&mut self, offered: Result<Position, OfferError>) -> Result<Position, OfferError> {
        match offered {
            Ok(_) => self.session.on_accepted(),
            Err(error) => self.reject(error),
        }
        offered
    }

    #[cold]
    fn reject(&mut self, error: OfferError) {
        self.session.on_rejected(error, self.aeron.close_cause(), Instant::now);
        self.release_publication();
    }

    /// Closes the publication if the session does not use it any more.
    pub(crate) fn release_publication(&mut self) {
        if !self.session.uses_ingress() {
            self.publication = None;
            self.next = None;
        }
    }

    /// Looks for the publication to a new leader.
    fn poll_next(&mut self) {
        self.release_publication();
        let Some((channel, pending)) = &mut self.next else { return };
        match pending.poll(&self.aeron, channel, &self.stream) {
            Ok(false) => {}
            Ok(true) => {
                self.publication = pending.take();
                self.next = None;
            }
            Err(error) if is_temporary(&error) => {}
            Err(error) => {
                log::warn!("ingress to cluster member {}: {error}", self.leader_member_id);
                let client = self.aeron.close_cause().map(CloseCause::ClientClosed);
                self.close(client.unwrap_or(CloseCause::NewLeaderIngressFailed));
            }
        }
    }

    /// Follows a message of the cluster before the application gets it. Returns whether the
    /// application gets it.
    #[inline]
    pub(crate) fn on_egress(&mut self, egress: &Egress<'_>, image_correlation_id: i64) -> bool {
        if matches!(egress, Egress::Message { .. }) {
            return true;
        }
        self.on_event(egress, image_correlation_id)
    }

    #[cold]
    fn on_event(&mut self, egress: &Egress<'_>, image_correlation_id: i64) -> bool {
        match egress {
            Egress::SessionEvent { code: EventCode::Closed, leadership_term_id, .. } => {
                // A deposed leader does not know of the session's new leader.
                if *leadership_term_id < self.leadership_term_id() {
                    log::debug!("the leader of term {leadership_term_id} closed the session late");
                    return false;
                }
                self.close(CloseCause::ClosedByCluster);
            }
            Egress::NewLeader { leadership_term_id, leader_member_id, ingress_endpoints } => {
                if *leadership_term_id < self.leadership_term_id() {
                    log::debug!("an event of term {leadership_term_id} came late");
                    return false;
                }
                self.header.set_leadership_term_id(*leadership_term_id);
                self.leader_member_id = *leader_member_id;
                self.image_correlation_id = image_correlation_id;
                self.connect_to_leader(ingress_endpoints);
            }
            _ => {}
        }
        true
    }

    fn connect_to_leader(&mut self, ingress_endpoints: &str) {
        self.session.on_new_leader(Instant::now());
        if self.session.close_cause().is_some() {
            return;
        }
        self.publication = None;
        self.next = None;
        match self.leader_channel(ingress_endpoints) {
            Ok(channel) => {
                self.next = Some((channel, PendingIngress::Idle));
                self.poll_next();
            }
            Err(error) => {
                log::warn!("ingress to cluster member {}: {error}", self.leader_member_id);
                self.close(CloseCause::NewLeaderIngressFailed);
            }
        }
    }

    fn leader_channel(&self, ingress_endpoints: &str) -> Result<IngressChannel> {
        if !self.has_endpoints {
            return Ok(IngressChannel::Uri(self.channel.clone()));
        }
        let endpoint = find_endpoint(ingress_endpoints, self.leader_member_id)
            .ok_or_else(|| ClusterError::invalid("the leader has no endpoint in its event"))?;
        Ok(IngressChannel::with_endpoint(&self.channel, endpoint)?)
    }

    pub(crate) fn image_correlation_id(&self) -> i64 {
        self.image_correlation_id
    }

    /// The leader's image has gone.
    pub(crate) fn on_egress_lost(&mut self) {
        self.session.on_egress_lost(Instant::now());
        self.release_publication();
    }

    /// Returns the cause for a session whose client is closed. The client's conductor may not have
    /// noticed that the driver has timed it out.
    #[cold]
    pub(crate) fn client_closed(&self) -> CloseCause {
        let cause = self.aeron.close_cause();
        CloseCause::ClientClosed(cause.unwrap_or(rusteron_client::CloseCause::ClientTimeout))
    }

    pub(crate) fn close(&mut self, cause: CloseCause) {
        self.session.close(cause);
        self.release_publication();
    }

    /// Returns a value that changes with the state of the session and its publication.
    #[inline]
    pub(crate) fn progress(&self) -> Progress {
        (self.state(), self.publication.is_some())
    }

    /// Checks deadlines, looks for the publication to a new leader, and sends keep-alives. Returns
    /// the number of keep-alives.
    #[inline]
    pub(crate) fn poll_timers(&mut self) -> usize {
        if self.session.is_connected() && self.keep_alive.is_none() {
            return 0;
        }
        self.poll_timers_at(Instant::now())
    }

    fn poll_timers_at(&mut self, now: Instant) -> usize {
        self.poll_next();
        if self.session.check_deadline(now) {
            self.release_publication();
            return 0;
        }
        let is_awaiting = self.session.state() == ClusterState::AwaitNewLeaderConnection;
        let is_due = match &self.keep_alive {
            Some(keep_alive) => now >= keep_alive.next || is_awaiting,
            None => false,
        };
        if !is_due || self.send_keep_alive().is_err() {
            return 0;
        }
        if let Some(keep_alive) = &mut self.keep_alive {
            keep_alive.next = now + keep_alive.interval;
        }
        1
    }

    /// Tells the cluster that the session ends, if the session is connected.
    pub(crate) fn send_close_request(&mut self) {
        const ATTEMPTS: usize = 3;
        let request = SessionCloseRequest {
            leadership_term_id: self.leadership_term_id(),
            cluster_session_id: self.cluster_session_id(),
        };
        for _ in 0..ATTEMPTS {
            if !self.session.is_connected() || !self.is_connected() {
                return;
            }
            if self.send(request.encoded_length(), |target| request.encode(target)).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl fmt::Debug for Ingress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingress")
            .field("header", &self.header)
            .field("leader_member_id", &self.leader_member_id)
            .field("state", &self.state())
            .field("publication", &self.publication)
            .finish_non_exhaustive()
    }
}
