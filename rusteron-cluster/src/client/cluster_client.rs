//! A session with a cluster.

use std::fmt;
use std::io::IoSlice;

use rusteron_client::__private::RawClient;
use rusteron_client::{
    Action, Aeron, Header, IdleStrategy, OfferError, PollError, Position, Subscription,
};

use crate::client::async_connect::AsyncConnect;
use crate::client::claim::IngressClaim;
use crate::client::context::ClusterContext;
use crate::client::egress::Egress;
use crate::client::ingress::{Ingress, Progress};
use crate::client::session::{CloseCause, ClusterState};
use crate::error::{ClusterError, ClusterErrorKind, Result};

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
///     .set_ingress_channel("aeron:udp")
///     .set_ingress_endpoints("0=localhost:9002,1=localhost:9102,2=localhost:9202".parse()?)
///     .set_egress_channel("aeron:udp?endpoint=localhost:0");
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
/// Threads can hand a session on, but not share it. This does not compile:
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
    /// `None` once the session is closed: a subscription that is not polled would hold up other
    /// subscribers of the stream.
    egress: Option<Subscription>,
}

impl ClusterClient {
    /// Connects to a cluster, and waits for a session.
    ///
    /// Blocks at most for the [message timeout](ClusterContext::set_message_timeout), and idles
    /// with the context's idle strategy. For a client without a conductor thread, does the
    /// conductor's work meanwhile. Asks all members with endpoints, follows a redirect to the
    /// leader, and answers a challenge.
    ///
    /// The cluster has then appended the session to its log. The session can still vanish with the
    /// leader, before it is committed.
    ///
    /// # Errors
    /// - [`ClusterErrorKind::InvalidArgument`]: a setting is missing or not valid;
    /// - [`ClusterErrorKind::Timeout`]: no session in time;
    /// - [`ClusterErrorKind::Rejected`]: the cluster refuses the session, with its text;
    /// - [`ClusterErrorKind::AuthenticationRejected`]: the cluster refuses the credentials;
    /// - [`ClusterErrorKind::ConnectionLost`]: the leader disconnected after a challenge;
    /// - [`ClusterErrorKind::Client`] with [`CalledFromConductor`](rusteron_client::ErrorKind):
    ///   called from a callback;
    /// - [`ClusterErrorKind::Client`] with other kinds: the Aeron client's errors, if there is a
    ///   publication to no member, or no subscription.
    ///
    /// Corresponds to `AeronCluster.connect`.
    pub fn connect(aeron: &Aeron, context: ClusterContext) -> Result<Self> {
        let client = RawClient::new(aeron);
        client.forbid_blocking("connect")?;
        let mut attempt = Self::async_connect(aeron, context)?;
        let mut idle = attempt.context().idle_strategy().new_strategy();
        loop {
            let state = attempt.state();
            if let Some(client) = attempt.poll()? {
                return Ok(client);
            }
            if client.has_invoker() {
                // A fatal error closes the client, which the next poll reports.
                let _ = attempt.aeron().do_work();
            }
            idle.idle(usize::from(state != attempt.state()));
        }
    }

    /// Starts connecting to a cluster. Poll or await the result.
    ///
    /// Does not block. The message timeout starts now.
    ///
    /// # Errors
    /// [`ClusterErrorKind::InvalidArgument`]: a setting is missing or not valid. The other errors of
    /// [`connect`](Self::connect) are returned by [`AsyncConnect::poll`].
    ///
    /// Corresponds to `AeronCluster.asyncConnect`.
    #[doc(alias = "asyncConnect")]
    pub fn async_connect(aeron: &Aeron, context: ClusterContext) -> Result<AsyncConnect> {
        AsyncConnect::begin(aeron, context)
    }

