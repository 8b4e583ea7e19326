//! The sending half of a session.

use std::io::IoSlice;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusteron_client::{
    Aeron, AnyPublication, BufferClaim, ChannelUri, OfferError, Position, Publisher,
};

use crate::client::connect::Connected;
use crate::client::context::ClusterContext;
use crate::client::egress::{AdminRequestType, Egress};
use crate::client::endpoints::find_endpoint;
use crate::client::pending_ingress::{IngressStream, PendingIngress};
use crate::client::session::{ClusterCloseCause, ClusterState};
use crate::client::session_header::SessionHeader;
use crate::client::shared_session::{Leader, SharedSession, Version};
use crate::codec::{AdminRequest, MessageHeader, SessionCloseRequest, SessionKeepAlive};
use crate::error::{ClusterError, Result};
use crate::ids::{ClusterSessionId, CorrelationId, LeadershipTermId, MemberId};
use crate::stream::{ingress_channel, is_temporary, offer_behind};

/// The sending half of a session: messages, keep-alives and requests to the cluster.
///
/// Handlers of [`ClusterClient::poll_egress`](crate::ClusterClient::poll_egress) get it with each
/// message, to answer at once. [`ClusterClient::ingress`](crate::ClusterClient::ingress) returns it
/// as well. The methods of [`ClusterClient`](crate::ClusterClient) with the same names do the same.
/// [`ClusterClient::split`](crate::ClusterClient::split) makes it independent of the receiving half,
/// for a thread of its own. Dropping it closes the session.
///
/// # Offers
/// An accepted offer is in the log buffer of the ingress, and on its way to the leader of
/// [`leadership_term_id`](Self::leadership_term_id). It is not committed, and can be lost; see
/// [the crate's documentation](crate#what-can-be-lost).
///
/// Offers neither block nor allocate. They make no system call, unless a new leader is being
/// connected to. Rejected offers have these reasons:
/// - [`OfferError::BackPressured`] and [`OfferError::AdminAction`]: try again;
/// - [`OfferError::NotConnected`]: the connection to the leader is lost. Poll the egress, which
///   follows the new leader, and try again;
/// - [`OfferError::Closed`]: the session is [closed](ClusterState::Closed), or its client. The cause is a
///   [`CloseCause::ClusterSession`](rusteron_client::CloseCause), or the client's;
/// - [`OfferError::MaxPositionExceeded`]: the session closes;
/// - [`OfferError::MessageTooLong`], with lengths that include the session header of 32 bytes.
#[must_use = "the session is closed when this is dropped"]
pub struct Ingress {
    aeron: Aeron,
    shared: Arc<SharedSession>,
    /// The version of the state that this half has followed.
    followed: Version,
    /// Equal to `followed` if the session was connected then. Offers compare no more than this.
    connected: Version,
    /// The state of `followed`.
    state: ClusterState,
    /// The event that announced the leader of `publication`.
    leader_event: u64,
    header: SessionHeader,
    publication: Option<AnyPublication>,
    leader_member_id: MemberId,
    channel: ChannelUri,
    stream: IngressStream,
    /// True if events of new leaders say where to connect.
    has_endpoints: bool,
    /// The publication to a new leader, until it is added.
    next: Option<(String, PendingIngress)>,
    keep_alive: Option<KeepAlive>,
}

/// Automatic keep-alives.
#[derive(Debug)]
struct KeepAlive {
    interval: Duration,
    next: Instant,
}

