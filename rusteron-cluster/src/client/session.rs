//! The states of an open session, without I/O.

use std::fmt;
use std::time::{Duration, Instant};

use rusteron_client::{CloseCause, OfferError, SessionEnd};

/// The state of a session.
///
/// Corresponds to `io.aeron.cluster.client.AeronCluster.State`.
#[doc(alias = "AeronCluster.State")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClusterState {
    /// The session is connected to the leader.
    Connected,
    /// The connection to the leader was lost. The session waits for an event from a new leader, at
    /// most for the [new leader timeout](crate::ClusterContext::set_new_leader_timeout). Offers
    /// return [`OfferError::NotConnected`].
    AwaitNewLeader,
    /// A new leader has announced itself. The session is connected again once the leader accepts
    /// an offer, a claim or a keep-alive. That has to happen within the
    /// [message timeout](crate::ClusterContext::set_message_timeout).
    AwaitNewLeaderConnection,
    /// The session is closed for good. Connect anew.
    Closed(ClusterCloseCause),
}

impl ClusterState {
    /// Returns whether the session uses the ingress publication.
    pub(crate) fn uses_ingress(self) -> bool {
        matches!(self, Self::Connected | Self::AwaitNewLeaderConnection)
    }
}

/// The cause of a session's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClusterCloseCause {
    /// The cluster has closed the session: a service did, or the session has timed out.
    /// [`Egress::SessionEvent`](crate::Egress) has the reason.
    ClosedByCluster,
    /// No new leader announced itself within the new leader timeout.
    NoNewLeader,
    /// The new leader accepted no message within the message timeout.
    NoConnectionToNewLeader,
    /// The ingress publication has reached its maximum position.
    MaxPositionExceeded,
    /// A publication to the new leader could not be added. The log has the reason.
    NewLeaderIngressFailed,
    /// The application has closed or dropped one [half](crate::ClusterClient::split) of the session.
    ClosedByApplication,
    /// The Aeron client was closed by a fatal error, such as the death of the media driver.
    ClientClosed(
        /// The reason why the client is closed.
        rusteron_client::CloseCause,
    ),
}

impl ClusterCloseCause {
    /// Returns the error of offers on a session that has ended for this cause.
    pub(crate) fn offer_error(self) -> OfferError {
        let end = match self {
            Self::ClosedByCluster => SessionEnd::ClosedByCluster,
            Self::NoNewLeader => SessionEnd::NoNewLeader,
            Self::NoConnectionToNewLeader => SessionEnd::NoConnectionToNewLeader,
            Self::NewLeaderIngressFailed => SessionEnd::NewLeaderIngressFailed,
            Self::ClosedByApplication => SessionEnd::ClosedByApplication,
            Self::MaxPositionExceeded => return OfferError::MaxPositionExceeded,
            Self::ClientClosed(cause) => return OfferError::Closed(cause),
        };
        OfferError::Closed(CloseCause::ClusterSession(end))
    }
}

impl fmt::Display for ClusterCloseCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offer_error() {
            OfferError::Closed(cause @ CloseCause::ClusterSession(_)) => cause.fmt(f),
            OfferError::Closed(cause) => write!(f, "the Aeron client is closed: {cause}"),
            _ => f.write_str("the ingress has reached its maximum position"),
        }
    }
}

/// The state of a session, its deadline and its timeouts.
#[derive(Debug)]
pub(crate) struct Session {
    state: ClusterState,
    /// The end of the current state, if the session waits for a new leader.
    deadline: Instant,
    message_timeout: Duration,
    new_leader_timeout: Duration,
}

impl Session {
    pub(crate) fn new(
        now: Instant,
        message_timeout: Duration,
        new_leader_timeout: Duration,
    ) -> Self {
        let state = ClusterState::Connected;
        Self { state, deadline: now, message_timeout, new_leader_timeout }
    }

    #[inline]
    pub(crate) fn state(&self) -> ClusterState {
        self.state
    }

    #[inline]
    pub(crate) fn is_connected(&self) -> bool {
        self.state == ClusterState::Connected
    }

    pub(crate) fn close_cause(&self) -> Option<ClusterCloseCause> {
        match self.state {
            ClusterState::Closed(cause) => Some(cause),
            _ => None,
        }
    }

    /// The leader has accepted an offer, a claim or a keep-alive.
    #[inline]
    pub(crate) fn on_accepted(&mut self) {
        if self.state == ClusterState::AwaitNewLeaderConnection {
            self.state = ClusterState::Connected;
        }
    }

