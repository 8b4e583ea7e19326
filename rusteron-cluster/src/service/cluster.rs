//! The handles through which a service uses its container.

use std::io::IoSlice;
use std::ops::{Bound, Deref, DerefMut};

use rusteron_client::Aeron;

use crate::codec;
use crate::ids::{ClusterSessionId, CorrelationId, LeadershipTermId, MemberId, ServiceId};
use crate::service::ack_ledger::send_all;
use crate::service::client_session::ClientSession;
use crate::service::error::{NotSent, ServiceError, ServiceResult, TerminationCause};
use crate::service::network::{Claim, Network};
use crate::service::session::{HEADER_LENGTH, SessionInfo};
use crate::service::state::State;
use crate::service::types::{ClusterTimeUnit, Role};

/// The state of the cluster, for callbacks that must not send: start, role change,
/// background work, termination.
///
/// Such callbacks do not run at the same position of the log on all members, or run again when the
/// log is replayed. Sending from them does not compile:
///
/// ```compile_fail,E0599
/// use rusteron_cluster::{Lifecycle, ServiceResult};
///
/// fn on_start(cluster: &mut Lifecycle<'_>) -> ServiceResult {
///     cluster.schedule_timer(1, 1000)
/// }
/// ```
///
/// Corresponds to the reading half of `io.aeron.cluster.service.Cluster`.
#[must_use]
pub struct Lifecycle<'a> {
    state: &'a mut State,
    network: &'a mut dyn Network,
}

impl<'a> Lifecycle<'a> {
    pub(crate) fn new(state: &'a mut State, network: &'a mut dyn Network) -> Self {
        Self { state, network }
    }

    /// Returns the id of this service on its node.
    pub fn service_id(&self) -> ServiceId {
        self.state.service_id
    }

    /// Returns the member id of the node; `None` until the first log was joined. Differs between
    /// members.
    pub fn member_id(&self) -> Option<MemberId> {
        self.state.member_id
    }

    /// Returns the role of the node. Differs between members.
    pub fn role(&self) -> Role {
        self.state.role
    }

    /// Returns time of the cluster: the timestamp of the last message of the log. All members see
    /// the same time at the same message. The unit is [`time_unit`](Self::time_unit).
    pub fn time(&self) -> i64 {
        self.state.time
    }

    /// Returns the unit of time of the cluster. Known after a snapshot was loaded, or the first
    /// term has begun; milliseconds until then.
    pub fn time_unit(&self) -> ClusterTimeUnit {
        self.state.time_unit
    }

    /// Returns the position of the log behind the last message, in bytes.
    pub fn log_position(&self) -> i64 {
        self.state.log_position
    }

    /// Returns the container's Aeron client, for streams of the service's own. `None` where the
    /// service runs without a media driver, in a [`DeterminismCheck`](crate::DeterminismCheck).
    ///
    /// Such streams are not replicated, so that the replicated state must not depend on them.
    /// Closing is left to the container: the consensus module ends the node when this client closes.
    pub fn aeron(&self) -> Option<&Aeron> {
        self.network.aeron()
    }

    /// Returns the open sessions, in the order of their ids.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = &SessionInfo> {
        self.state.sessions.values()
    }

    /// Idles in a loop of a callback that waits, and keeps the connection to the media driver
    /// alive. Time that a callback takes delays the whole member.
    ///
    /// # Errors
    /// [`ServiceError::Terminate`] if the container ends.
    pub fn idle(&mut self, work_count: usize) -> ServiceResult {
        let idled = self.network.idle(work_count);
        self.or_end(idled)
    }

    fn or_end(&mut self, outcome: Result<(), TerminationCause>) -> ServiceResult {
        outcome.map_err(|cause| {
            self.state.end = Some(cause);
            ServiceError::Terminate
        })
    }
}

rusteron_core::impl_debug!(Lifecycle<'_>: state);

/// The cluster, for callbacks that may send. Everything of [`Lifecycle`] is here, too.
///
/// Timers and messages to the cluster must not be lost: the consensus module of each member
/// compares its own service's messages with the log. Use the calls that wait. The calls with `try_`
/// send once; a service that gives up after a failure differs from other members' services, and
/// the consensus module's next snapshot is then refused.
///
/// A handle belongs to its callback. This does not compile:
///
/// ```compile_fail,E0521
/// use rusteron_cluster::Cluster;
///
/// fn keep(cluster: &mut Cluster<'_>, handles: &mut Vec<&'static mut Cluster<'static>>) {
///     handles.push(cluster);
/// }
/// ```
///
/// Corresponds to `io.aeron.cluster.service.Cluster`.
#[must_use]
#[derive(Debug)]
pub struct Cluster<'a> {
    lifecycle: Lifecycle<'a>,
}

impl<'a> Deref for Cluster<'a> {
    type Target = Lifecycle<'a>;

    fn deref(&self) -> &Lifecycle<'a> {
        &self.lifecycle
    }
}

