//! How a session with a cluster begins: at once, or by a pending connection.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use rusteron_client::raw_client::RawClient;
use rusteron_client::{
    Action, Aeron, AnyPublication, ChannelUri, Error, Header, IdleStrategy, OfferError, PollError,
    Publisher, Registration, Subscription,
};
use rusteron_core::ffi::wake;

use crate::client::cluster_client::ClusterClient;
use crate::client::cluster_egress::ClusterEgress;
use crate::client::connect::{Connect, ConnectIo, ConnectState, Connected};
use crate::client::context::ClusterContext;
use crate::client::ingress::Ingress;
use crate::client::pending_ingress::{IngressStream, PendingIngress};
use crate::client::session::Session;
use crate::client::shared_session::{Leader, SharedSession};
use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::ids::{CorrelationId, MemberId};
use crate::stream::poll_or_request;

/// The leader's default heartbeat timeout, for leaders that do not report theirs.
const DEFAULT_LEADER_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);

/// A pending connection to a cluster.
///
/// Poll it until it returns the client or an error, or await it as a future. The timeout counts
/// from its creation, and only polls notice the end of the timeout. Dropping it before there is an
/// outcome abandons the attempt. A session that the cluster has opened meanwhile times out there.
///
/// Made by [`ClusterClient::async_connect`].
///
/// ```no_run
/// use rusteron_client::Aeron;
/// use rusteron_cluster::{ClusterClient, ClusterContext};
///
/// # async fn connect(aeron: &Aeron, context: ClusterContext) -> rusteron_cluster::Result<()> {
/// let cluster = ClusterClient::async_connect(aeron, context)?.await?;
/// println!("session {}", cluster.cluster_session_id());
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `io.aeron.cluster.client.AeronCluster.AsyncConnect`.
#[doc(alias = "AeronCluster.AsyncConnect")]
#[must_use = "the attempt ends when this is dropped"]
pub struct AsyncClusterConnect {
    connect: Connect,
    network: Network,
    context: ClusterContext,
    ingress_channel: ChannelUri,
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
        client.forbid_blocking("connect", Some("async_connect"))?;
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
    /// [`ClusterErrorKind::InvalidArgument`]: a setting is missing or not valid. The other errors
    /// of [`connect`](Self::connect) are returned by [`AsyncClusterConnect::poll`].
    ///
    /// Corresponds to `AeronCluster.asyncConnect`.
    #[doc(alias = "asyncConnect")]
    pub fn async_connect(aeron: &Aeron, context: ClusterContext) -> Result<AsyncClusterConnect> {
        AsyncClusterConnect::begin(aeron, context)
    }
}

impl AsyncClusterConnect {
    fn begin(aeron: &Aeron, context: ClusterContext) -> Result<Self> {
        let channels = context.conclude()?;
        let connect = Connect::new(&context, channels.ingress.clone(), Instant::now())?;
        let network = Network {
            aeron: aeron.clone(),
            egress_channel: channels.egress,
            egress_stream_id: context.egress_stream_id(),
            adding_egress: None,
            egress: None,
            ingress_stream: IngressStream::new(&context),
            ingress: BTreeMap::new(),
        };
        Ok(Self { connect, network, context, ingress_channel: channels.ingress })
    }

    /// Returns the client, or `None` if the connection is still pending. Does not block, but waits
    /// for the credentials supplier while a clone of the context uses the supplier.
    ///
    /// # Errors
    /// The outcome is returned once and can be an error, as for [`ClusterClient::connect`]. Later
    /// polls return [`ClusterErrorKind::Client`] with
    /// [`IllegalState`](rusteron_client::ErrorKind).
    ///
    /// Corresponds to `AeronCluster.AsyncConnect.poll`.
    pub fn poll(&mut self) -> Result<Option<ClusterClient>> {
        let now = Instant::now();
        let polled = self.connect.poll(&mut self.network, &self.context.credentials, now);
        let connected = polled.inspect_err(|_| self.network.clear())?;
        connected.map(|connected| self.client(connected, now)).transpose()
    }

    /// Returns the state of the attempt.
    #[doc(alias = "step")]
    pub fn state(&self) -> ConnectState {
        self.connect.state()
    }

    /// Returns the client that the attempt connects with.
    pub(crate) fn aeron(&self) -> &Aeron {
        &self.network.aeron
    }

    pub(crate) fn context(&self) -> &ClusterContext {
        &self.context
    }