    /// The ingress publication has rejected a message.
    #[cold]
    pub(crate) fn on_rejected(
        &mut self,
        error: OfferError,
        client_close_cause: Option<rusteron_client::CloseCause>,
        now: impl FnOnce() -> Instant,
    ) {
        if let Some(cause) = client_close_cause {
            return self.close(ClusterCloseCause::ClientClosed(cause));
        }
        match error {
            OfferError::MaxPositionExceeded => self.close(ClusterCloseCause::MaxPositionExceeded),
            // While a new leader's publication connects, rejections are expected.
            OfferError::NotConnected | OfferError::Closed(_) if self.is_connected() => {
                self.await_new_leader(now());
            }
            _ => {}
        }
    }

    /// The image of the leader's egress has gone.
    pub(crate) fn on_egress_lost(&mut self, now: Instant) {
        if self.state.uses_ingress() {
            self.await_new_leader(now);
        }
    }

    /// A leader has announced itself to the session.
    pub(crate) fn on_new_leader(&mut self, now: Instant) {
        if self.close_cause().is_none() {
            self.state = ClusterState::AwaitNewLeaderConnection;
            self.deadline = now + self.message_timeout;
        }
    }

    /// Closes the session; the first cause counts.
    pub(crate) fn close(&mut self, cause: ClusterCloseCause) {
        if self.close_cause().is_none() {
            self.state = ClusterState::Closed(cause);
        }
    }

    /// Closes the session if its deadline has passed. Returns whether that happened.
    pub(crate) fn check_deadline(&mut self, now: Instant) -> bool {
        let cause = match self.state {
            ClusterState::AwaitNewLeader => ClusterCloseCause::NoNewLeader,
            ClusterState::AwaitNewLeaderConnection => ClusterCloseCause::NoConnectionToNewLeader,
            ClusterState::Connected | ClusterState::Closed(_) => return false,
        };
        if now < self.deadline {
            return false;
        }
        self.close(cause);
        true
    }

    fn await_new_leader(&mut self, now: Instant) {
        self.state = ClusterState::AwaitNewLeader;
        self.deadline = now + self.new_leader_timeout;
    }
}

#[cfg(test)]
mod tests {
    use rusteron_client::CloseCause as ClientCause;

    use super::*;

    const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
    const NEW_LEADER_TIMEOUT: Duration = Duration::from_secs(20);
    const TICK: Duration = Duration::from_nanos(1);

    /// A session with a clock that the test moves.
    struct Scripted {
        session: Session,
        now: Instant,
    }

    impl Scripted {
        fn new() -> Self {
            let now = Instant::now();
            Self { session: Session::new(now, MESSAGE_TIMEOUT, NEW_LEADER_TIMEOUT), now }
        }

        fn reject(&mut self, error: OfferError) -> ClusterState {
            let now = self.now;
            self.session.on_rejected(error, None, || now);
            self.session.state()
        }

        fn after(&mut self, time: Duration) -> ClusterState {
            self.now += time;
            self.session.check_deadline(self.now);
            self.session.state()
        }

        fn lost() -> Self {
            let mut scripted = Self::new();
            assert_eq!(scripted.reject(OfferError::NotConnected), ClusterState::AwaitNewLeader);
            scripted
        }

        fn with_new_leader() -> Self {
            let mut scripted = Self::lost();
            scripted.session.on_new_leader(scripted.now);
            assert_eq!(scripted.session.state(), ClusterState::AwaitNewLeaderConnection);
            scripted
        }
    }

    #[test]
    fn offers_name_end_of_session() {
        use ClusterCloseCause as Cause;
        let advice = "; connect to the cluster anew";
        for (cause, expected) in [
            (Cause::ClosedByCluster, format!("the cluster has closed the session{advice}")),
            (Cause::NoNewLeader, format!("no new leader announced itself in time{advice}")),
            (
                Cause::NoConnectionToNewLeader,
                format!("the new leader accepted no message in time{advice}"),
            ),
            (
                Cause::NewLeaderIngressFailed,
                format!("no publication to the new leader could be added{advice}"),
            ),
            (Cause::ClosedByApplication, format!("the application has closed the session{advice}")),
            (
                Cause::ClientClosed(ClientCause::DriverShutdown),
                "the media driver was shut down; make a new client, as Reconnect does".to_owned(),
            ),
        ] {
            let text = cause.offer_error().to_string();
            assert_eq!(text, format!("the publication is closed: {expected}"));
        }
        assert_eq!(Cause::MaxPositionExceeded.offer_error(), OfferError::MaxPositionExceeded);
        let closed = Cause::ClientClosed(ClientCause::DriverShutdown);
        assert_eq!(
            closed.to_string(),
            "the Aeron client is closed: the media driver was shut down"
        );
    }