impl Ingress {
    /// Returns the ingress of a new session. `channel` is that of the context.
    pub(crate) fn new(
        aeron: &Aeron,
        shared: Arc<SharedSession>,
        publication: AnyPublication,
        connected: &Connected,
        channel: ChannelUri,
        context: &ClusterContext,
        now: Instant,
    ) -> Self {
        let followed = shared.version();
        Self {
            aeron: aeron.clone(),
            state: shared.state(),
            shared,
            followed,
            connected: followed.if_connected(),
            leader_event: Leader::FIRST_EVENT,
            header: SessionHeader::new(connected.leadership_term_id, connected.cluster_session_id),
            publication: Some(publication),
            leader_member_id: connected.leader_member_id,
            channel,
            stream: IngressStream::new(context),
            has_endpoints: connected.has_endpoints,
            next: None,
            keep_alive: context
                .keep_alive_interval()
                .map(|interval| KeepAlive { interval, next: now + interval }),
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
        let (publication, header) = self.publication_and_header()?;
        let offered =
            publication.offer_parts(&[IoSlice::new(header.as_bytes()), IoSlice::new(message)]);
        self.track_publication_result(offered)
    }

    /// Offers one message whose bytes lie in several slices. Allocates for more than 15 parts.
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Self#offers).
    ///
    /// Corresponds to `AeronCluster.offer` with a vector.
    #[inline]
    pub fn offer_parts(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        let (publication, header) = self.publication_and_header()?;
        let offered = offer_behind::<16>(header.as_bytes(), publication, parts);
        self.track_publication_result(offered)
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
        let is_connected = self.connected.is_connected();
        let Self { publication, shared, aeron, header, leader_event, .. } = self;
        let Some(publication) = publication else { return Err(OfferError::NotConnected) };
        match publication.try_claim(length.saturating_add(SessionHeader::LENGTH)) {
            Ok(claim) => {
                if !is_connected {
                    shared.on_accepted(*leader_event);
                }
                Ok(IngressClaim::new(claim, header))
            }
            Err(error) => {
                shared.on_rejected(*leader_event, error, aeron.close_cause());
                Err(error)
            }
        }
    }

    /// Offers a keep-alive, once. Returns the position of the ingress after it.
    ///
    /// The cluster closes a session from which it has heard nothing for the session timeout, 10 s
    /// by default. After a change of leader, send a keep-alive before other messages.
    /// [`set_keep_alive_interval`](crate::ClusterContext::set_keep_alive_interval) makes
    /// [`poll_state_changes`](Self::poll_state_changes) send keep-alives.
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Self#offers). Try again.
    ///
    /// Corresponds to `AeronCluster.sendKeepAlive`, which tries three times.
    #[doc(alias = "sendKeepAlive")]
    pub fn send_keep_alive(&mut self) -> Result<Position, OfferError> {
        let keep_alive = SessionKeepAlive {
            leadership_term_id: self.leadership_term_id().get(),
            cluster_session_id: self.cluster_session_id().get(),
        };
        self.send(&keep_alive.to_bytes())
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
    pub fn request_snapshot(
        &mut self,
        correlation_id: CorrelationId,
    ) -> Result<Position, OfferError> {
        let request = AdminRequest {
            leadership_term_id: self.leadership_term_id().get(),
            cluster_session_id: self.cluster_session_id().get(),
            correlation_id: correlation_id.get(),
            request_type: AdminRequestType::SNAPSHOT,
            payload: &[],
        };
        // As long as a request without a payload.
        let mut bytes = [0; MessageHeader::LENGTH + AdminRequest::BLOCK_LENGTH as usize + 4];
        let _ = request.encode(&mut bytes);
        self.send(&bytes)
    }

    /// Follows the session without sending: takes over a new leader, looks for the publication to
    /// it, checks deadlines, and sends the
    /// [automatic keep-alives](crate::ClusterContext::set_keep_alive_interval). Returns the amount of
    /// work. Zero means that nothing has happened.
    ///
    /// Polls of a [`ClusterClient`](crate::ClusterClient) call this. The thread of a
    /// [split](crate::ClusterClient::split) ingress calls it while it has nothing to send. Offers and
    /// claims follow a new leader, too.
    ///
    /// Does not block; allocates if there is a new leader.
    ///
    /// Corresponds to `AeronCluster.pollStateChanges`.
    #[doc(alias = "pollStateChanges")]
    #[inline]
    pub fn poll_state_changes(&mut self) -> usize {
        if self.keep_alive.is_none() && self.connected == self.shared.version() {
            return 0;
        }
        self.poll_state_changes_at(Instant::now())
    }

    #[cold]
    fn poll_state_changes_at(&mut self, now: Instant) -> usize {
        let before = (self.followed, self.publication.is_some());
        self.follow();
        self.poll_next();
        if !self.connected.is_connected() && self.shared.check_deadline(now) {
            self.follow();
        }
        let is_due = match &self.keep_alive {
            Some(keep_alive) => {
                now >= keep_alive.next || self.state == ClusterState::AwaitNewLeaderConnection
            }
            None => false,
        };
        let is_sent = is_due && self.send_keep_alive().is_ok();
        if let (true, Some(keep_alive)) = (is_sent, &mut self.keep_alive) {
            keep_alive.next = now + keep_alive.interval;
            self.follow();
        }
        let is_changed = before != (self.followed, self.publication.is_some());
        usize::from(is_sent) + usize::from(is_changed)
    }

    /// Returns the publication to the leader, for its position, window or session id. `None` while
    /// there is none.
    ///
    /// Messages that a shared publication is offered here have to begin with the
    /// [session header](Self::session_header), and the results have to be
    /// [tracked](Self::track_publication_result).
    ///
    /// Corresponds to `AeronCluster.ingressPublication`.
    #[doc(alias = "ingressPublication")]
    pub fn publication(&self) -> Option<&AnyPublication> {
        self.publication.as_ref()
    }

    /// Follows the outcome of an offer on the [publication](Self::publication) itself, and returns
    /// it. The methods of this type which send do so themselves.
    ///
    /// Corresponds to `AeronCluster.trackIngressPublicationResult`.
    #[doc(alias = "trackIngressPublicationResult")]
    #[inline]
    pub fn track_publication_result(
        &mut self,
        offered: Result<Position, OfferError>,
    ) -> Result<Position, OfferError> {
        match offered {
            Ok(_) if self.connected.is_connected() => {}
            // Follows in the next call: until then, the term is that of the message.
            Ok(_) => self.shared.on_accepted(self.leader_event),
            Err(error) => self.reject(error),
        }
        offered
    }

    /// Returns the state of the session.
    #[inline]
    pub fn state(&self) -> ClusterState {
        self.shared.state()
    }

    /// Returns the id of the session.
    #[doc(alias = "clusterSessionId")]
    pub fn cluster_session_id(&self) -> ClusterSessionId {
        self.header.cluster_session_id()
    }

    /// Returns the term of the leader to which the last offer, claim or keep-alive went.
    ///
    /// It changes in calls that send and in [`poll_state_changes`](Self::poll_state_changes) only. So
    /// after an accepted offer, it is the term of the message.
    #[doc(alias = "leadershipTermId")]
    pub fn leadership_term_id(&self) -> LeadershipTermId {
        self.header.leadership_term_id()
    }

    /// Returns the member id of the leader of [`leadership_term_id`](Self::leadership_term_id).
    #[doc(alias = "leaderMemberId")]
    pub fn leader_member_id(&self) -> MemberId {
        self.leader_member_id
    }

    /// Returns the header in front of the session's messages.
    pub fn session_header(&self) -> &SessionHeader {
        &self.header
    }

    /// Returns whether the publication to the leader is connected.
    pub fn is_connected(&self) -> bool {
        self.publication.as_ref().is_some_and(Publisher::is_connected)
    }

    /// Returns the length of the longest message that can be claimed, in bytes, without the session
    /// header. Returns 0 while there is no publication.
    pub fn max_payload_length(&self) -> usize {
        let length = self.publication.as_ref().map_or(0, Publisher::max_payload_length);
        length.saturating_sub(SessionHeader::LENGTH)
    }

    /// Returns the length of the longest message that can be offered, in bytes, without the session
    /// header. Returns 0 while there is no publication.
    pub fn max_message_length(&self) -> usize {
        let length = self.publication.as_ref().map_or(0, Publisher::max_message_length);
        length.saturating_sub(SessionHeader::LENGTH)
    }

    /// Closes the session. Dropping this half does the same.
    ///
    /// Tells the cluster, if the session is connected and the ingress accepts the message within
    /// three attempts. Otherwise the session times out in the cluster. Does not wait for an answer.
    /// Polls of the other half return [`ClusterErrorKind::Closed`](crate::ClusterErrorKind), so that
    /// answers which have not been polled are lost.
    pub fn close(self) {}

    pub(crate) fn shared(&self) -> &Arc<SharedSession> {
        &self.shared
    }

    /// Sends a message of the protocol in one fragment.
    fn send(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        let (publication, _) = self.publication_and_header()?;
        let sent = publication.offer(message);
        self.track_publication_result(sent)
    }

    /// Returns the publication and the header of messages.
    #[inline]
    fn publication_and_header(
        &mut self,
    ) -> Result<(&mut AnyPublication, &SessionHeader), OfferError> {
        self.check_publication()?;
        match &mut self.publication {
            Some(publication) => Ok((publication, &self.header)),
            None => Err(OfferError::NotConnected),
        }
    }

    #[inline]
    fn check_publication(&mut self) -> Result<(), OfferError> {
        if self.connected == self.shared.version() { Ok(()) } else { self.look_for_publication() }
    }

    #[cold]
    fn look_for_publication(&mut self) -> Result<(), OfferError> {
        self.follow();
        self.poll_next();
        match self.state {
            ClusterState::Closed(cause) => Err(cause.offer_error()),
            _ if self.publication.is_none() => Err(OfferError::NotConnected),
            _ => Ok(()),
        }
    }

    #[cold]
    fn reject(&mut self, error: OfferError) {
        self.shared.on_rejected(self.leader_event, error, self.aeron.close_cause());
        self.follow();
    }

    /// Follows an event from the egress before its handler gets this half.
    #[inline]
    pub(crate) fn follow_event(&mut self, event: &Egress<'_>) {
        if !matches!(event, Egress::Message { .. }) {
            self.follow();
            self.poll_next();
        }
    }

    /// Follows the state up to its current version.
    pub(crate) fn follow(&mut self) {
        // Taking over a new leader can close the session.
        while self.followed != self.shared.version() {
            let Some((version, state, leader)) = self.shared.read() else {
                self.state = self.shared.state_in_child();
                return;
            };
            self.followed = version;
            self.connected = version.if_connected();
            self.state = state;
            let is_same_leader = leader.event == self.leader_event;
            if is_same_leader
                && state == ClusterState::Closed(ClusterCloseCause::ClosedByApplication)
            {
                self.send_close_request();
            }
            if !is_same_leader {
                self.leader_event = leader.event;
                self.leader_member_id = leader.member_id;
                self.header.set_leadership_term_id(leader.leadership_term_id);
                self.publication = None;
                self.next = None;
                if self.state.uses_ingress() {
                    self.connect_to_leader(&leader.ingress_endpoints);
                }
            }
            if !self.state.uses_ingress() {
                self.publication = None;
                self.next = None;
            }
        }
    }

    fn connect_to_leader(&mut self, ingress_endpoints: &str) {
        match self.leader_channel(ingress_endpoints) {
            Ok(channel) => self.next = Some((channel, PendingIngress::default())),
            Err(error) => {
                log::warn!("ingress to cluster member {}: {error}", self.leader_member_id);
                self.shared.close(ClusterCloseCause::NewLeaderIngressFailed);
            }
        }
    }

    fn leader_channel(&self, ingress_endpoints: &str) -> Result<String> {
        let endpoint = find_endpoint(ingress_endpoints, self.leader_member_id);
        let endpoint =
            match self.has_endpoints {
                true => Some(endpoint.ok_or_else(|| {
                    ClusterError::invalid("the leader has no endpoint in its event")
                })?),
                false => None,
            };
        Ok(ingress_channel(&self.channel, endpoint)?)
    }

    /// Looks for the publication to a new leader.
    fn poll_next(&mut self) {
        let Some((channel, pending)) = &mut self.next else { return };
        match pending.poll(&self.aeron, channel, &self.stream) {
            Ok(false) => {}
            Ok(true) => {
                self.publication = pending.added.take();
                self.next = None;
            }
            Err(error) if is_temporary(&error) => {}
            Err(error) => {
                log::warn!("ingress to cluster member {}: {error}", self.leader_member_id);
                let client = self.aeron.close_cause().map(ClusterCloseCause::ClientClosed);
                self.shared.close(client.unwrap_or(ClusterCloseCause::NewLeaderIngressFailed));
                self.follow();
            }
        }
    }

    /// Tells the cluster that the session ends, if the leader is connected.
    fn send_close_request(&mut self) {
        const ATTEMPTS: usize = 3;
        let request = SessionCloseRequest {
            leadership_term_id: self.leadership_term_id().get(),
            cluster_session_id: self.cluster_session_id().get(),
        };
        let Some(publication) = &mut self.publication else { return };
        for _ in 0..ATTEMPTS {
            if !publication.is_connected() || publication.offer(&request.to_bytes()).is_ok() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// Closes the session.
impl Drop for Ingress {
    fn drop(&mut self) {
        self.shared.close(ClusterCloseCause::ClosedByApplication);
        self.follow();
    }
}

rusteron_core::impl_debug!(Ingress: header, leader_member_id, state(), publication);

/// A range of the ingress claimed for one message, which is written into it without a copy.
///
/// A claim dereferences to the message's bytes, behind the session header. Otherwise as
/// [`rusteron_client::BufferClaim`]: [`commit`](Self::commit) sends the message, and dropping the
/// claim aborts it. The slice starts at a multiple of 32 bytes in memory.
///
/// ```
/// use rusteron_client::OfferError;
/// use rusteron_cluster::ClusterClient;
///
/// fn send(cluster: &mut ClusterClient, value: u64) -> Result<(), OfferError> {
///     let mut claim = cluster.try_claim(8)?;
///     claim.copy_from_slice(&value.to_le_bytes());
///     claim.commit()?;
///     Ok(())
/// }
/// ```
#[must_use = "dropping a claim aborts it"]
pub struct IngressClaim<'a> {
    claim: BufferClaim<'a>,
}

impl<'a> IngressClaim<'a> {
    /// `claim` is at least as long as the header.
    #[inline]
    pub(crate) fn new(mut claim: BufferClaim<'a>, header: &SessionHeader) -> Self {
        claim[..SessionHeader::LENGTH].copy_from_slice(header.as_bytes());
        Self { claim }
    }

    /// Sends the message, and returns the position of the ingress after it.
    ///
    /// Does not block, does not allocate.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`] if the claim was held for so long that the media driver has
    /// unblocked its range. The cluster does not get the message.
    #[inline]
    pub fn commit(self) -> Result<Position, OfferError> {
        self.claim.commit()
    }

    /// Aborts the claim: the cluster skips its range. Dropping the claim does the same.
    #[inline]
    pub fn abort(self) {
        self.claim.abort();
    }
}

impl Deref for IngressClaim<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.claim[SessionHeader::LENGTH..]
    }
}

impl DerefMut for IngressClaim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.claim[SessionHeader::LENGTH..]
    }
}

rusteron_core::impl_debug!(IngressClaim<'_>: len());
