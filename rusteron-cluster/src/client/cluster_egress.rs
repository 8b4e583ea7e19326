//! The receiving half of a session.

use std::sync::Arc;
use std::time::Instant;

use rusteron_client::{Action, Header, PollError, Subscription};

use crate::client::connect::Connected;
use crate::client::egress::{Egress, EventCode};
use crate::client::session::{ClusterCloseCause, ClusterState};
use crate::client::shared_session::{Leader, SharedSession, Version};
use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::ids::{ClusterSessionId, LeadershipTermId, MemberId};

/// The receiving half of a session: the leader's messages, and the events that [`Ingress`] follows.
///
/// Made by [`ClusterClient::split`], which explains how the halves work together. One thread at a
/// time uses it. Dropping it closes the session.
///
/// [`Ingress`]: crate::Ingress
/// [`ClusterClient::split`]: crate::ClusterClient::split
#[must_use = "the session is closed when this is dropped"]
pub struct ClusterEgress {
    /// `None` once the session is closed: a subscription that is not polled would hold up other
    /// subscribers of the stream.
    subscription: Option<Subscription>,
    events: Events,
}

/// Follows the events of a session.
#[derive(Debug)]
struct Events {
    shared: Arc<SharedSession>,
    cluster_session_id: ClusterSessionId,
    /// Events of new leaders so far.
    leaders: u64,
    leadership_term_id: LeadershipTermId,
    leader_member_id: MemberId,
    /// The image on which the leader sends.
    image_correlation_id: i64,
}

impl ClusterEgress {
    pub(crate) fn new(
        subscription: Subscription,
        shared: Arc<SharedSession>,
        connected: &Connected,
    ) -> Self {
        let events = Events {
            shared,
            cluster_session_id: connected.cluster_session_id,
            leaders: Leader::FIRST_EVENT,
            leadership_term_id: connected.leadership_term_id,
            leader_member_id: connected.leader_member_id,
            image_correlation_id: connected.image_correlation_id,
        };
        Self { subscription: Some(subscription), events }
    }

    /// Passes the messages that have arrived to the handler, at most `fragment_limit` fragments.
    /// Returns the amount of work: fragments, and changes of state. Zero means that nothing has
    /// happened.
    ///
    /// The handler gets whole messages of this session. Messages of other sessions on the same
    /// stream count as fragments. If the handler panics, the panic goes through to the caller, and
    /// the next poll continues after the message.
    ///
    /// Does not block; allocates for events of new leaders, and where [`Subscription::poll`] does.
    ///
    /// # Errors
    /// [`ClusterErrorKind::Closed`] if the session was closed before this poll, by whichever half;
    /// [`state`](Self::state) has the cause. A poll in which the session closes returns `Ok`, unless
    /// the Aeron client has closed.
    ///
    /// Corresponds to `AeronCluster.pollEgress`.
    #[inline]
    pub fn poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize>
    where
        F: FnMut(Egress<'_>),
    {
        let before = self.events.shared.version();
        let (subscription, events) = self.open()?;
        let on_message = |message: &[u8], header: &Header<'_>| {
            if let Some(event) = events.decode(message, header) {
                handler(event);
            }
        };
        let polled = subscription.poll(on_message, fragment_limit);
        self.after_poll(polled, before)
    }

    /// As [`poll`](Self::poll), with a handler that controls the position in the leader's stream
    /// after each message.
    ///
    /// [`Action::Abort`] counts for [`Egress::Message`] and [`Egress::Extension`], which then come
    /// again. Other events have changed the session already, and come once: `Abort` after them is
    /// [`Action::Break`].
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `AeronCluster.controlledPollEgress`.
    #[inline]
    pub fn controlled_poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize>
    where
        F: FnMut(Egress<'_>) -> Action,
    {
        let before = self.events.shared.version();
        let (subscription, events) = self.open()?;
        let on_message = |message: &[u8], header: &Header<'_>| {
            let Some(event) = events.decode(message, header) else { return Action::Continue };
            let may_come_again = matches!(event, Egress::Message { .. } | Egress::Extension { .. });
            match handler(event) {
                Action::Abort if !may_come_again => Action::Break,
                action => action,
            }
        };
        let polled = subscription.controlled_poll(on_message, fragment_limit);
        self.after_poll(polled, before)
    }

    #[inline]
    fn open(&mut self) -> Result<(&mut Subscription, &mut Events)> {
        if self.events.shared.version().is_closed() {
            self.release_closed();
        }
        match &mut self.subscription {
            Some(subscription) => Ok((subscription, &mut self.events)),
            None => Err(self.events.closed()),
        }
    }

