//! A session with a cluster.

use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;

use rusteron_client::{Action, OfferError, Position, Subscription};

use crate::client::cluster_egress::ClusterEgress;
use crate::client::egress::Egress;
use crate::client::ingress::{Ingress, IngressClaim};
use crate::client::session::ClusterState;
use crate::error::Result;
use crate::ids::{ClusterSessionId, CorrelationId, LeadershipTermId, MemberId};
#[cfg(doc)]
use crate::{
    client::context::ClusterContext, client::session::ClusterCloseCause, error::ClusterErrorKind,
};

/// A session with a cluster: sends messages to its services, and receives theirs.
///
/// One thread at a time uses the session. The session keeps its Aeron client open. Dropping the
/// session closes it: the cluster is told, if the session is connected.
///
/// Poll the egress regularly. Polls follow changes of leader, notice the loss of the egress, and
/// send keep-alives if [asked to](ClusterContext::set_keep_alive_interval). Offers notice the loss
/// of the ingress. A closed session closes its publication and its subscription.
///
/// ```no_run
/// use rusteron_client::{Aeron, Context};
/// use rusteron_cluster::{ClusterClient, ClusterContext, Egress};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let aeron = Aeron::connect(Context::new()?)?;
/// let mut context = ClusterContext::new();
/// context
///     .set_ingress_channel("aeron:udp")?
///     .set_ingress_endpoints("0=localhost:9002,1=localhost:9102,2=localhost:9202".parse()?)?
///     .set_egress_channel("aeron:udp?endpoint=localhost:0")?;
/// let mut cluster = ClusterClient::connect(&aeron, context)?;
///
/// while let Err(error) = cluster.offer(b"hello") {
///     if !error.is_retryable() {
///         return Err(error.into());
///     }
///     // Follows a new leader, if the old one has gone.
///     cluster.poll_egress(|_, _| {}, 10)?;
/// }
/// let mut answer = None;
/// while answer.is_none() {
///     cluster.poll_egress(
///         |_ingress, event| {
///             if let Egress::Message { payload, .. } = event {
///                 answer = Some(payload.to_vec());
///             }
///         },
///         10,
///     )?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// Threads can hand a session on, or [split](Self::split) it to send on one thread and receive on
/// another. They cannot share it. This does not compile:
///
/// ```compile_fail,E0277
/// # use rusteron_cluster::ClusterClient;
/// fn share(cluster: &ClusterClient) {
///     std::thread::scope(|scope| scope.spawn(|| println!("{:?}", cluster.state())));
/// }
/// ```
///
/// Corresponds to `io.aeron.cluster.client.AeronCluster`.
#[doc(alias = "AeronCluster")]
#[must_use = "the session is closed when this is dropped"]
pub struct ClusterClient {
    ingress: Ingress,
    egress: ClusterEgress,
}

impl ClusterClient {
    pub(crate) fn new(ingress: Ingress, egress: ClusterEgress) -> Self {
        Self { ingress, egress }
    }

