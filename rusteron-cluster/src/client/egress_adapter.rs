//! Decoding egress of own subscriptions.

use rusteron_client::{Action, Header};

use crate::client::egress::Egress;

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
    cluster_session_id: i64,
}

impl EgressAdapter {
    /// Returns an adapter for the messages of a session.
    pub fn new(cluster_session_id: i64) -> Self {
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