    /// Notices the loss of the leader's image, and checks deadlines. `before` is the version before
    /// the poll.
    #[inline]
    fn after_poll(&mut self, polled: Result<usize, PollError>, before: Version) -> Result<usize> {
        let shared = &self.events.shared;
        let fragments = match polled {
            Ok(fragments) => fragments,
            Err(error) => {
                let cause = match error {
                    PollError::Closed(cause) => cause,
                    _ => rusteron_client::CloseCause::Handle,
                };
                shared.close(ClusterCloseCause::ClientClosed(cause));
                self.release_closed();
                return Err(self.events.closed());
            }
        };
        let leader = self.events.image_correlation_id;
        let mut images = self.subscription.iter_mut().flat_map(Subscription::images);
        if !images.any(|image| image.correlation_id() == leader && !image.is_closed()) {
            shared.on_egress_lost();
        }
        if !shared.version().is_connected() {
            shared.check_deadline(Instant::now());
        }
        let is_changed = shared.version() != before;
        self.release_closed();
        Ok(fragments + usize::from(is_changed))
    }

    /// Closes the subscription of a closed session.
    #[inline]
    pub(crate) fn release_closed(&mut self) {
        if self.events.shared.version().is_closed() {
            self.subscription = None;
        }
    }

    /// Returns the subscription on which the session receives. `None` once the session is closed.
    #[doc(alias = "egressSubscription")]
    pub fn subscription(&self) -> Option<&Subscription> {
        self.subscription.as_ref()
    }

    /// Returns the state of the session.
    #[inline]
    pub fn state(&self) -> ClusterState {
        self.events.shared.state()
    }

    /// Returns the id of the session, unique in the cluster.
    pub fn cluster_session_id(&self) -> ClusterSessionId {
        self.events.cluster_session_id
    }

    /// Returns the term of the leader that announced itself last.
    pub fn leadership_term_id(&self) -> LeadershipTermId {
        self.events.leadership_term_id
    }

    /// Returns the member id of the leader that announced itself last.
    pub fn leader_member_id(&self) -> MemberId {
        self.events.leader_member_id
    }

    pub(crate) fn shared(&self) -> &Arc<SharedSession> {
        &self.events.shared
    }

    /// Closes the session. Dropping this half does the same.
    ///
    /// The next call of the other half tells the cluster. Without one, the session times out there.
    pub fn close(self) {}
}

impl Events {
    /// Decodes a message, and follows it before the application gets it.
    #[inline]
    fn decode<'a>(&mut self, message: &'a [u8], header: &'a Header<'a>) -> Option<Egress<'a>> {
        let event = Egress::decode(self.cluster_session_id, message, header)?;
        if matches!(event, Egress::Message { .. })
            || self.follow(&event, header.image_correlation_id())
        {
            return Some(event);
        }
        None
    }

    /// Returns whether the application gets the event.
    #[cold]
    fn follow(&mut self, event: &Egress<'_>, image_correlation_id: i64) -> bool {
        match event {
            Egress::SessionEvent { code: EventCode::Closed, leadership_term_id, .. } => {
                // A deposed leader does not know of the session's new leader.
                if *leadership_term_id < self.leadership_term_id {
                    log::debug!("the leader of term {leadership_term_id} closed the session late");
                    return false;
                }
                self.shared.close(ClusterCloseCause::ClosedByCluster);
            }
            Egress::NewLeader { leadership_term_id, leader_member_id, ingress_endpoints } => {
                if *leadership_term_id < self.leadership_term_id {
                    log::debug!("an event of term {leadership_term_id} came late");
                    return false;
                }
                self.leaders += 1;
                self.leadership_term_id = *leadership_term_id;
                self.leader_member_id = *leader_member_id;
                self.image_correlation_id = image_correlation_id;
                self.shared.on_new_leader(Leader {
                    event: self.leaders,
                    leadership_term_id: *leadership_term_id,
                    member_id: *leader_member_id,
                    ingress_endpoints: ingress_endpoints.to_string(),
                });
            }
            _ => {}
        }
        true
    }

    #[cold]
    fn closed(&self) -> ClusterError {
        let text = match self.shared.state() {
            ClusterState::Closed(cause) => cause.to_string(),
            _ => "the session is closed".to_owned(),
        };
        ClusterError::new(ClusterErrorKind::Closed, text)
    }
}

impl Drop for ClusterEgress {
    fn drop(&mut self) {
        self.events.shared.close(ClusterCloseCause::ClosedByApplication);
    }
}

rusteron_core::impl_debug!(ClusterEgress: subscription, events);