    /// Returns the halves of the session: one thread sends, while another receives.
    ///
    /// - Polls of the [`ClusterEgress`] notice the events of the session. The [`Ingress`] follows them
    ///   in its next call: it connects to a new leader, and its messages have the new term. Calls of
    ///   [`Ingress::poll_state_changes`] do so, too, and send automatic keep-alives; a thread that has
    ///   nothing to send makes them. Otherwise a new leader that gets no message closes the session.
    /// - The halves share one atomic number, which offers and polls load. Both take a lock for some
    ///   assignments when the state changes, or while a new leader is awaited.
    /// - Messages that one thread offers while the other learns of a new leader can go to the old one,
    ///   and are lost; the crate's documentation says
    ///   [what can be lost](crate#what-can-be-lost). After an accepted offer,
    ///   [`Ingress::leadership_term_id`] is the term of that message: messages of older terms without
    ///   an answer are those to send again. Offers that begin after the handler got
    ///   [`Egress::NewLeader`] have the new term.
    /// - Closing or dropping one half closes the session, with
    ///   [`ClusterCloseCause::ClosedByApplication`]. So keep the ingress until all answers have arrived.
    ///   An ingress tells the cluster itself, and for a closed [`ClusterEgress`] in its next call.
    ///
    /// Does not block, does not allocate. [`join`](Self::join) is the way back.
    ///
    /// ```no_run
    /// use std::thread;
    ///
    /// use rusteron_cluster::{ClusterClient, Egress};
    ///
    /// fn run(cluster: ClusterClient) -> rusteron_cluster::Result<()> {
    ///     let (mut ingress, mut egress) = cluster.split();
    ///     let sender = thread::spawn(move || {
    ///         for number in 0..1000_u64 {
    ///             while let Err(error) = ingress.offer(&number.to_le_bytes()) {
    ///                 if !error.is_retryable() {
    ///                     return Err(error);
    ///                 }
    ///                 // Back pressure, or no leader. The other thread hears of the next one.
    ///                 thread::yield_now();
    ///             }
    ///         }
    ///         // Dropping the ingress would close the session before the last answers.
    ///         Ok(ingress)
    ///     });
    ///     let mut answers = 0;
    ///     while answers < 1000 {
    ///         let handler = |event: Egress<'_>| {
    ///             answers += usize::from(matches!(event, Egress::Message { .. }));
    ///         };
    ///         egress.poll(handler, 10)?;
    ///     }
    ///     let ingress = sender.join().expect("the sender did not panic").expect("an open session");
    ///     let cluster = ClusterClient::join(ingress, egress).expect("halves of one session");
    ///     cluster.close();
    ///     Ok(())
    /// }
    /// ```
    pub fn split(self) -> (Ingress, ClusterEgress) {
        (self.ingress, self.egress)
    }

    /// Makes one session of its halves again.
    ///
    /// # Errors
    /// [`JoinError`], with both halves, if they are of different sessions.
    pub fn join(ingress: Ingress, egress: ClusterEgress) -> Result<Self, Box<JoinError>> {
        if !Arc::ptr_eq(ingress.shared(), egress.shared()) {
            return Err(Box::new(JoinError { ingress, egress }));
        }
        Ok(Self { ingress, egress })
    }

    /// Passes the messages that have arrived to the handler, at most `fragment_limit` fragments.
    /// Returns the amount of work: fragments, changes of state, keep-alives. Zero means that
    /// nothing has happened.
    ///
    /// The handler gets the ingress, so that it can answer at once, and whole messages of this
    /// session. Messages of other sessions on the same stream count as fragments. If the handler
    /// panics, the panic goes through to the caller, and the next poll continues after the message.
    ///
    /// Does not block; allocates for events of new leaders, and where
    /// [`Subscription::poll`] does.
    ///
    /// # Errors
    /// [`ClusterErrorKind::Closed`] if the session was closed before this poll;
    /// [`state`](Self::state) has the cause. A poll in which the session closes returns `Ok`, unless
    /// the Aeron client has closed.
    ///
    /// Corresponds to `AeronCluster.pollEgress`, which also calls `pollStateChanges`.
    #[doc(alias = "pollEgress")]
    #[inline]
    pub fn poll_egress<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize>
    where
        F: FnMut(&mut Ingress, Egress<'_>),
    {
        let Self { ingress, egress } = self;
        let on_event = |event: Egress<'_>| {
            ingress.follow_event(&event);
            handler(ingress, event);
        };
        let polled = egress.poll(on_event, fragment_limit);
        self.after_poll(polled)
    }

    /// As [`poll_egress`](Self::poll_egress), with a handler that controls the position in the
    /// leader's stream after each message.
    ///
    /// [`Action::Abort`] counts for [`Egress::Message`] and [`Egress::Extension`], which then come
    /// again. Other events have changed the session already, and come once: `Abort` after them is
    /// [`Action::Break`].
    ///
    /// # Errors
    /// As for [`poll_egress`](Self::poll_egress).
    ///
    /// Corresponds to `AeronCluster.controlledPollEgress`.
    #[doc(alias = "controlledPollEgress")]
    #[inline]
    pub fn controlled_poll_egress<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize>
    where
        F: FnMut(&mut Ingress, Egress<'_>) -> Action,
    {
        let Self { ingress, egress } = self;
        let on_event = |event: Egress<'_>| {
            ingress.follow_event(&event);
            handler(ingress, event)
        };
        let polled = egress.controlled_poll(on_event, fragment_limit);
        self.after_poll(polled)
    }