    fn client(&mut self, connected: Connected, now: Instant) -> Result<ClusterClient> {
        let Some((publication, egress)) = self.network.take(connected.member_id) else {
            let text = "the publication was closed";
            return Err(ClusterError::new(ClusterErrorKind::ConnectionLost, text));
        };
        let heartbeat_timeout =
            connected.leader_heartbeat_timeout.unwrap_or(DEFAULT_LEADER_HEARTBEAT_TIMEOUT);
        let new_leader_timeout = self
            .context
            .new_leader_timeout()
            .unwrap_or_else(|| heartbeat_timeout.min(Duration::from_secs(1 << 24)) * 2);
        let session = Session::new(now, self.context.message_timeout(), new_leader_timeout);
        let leader = Leader {
            event: Leader::FIRST_EVENT,
            leadership_term_id: connected.leadership_term_id,
            member_id: connected.leader_member_id,
            ingress_endpoints: String::new(),
        };
        let shared = Arc::new(SharedSession::new(session, leader));
        let egress = ClusterEgress::new(egress, shared.clone(), &connected);
        let ingress = Ingress::new(
            &self.network.aeron,
            shared,
            publication,
            &connected,
            self.ingress_channel.clone(),
            &self.context,
            now,
        );
        Ok(ClusterClient::new(ingress, egress))
    }
}

/// Resolves to the client. Needs no particular runtime: a thread of the Aeron client's library, one
/// per process, wakes the task.
///
/// With a client without a conductor thread, it makes progress only while other code calls
/// [`Aeron::do_work`].
impl Future for AsyncClusterConnect {
    type Output = Result<ClusterClient>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        wake::outcome(AsyncClusterConnect::poll(self.get_mut()), context)
    }
}

rusteron_core::impl_debug!(AsyncClusterConnect: state(), context);

/// Fragments of each poll for an answer.
const FRAGMENT_LIMIT: usize = 10;

/// Publications to members and the subscription for their answers.
#[derive(Debug)]
struct Network {
    aeron: Aeron,
    egress_channel: ChannelUri,
    egress_stream_id: i32,
    adding_egress: Option<Registration<Subscription>>,
    egress: Option<Subscription>,
    ingress_stream: IngressStream,
    ingress: BTreeMap<MemberId, PendingIngress>,
}

impl Network {
    /// Returns the publication to a member and the egress, once, after the cluster has answered.
    fn take(&mut self, member_id: MemberId) -> Option<(AnyPublication, Subscription)> {
        let publication = self.ingress.get_mut(&member_id)?.added.take()?;
        let egress = self.egress.take()?;
        self.clear();
        Some((publication, egress))
    }

    /// Closes all publications and the subscription, and cancels requests.
    fn clear(&mut self) {
        self.ingress.clear();
        self.egress = None;
        self.adding_egress = None;
    }

    fn publication(&mut self, member_id: MemberId) -> Option<&mut AnyPublication> {
        self.ingress.get_mut(&member_id)?.added.as_mut()
    }
}

impl ConnectIo for Network {
    fn check_open(&self) -> Result<(), Error> {
        self.aeron.check_open()
    }

    fn poll_egress(&mut self) -> Result<bool, Error> {
        if self.egress.is_none() {
            let Self { aeron, egress_channel, egress_stream_id, .. } = self;
            let request = || aeron.async_add_subscription(&*egress_channel, *egress_stream_id);
            self.egress = poll_or_request(&mut self.adding_egress, request)?;
        }
        Ok(self.egress.is_some())
    }

    fn response_channel(&mut self) -> Result<Option<String>, Error> {
        match &self.egress {
            Some(egress) => egress.try_resolve_channel_endpoint_port(),
            None => Ok(None),
        }
    }

    fn poll_ingress(&mut self, member_id: MemberId, channel: &str) -> Result<bool, Error> {
        let pending = self.ingress.entry(member_id).or_default();
        pending.poll(&self.aeron, channel, &self.ingress_stream)
    }

    fn is_connected(&mut self, member_id: MemberId) -> bool {
        self.publication(member_id).is_some_and(|publication| publication.is_connected())
    }

    fn close_ingress(&mut self, member_id: MemberId) {
        self.ingress.remove(&member_id);
    }

    fn offer(&mut self, member_id: MemberId, message: &[u8]) -> Result<(), OfferError> {
        match self.publication(member_id) {
            Some(publication) => publication.offer(message).map(drop),
            None => Err(OfferError::NotConnected),
        }
    }

    fn poll_responses(
        &mut self,
        handler: &mut dyn FnMut(&[u8], i64) -> bool,
    ) -> Result<(), PollError> {
        let Some(egress) = &mut self.egress else { return Ok(()) };
        let mut is_done = false;
        let on_message = |message: &[u8], header: &Header<'_>| {
            // Messages behind the answer belong to the session, which polls for them later.
            if is_done {
                return Action::Abort;
            }
            is_done = handler(message, header.image_correlation_id());
            if is_done { Action::Break } else { Action::Continue }
        };
        egress.controlled_poll(on_message, FRAGMENT_LIMIT).map(drop)
    }

    fn next_correlation_id(&mut self) -> CorrelationId {
        CorrelationId::new(self.aeron.next_correlation_id())
    }
}