    #[test]
    fn connected_session_has_no_deadline() {
        assert_eq!(Scripted::new().after(10 * NEW_LEADER_TIMEOUT), ClusterState::Connected);
    }

    #[test]
    fn retryable_rejections_keep_state() {
        let mut scripted = Scripted::new();
        let too_long = OfferError::MessageTooLong { length: 9, max_message_length: 8 };
        for error in
            [OfferError::BackPressured, OfferError::AdminAction, OfferError::Unblocked, too_long]
        {
            assert_eq!(scripted.reject(error), ClusterState::Connected);
        }
    }

    #[test]
    fn lost_ingress_waits_for_new_leader() {
        for error in [OfferError::NotConnected, OfferError::Closed(ClientCause::Handle)] {
            let mut scripted = Scripted::new();
            assert_eq!(scripted.reject(error), ClusterState::AwaitNewLeader);
            assert_eq!(scripted.after(NEW_LEADER_TIMEOUT - TICK), ClusterState::AwaitNewLeader);
            let closed = ClusterState::Closed(ClusterCloseCause::NoNewLeader);
            assert_eq!(scripted.after(TICK), closed);
        }
    }

    #[test]
    fn second_loss_does_not_move_deadline() {
        let mut scripted = Scripted::lost();
        scripted.after(NEW_LEADER_TIMEOUT - TICK);
        scripted.reject(OfferError::NotConnected);
        scripted.session.on_egress_lost(scripted.now);
        assert_eq!(scripted.after(TICK), ClusterState::Closed(ClusterCloseCause::NoNewLeader));
    }

    #[test]
    fn new_leader_has_to_accept_a_message() {
        let mut scripted = Scripted::with_new_leader();
        assert_eq!(
            scripted.reject(OfferError::NotConnected),
            ClusterState::AwaitNewLeaderConnection
        );
        let waiting = scripted.after(MESSAGE_TIMEOUT - TICK);
        assert_eq!(waiting, ClusterState::AwaitNewLeaderConnection);
        let closed = ClusterState::Closed(ClusterCloseCause::NoConnectionToNewLeader);
        assert_eq!(scripted.after(TICK), closed);
    }

    #[test]
    fn accepted_message_connects() {
        let mut scripted = Scripted::with_new_leader();
        scripted.session.on_accepted();
        assert_eq!(scripted.after(10 * NEW_LEADER_TIMEOUT), ClusterState::Connected);
    }

    #[test]
    fn late_accept_does_not_revive() {
        let mut scripted = Scripted::lost();
        scripted.session.on_accepted();
        assert_eq!(scripted.session.state(), ClusterState::AwaitNewLeader);
        scripted.after(NEW_LEADER_TIMEOUT);
        scripted.session.on_accepted();
        scripted.session.on_new_leader(scripted.now);
        let closed = ClusterState::Closed(ClusterCloseCause::NoNewLeader);
        assert_eq!(scripted.session.state(), closed);
    }

    #[test]
    fn lost_egress_waits_for_new_leader() {
        for mut scripted in [Scripted::new(), Scripted::with_new_leader()] {
            scripted.session.on_egress_lost(scripted.now);
            assert_eq!(scripted.session.state(), ClusterState::AwaitNewLeader);
            assert_eq!(scripted.after(NEW_LEADER_TIMEOUT - TICK), ClusterState::AwaitNewLeader);
        }
    }

    #[test]
    fn next_leader_gets_a_new_deadline() {
        let mut scripted = Scripted::with_new_leader();
        scripted.after(MESSAGE_TIMEOUT - TICK);
        scripted.session.on_new_leader(scripted.now);
        let waiting = scripted.after(MESSAGE_TIMEOUT - TICK);
        assert_eq!(waiting, ClusterState::AwaitNewLeaderConnection);
    }

    #[test]
    fn maximum_position_closes() {
        for mut scripted in [Scripted::new(), Scripted::with_new_leader()] {
            let closed = ClusterState::Closed(ClusterCloseCause::MaxPositionExceeded);
            assert_eq!(scripted.reject(OfferError::MaxPositionExceeded), closed);
        }
    }

    #[test]
    fn closed_client_closes() {
        let mut scripted = Scripted::new();
        let now = scripted.now;
        let cause = ClientCause::DriverShutdown;
        scripted.session.on_rejected(OfferError::Closed(cause), Some(cause), || now);
        let closed = ClusterState::Closed(ClusterCloseCause::ClientClosed(cause));
        assert_eq!(scripted.session.state(), closed);
        scripted.session.close(ClusterCloseCause::ClosedByCluster);
        assert_eq!(scripted.session.state(), closed);
    }
}