    /// Lets the ingress follow what the egress has noticed.
    #[inline]
    fn after_poll(&mut self, polled: Result<usize>) -> Result<usize> {
        let work = self.ingress.poll_state_changes();
        self.egress.release_closed();
        Ok(polled? + work)
    }

    /// Closes the egress if a rejected offer has closed the session.
    #[inline]
    fn after_offer(
        &mut self,
        offered: Result<Position, OfferError>,
    ) -> Result<Position, OfferError> {
        if offered.is_err() {
            self.egress.release_closed();
        }
        offered
    }

    /// Offers one message to the cluster. See [`Ingress::offer`].
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Ingress#offers).
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        let offered = self.ingress.offer(message);
        self.after_offer(offered)
    }

    /// Offers one message whose bytes lie in several slices. See [`Ingress::offer_parts`].
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Ingress#offers).
    #[inline]
    pub fn offer_parts(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        let offered = self.ingress.offer_parts(parts);
        self.after_offer(offered)
    }

    /// Claims a range of the ingress for a message of `length` bytes. See [`Ingress::try_claim`].
    ///
    /// If a rejected claim closes the session, the next poll closes the session's streams.
    ///
    /// # Errors
    /// Nothing has been claimed; see [offers](Ingress#offers).
    #[inline]
    pub fn try_claim(&mut self, length: usize) -> Result<IngressClaim<'_>, OfferError> {
        self.ingress.try_claim(length)
    }

    /// Offers a keep-alive, once. See [`Ingress::send_keep_alive`].
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Ingress#offers).
    pub fn send_keep_alive(&mut self) -> Result<Position, OfferError> {
        let offered = self.ingress.send_keep_alive();
        self.after_offer(offered)
    }

    /// Asks the cluster to take a snapshot. See [`Ingress::request_snapshot`].
    ///
    /// # Errors
    /// Nothing has been sent; see [offers](Ingress#offers).
    pub fn request_snapshot(
        &mut self,
        correlation_id: CorrelationId,
    ) -> Result<Position, OfferError> {
        let offered = self.ingress.request_snapshot(correlation_id);
        self.after_offer(offered)
    }

    /// Returns the sending half of the session.
    pub fn ingress(&mut self) -> &mut Ingress {
        &mut self.ingress
    }

    /// Returns the subscription on which the session receives. `None` once the session is closed.
    #[doc(alias = "egressSubscription")]
    pub fn egress_subscription(&self) -> Option<&Subscription> {
        self.egress.subscription()
    }

    /// Returns the state of the session.
    #[inline]
    pub fn state(&self) -> ClusterState {
        self.ingress.state()
    }

    /// Returns the id of the session, unique in the cluster.
    pub fn cluster_session_id(&self) -> ClusterSessionId {
        self.ingress.cluster_session_id()
    }

    /// Returns the term of the current leader.
    pub fn leadership_term_id(&self) -> LeadershipTermId {
        self.ingress.leadership_term_id()
    }

    /// Returns the member id of the current leader.
    pub fn leader_member_id(&self) -> MemberId {
        self.ingress.leader_member_id()
    }

    /// Closes the session. Dropping it does the same.
    ///
    /// Tells the cluster, if the session is connected and the ingress accepts the message within
    /// three attempts. Otherwise the session times out in the cluster. Does not wait for an answer.
    ///
    /// Corresponds to `AeronCluster.close`.
    pub fn close(self) {}
}

/// Halves of different sessions, which cannot be joined.
pub struct JoinError {
    /// The sending half of one session.
    pub ingress: Ingress,
    /// The receiving half of another.
    pub egress: ClusterEgress,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ingress, egress) =
            (self.ingress.cluster_session_id(), self.egress.cluster_session_id());
        write!(
            f,
            "the ingress of session {ingress} and the egress of session {egress} do not belong together"
        )
    }
}

rusteron_core::debug_as_display!(JoinError);

impl std::error::Error for JoinError {}

rusteron_core::impl_debug!(ClusterClient: ingress, egress);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AsyncClusterConnect, ClusterContext};

    #[test]
    fn sessions_move_between_threads() {
        fn is_send<T: Send>() {}
        is_send::<ClusterClient>();
        is_send::<(Ingress, ClusterEgress)>();
        is_send::<AsyncClusterConnect>();
        is_send::<ClusterContext>();
    }
}