    pub(crate) fn new(ingress: Ingress, egress: Subscription) -> Self {
        Self { ingress, egress: Some(egress) }
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
        let before = self.ingress.progress();
        let (ingress, egress) = self.open_session()?;
        let session_id = ingress.cluster_session_id();
        let on_message = |message: &[u8], header: &Header<'_>| {
            let Some(event) = Egress::decode(session_id, message, header) else { return };
            if ingress.on_egress(&event, header.image_correlation_id()) {
                handler(ingress, event);
            }
        };
        let polled = egress.poll(on_message, fragment_limit);
        self.after_poll(polled, before)
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
        let before = self.ingress.progress();
        let (ingress, egress) = self.open_session()?;
        let session_id = ingress.cluster_session_id();
        let on_message = |message: &[u8], header: &Header<'_>| {
            let Some(event) = Egress::decode(session_id, message, header) else {
                return Action::Continue;
            };
            if !ingress.on_egress(&event, header.image_correlation_id()) {
                return Action::Continue;
            }
            let may_come_again = matches!(event, Egress::Message { .. } | Egress::Extension { .. });
            match handler(ingress, event) {
                Action::Abort if !may_come_again => Action::Break,
                action => action,
            }
        };
        let polled = egress.controlled_poll(on_message, fragment_limit);
        self.after_poll(polled, before)
    }

    /// Returns the halves of an open session.
    #[inline]
    fn open_session(&mut self) -> Result<(&mut Ingress, &mut Subscription)> {
        if let ClusterState::Closed(cause) = self.state() {
            self.release_closed();
            return Err(closed(cause));
        }
        match &mut self.egress {
            Some(egress) => Ok((&mut self.ingress, egress)),
            None => Err(closed(self.ingress.client_closed())),
        }
    }

    /// Notices the loss of the leader's image, and checks deadlines. `before` is the progress before
    /// the poll.
    #[inline]
    fn after_poll(&mut self, polled: Result<usize, PollError>, before: Progress) -> Result<usize> {
        let Ok(fragments) = polled else {
            let cause = self.ingress.client_closed();
            self.ingress.close(cause);
            self.release_closed();
            return Err(closed(cause));
        };
        let leader = self.ingress.image_correlation_id();
        let mut images = self.egress.iter_mut().flat_map(Subscription::images);
        if !images.any(|image| image.correlation_id() == leader && !image.is_closed()) {
            self.ingress.on_egress_lost();
        }
        let keep_alives = self.ingress.poll_timers();
        self.release_closed();
        let changes = usize::from(self.ingress.progress() != before);
        Ok(fragments + keep_alives + changes)
    }

    /// Closes the streams of a closed session.
    #[inline]
    fn release_closed(&mut self) {
        if let ClusterState::Closed(_) = self.state() {
            self.egress = None;
            self.ingress.release_publication();
        }
    }

    /// Closes the streams if a rejected offer has closed the session.
    #[inline]
    fn after_offer(
        &mut self,
        offered: Result<Position, OfferError>,
    ) -> Result<Position, OfferError> {
        if offered.is_err() {
            self.release_closed();
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
    pub fn request_snapshot(&mut self, correlation_id: i64) -> Result<Position, OfferError> {
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
        self.egress.as_ref()
    }

    /// Returns the state of the session.
    #[inline]
    pub fn state(&self) -> ClusterState {
        self.ingress.state()
    }

    /// Returns the id of the session, unique in the cluster.
    pub fn cluster_session_id(&self) -> i64 {
        self.ingress.cluster_session_id()
    }

    /// Returns the term of the current leader.
    pub fn leadership_term_id(&self) -> i64 {
        self.ingress.leadership_term_id()
    }

    /// Returns the member id of the current leader.
    pub fn leader_member_id(&self) -> i32 {
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

#[cold]
fn closed(cause: CloseCause) -> ClusterError {
    ClusterError::new(ClusterErrorKind::Closed, cause.to_string())
}

impl Drop for ClusterClient {
    fn drop(&mut self) {
        self.ingress.send_close_request();
    }
}

impl fmt::Debug for ClusterClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterClient")
            .field("ingress", &self.ingress)
            .field("egress", &self.egress)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_move_between_threads() {
        fn is_send<T: Send>() {}
        is_send::<ClusterClient>();
        is_send::<AsyncConnect>();
        is_send::<ClusterContext>();
    }
}