impl DerefMut for Cluster<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.lifecycle
    }
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(state: &'a mut State, network: &'a mut dyn Network) -> Self {
        Self { lifecycle: Lifecycle::new(state, network) }
    }

    /// Returns an open session, to answer its client or to close it. `None` if the session is not
    /// open, alike on all members: a timer can fire when its client has left.
    #[doc(alias = "getClientSession")]
    pub fn session(&mut self, session_id: ClusterSessionId) -> Option<ClientSession<'_>> {
        let Lifecycle { state, network } = &mut self.lifecycle;
        ClientSession::find(state, *network, session_id)
    }

    /// Calls the handler with each open session, in the order of their ids.
    ///
    /// # Errors
    /// The handler's first error. Later sessions are left out.
    pub fn for_each_session(
        &mut self,
        mut handler: impl FnMut(&mut ClientSession<'_>) -> ServiceResult,
    ) -> ServiceResult {
        let mut after = Bound::Unbounded;
        loop {
            let Lifecycle { state, network } = &mut self.lifecycle;
            let next = state.sessions.range((after, Bound::Unbounded)).next();
            let Some((&id, _)) = next else { return Ok(()) };
            if let Some(mut session) = ClientSession::find(state, *network, id) {
                handler(&mut session)?;
            }
            after = Bound::Excluded(id);
        }
    }

    /// Sets a timer: at the deadline, all services of the cluster get a timer event with this id.
    /// Waits until the consensus module has taken the request.
    ///
    /// A second timer with the same id replaces the first one. All services of a node share the
    /// ids. `deadline` is in the unit of [`time`](Lifecycle::time); a deadline in the past fires
    /// soon. Each service that sets a timer does so on all members; the leader's timer fires.
    ///
    /// # Errors
    /// - [`ServiceError::Terminate`]: the container ends;
    /// - [`ServiceError::Failed`]: the number of `correlation_id`, or `deadline`, is `i64::MAX`.
    pub fn schedule_timer(
        &mut self,
        correlation_id: CorrelationId,
        deadline: i64,
    ) -> ServiceResult {
        self.send(&[IoSlice::new(&timer(correlation_id, deadline)?)])
    }

    /// As [`schedule_timer`](Self::schedule_timer), but offers the request once.
    ///
    /// # Errors
    /// The request was not sent. Try again: the [type](Self) says why.
    pub fn try_schedule_timer(
        &mut self,
        correlation_id: CorrelationId,
        deadline: i64,
    ) -> ServiceResult<Result<(), NotSent>> {
        Ok(self.try_send(&[IoSlice::new(&timer(correlation_id, deadline)?)]))
    }

    /// Cancels a timer, if it has not fired. Waits until the consensus module has taken the
    /// request.
    ///
    /// # Errors
    /// - [`ServiceError::Terminate`]: the container ends;
    /// - [`ServiceError::Failed`]: the number of `correlation_id` is `i64::MAX`.
    pub fn cancel_timer(&mut self, correlation_id: CorrelationId) -> ServiceResult {
        self.send(&[IoSlice::new(&cancellation(correlation_id)?)])
    }

    /// As [`cancel_timer`](Self::cancel_timer), but offers the request once.
    ///
    /// # Errors
    /// The request was not sent. Try again: the [type](Self) says why.
    pub fn try_cancel_timer(
        &mut self,
        correlation_id: CorrelationId,
    ) -> ServiceResult<Result<(), NotSent>> {
        Ok(self.try_send(&[IoSlice::new(&cancellation(correlation_id)?)]))
    }

    /// Sends a message to all services of the cluster, through the log. Waits until the consensus
    /// module has taken the message.
    ///
    /// Each member's service sends the message, and the log gets it once. The message arrives at
    /// [`on_session_message`](crate::ClusteredService::on_session_message) with
    /// [`MessageSource::Service`](crate::MessageSource::Service).
    ///
    /// # Errors
    /// - [`ServiceError::Terminate`]: the container ends;
    /// - [`NotSent`] in the inner result: the message is longer than
    ///   [`max_message_length`](Self::max_message_length). No member has sent it.
    ///
    /// ```
    /// use rusteron_cluster::{Cluster, ServiceResult};
    ///
    /// /// Returns whether the message was sent, alike on all members.
    /// fn forward(cluster: &mut Cluster<'_>, message: &[u8]) -> ServiceResult<bool> {
    ///     Ok(cluster.offer(message)?.is_ok())
    /// }
    /// ```
    pub fn offer(&mut self, message: &[u8]) -> ServiceResult<Result<(), NotSent>> {
        if let Err(too_long) = check_length(message.len(), self.max_message_length()) {
            return Ok(Err(too_long));
        }
        let header = self.service_message_header();
        self.send(&[IoSlice::new(&header), IoSlice::new(message)]).map(Ok)
    }

    /// Returns the length of the longest [message](Self::offer) to the cluster, in bytes: 16,352 by
    /// default.
    ///
    /// An eighth of a term of the container's [control
    /// channel](crate::ServiceContext::set_control_channel), without 32 bytes of header. All members
    /// have the same answer, if they have the same channel.
    pub fn max_message_length(&self) -> usize {
        self.lifecycle.network.max_message_length().saturating_sub(HEADER_LENGTH)
    }

    /// Returns the length of the longest [claim](Self::try_claim), in bytes: 1,344 by default.
    ///
    /// The MTU of the control channel without 64 bytes of headers. The MTU is a setting of each
    /// member's media driver, unless the channel names it: the state must not depend on it.
    pub fn max_claim_length(&self) -> usize {
        self.lifecycle.network.max_payload_length().saturating_sub(HEADER_LENGTH)
    }

    /// As [`offer`](Self::offer), but offers the message once.
    ///
    /// # Errors
    /// The message was not sent. Try again: the [type](Self) says why.
    pub fn try_offer(&mut self, message: &[u8]) -> Result<(), NotSent> {
        check_length(message.len(), self.max_message_length())?;
        let header = self.service_message_header();
        self.try_send(&[IoSlice::new(&header), IoSlice::new(message)])
    }

    /// Claims a range for a message of `length` bytes to all services of the cluster, once. The
    /// message is written into it without a copy.
    ///
    /// # Errors
    /// The range was not claimed. Try again: the [type](Self) says why. Not for a message that is
    /// longer than [`max_claim_length`](Self::max_claim_length).
    pub fn try_claim(&mut self, length: usize) -> Result<MessageClaim<'_>, NotSent> {
        check_length(length, self.max_claim_length())?;
        let header = self.service_message_header();
        let claim = self.lifecycle.network.try_claim(length + header.len())?;
        Ok(MessageClaim::new(claim, &header))
    }

    fn service_message_header(&self) -> [u8; HEADER_LENGTH] {
        let state = &self.lifecycle.state;
        // The consensus module writes the real header over it. The service id is all that counts.
        let header = codec::SessionMessageHeader {
            leadership_term_id: LeadershipTermId::number_of(state.leadership_term_id),
            cluster_session_id: state.service_id.get().into(),
            timestamp: 0,
        };
        header.to_bytes()
    }

    fn send(&mut self, message: &[IoSlice<'_>]) -> ServiceResult {
        let sent = send_all(self.lifecycle.network, message, usize::MAX, &mut |_| Ok(()));
        self.lifecycle.or_end(sent)
    }

    fn try_send(&mut self, message: &[IoSlice<'_>]) -> Result<(), NotSent> {
        self.lifecycle.network.offer(message)?;
        Ok(())
    }
}

fn check_length(length: usize, max_length: usize) -> Result<(), NotSent> {
    match length <= max_length {
        true => Ok(()),
        false => Err(NotSent::too_long(length, max_length)),
    }
}

fn timer(
    correlation_id: CorrelationId,
    deadline: i64,
) -> ServiceResult<[u8; codec::ScheduleTimer::LENGTH]> {
    check("correlation_id", correlation_id.get())?;
    check("deadline", deadline)?;
    Ok(codec::ScheduleTimer { correlation_id: correlation_id.get(), deadline }.to_bytes())
}

fn cancellation(correlation_id: CorrelationId) -> ServiceResult<[u8; codec::CancelTimer::LENGTH]> {
    check("correlation_id", correlation_id.get())?;
    Ok(codec::CancelTimer { correlation_id: correlation_id.get() }.to_bytes())
}

/// The consensus module uses the greatest number as a mark.
fn check(name: &str, value: i64) -> ServiceResult {
    match value {
        i64::MAX => {
            Err(ServiceError::failed(format!("{name}={value}: the maximum is {}", i64::MAX - 1)))
        }
        _ => Ok(()),
    }
}

/// A range claimed for one message to the services of the cluster.
///
/// A claim dereferences to the message's bytes. Commit it: dropping a claim aborts it, and the
/// message is lost on this member only.
#[must_use = "dropping a claim aborts it"]
pub struct MessageClaim<'a> {
    claim: Claim<'a>,
}

impl<'a> MessageClaim<'a> {
    /// `claim` is at least as long as the header.
    pub(crate) fn new(mut claim: Claim<'a>, header: &[u8; HEADER_LENGTH]) -> Self {
        claim[..HEADER_LENGTH].copy_from_slice(header);
        Self { claim }
    }

    /// Sends the message.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`](rusteron_client::OfferError::Unblocked) if the claim was held for so
    /// long that the media driver has unblocked its range.
    pub fn commit(self) -> Result<(), NotSent> {
        match self.claim {
            Claim::Published(claim) => claim.commit()?,
            Claim::Recorded { bytes, network } => network.offer(&[IoSlice::new(&bytes)])?,
        };
        Ok(())
    }

    /// Aborts the claim.
    pub fn abort(self) {
        if let Claim::Published(claim) = self.claim {
            claim.abort();
        }
    }
}

impl Deref for MessageClaim<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.claim[HEADER_LENGTH..]
    }
}

impl DerefMut for MessageClaim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.claim[HEADER_LENGTH..]
    }
}

rusteron_core::impl_debug!(MessageClaim<'_>: len());
