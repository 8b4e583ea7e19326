//! The state that both halves of a session share.
//!
//! Offers and polls compare one version, which changes with the state, under the lock, and contains the state's
//! code. So an offer in the state `Connected` costs one load and one branch. An ingress whose version is old
//! reads the state, closes the old leader's publication and adds the next one itself: each publication belongs
//! to one thread and is never handed over.
//!
//! - Outcomes name the leader's event, not its term, because a leader can announce itself twice. So a rejection
//!   by the old leader's publication does not end the session with its successor, and an old acceptance does
//!   not connect it.
//! - A message has the term that the ingress reports after the offer, because the ingress takes a leader over
//!   only within its own calls.
//! - Dropping a half closes the session. Only the ingress can tell the cluster, so after a dropped egress its
//!   next call does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rusteron_client::OfferError;
use rusteron_core::ffi::Process;

use crate::client::session::{ClusterCloseCause, ClusterState, Session};
use crate::ids::{LeadershipTermId, MemberId};

/// A session's state and its leader.
///
/// Both halves change the state, under a lock. Each change has a version, which offers and polls
/// compare without the lock.
pub(crate) struct SharedSession {
    /// Changes are stored while the lock is held.
    version: AtomicU64,
    inner: Mutex<Inner>,
    process: Process,
}

struct Inner {
    session: Session,
    leader: Arc<Leader>,
}

/// A leader, as the session was told of it.
pub(crate) struct Leader {
    /// Number of the event that announced the leader. A leader can announce itself twice in a term.
    pub(crate) event: u64,
    pub(crate) leadership_term_id: LeadershipTermId,
    pub(crate) member_id: MemberId,
    pub(crate) ingress_endpoints: String,
}

impl Leader {
    /// The event of the leader that has opened the session.
    pub(crate) const FIRST_EVENT: u64 = 0;
}

/// One state of a session. States that follow each other have different versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    const STATE_BITS: u32 = 2;
    const CONNECTED: u64 = 0;
    const AWAIT_NEW_LEADER: u64 = 1;
    const AWAIT_NEW_LEADER_CONNECTION: u64 = 2;
    const CLOSED: u64 = 3;
    const FIRST: Self = Self(Self::CONNECTED);
    /// A version that no session reaches.
    const NEVER: Self = Self(u64::MAX);

    fn next(self, state: ClusterState) -> Self {
        let count = (self.0 >> Self::STATE_BITS).wrapping_add(1);
        let code = match state {
            ClusterState::Connected => Self::CONNECTED,
            ClusterState::AwaitNewLeader => Self::AWAIT_NEW_LEADER,
            ClusterState::AwaitNewLeaderConnection => Self::AWAIT_NEW_LEADER_CONNECTION,
            ClusterState::Closed(_) => Self::CLOSED,
        };
        Self((count << Self::STATE_BITS) | code)
    }

    #[inline]
    fn code(self) -> u64 {
        self.0 & ((1 << Self::STATE_BITS) - 1)
    }

    /// Returns the version if it is connected, and else one that equals no session's.
    pub(crate) fn if_connected(self) -> Self {
        if self.is_connected() { self } else { Self::NEVER }
    }

    #[inline]
    pub(crate) fn is_connected(self) -> bool {
        self.code() == Self::CONNECTED
    }

    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.code() == Self::CLOSED
    }
}

impl SharedSession {
    pub(crate) fn new(session: Session, leader: Leader) -> Self {
        let inner = Inner { session, leader: Arc::new(leader) };
        Self {
            version: AtomicU64::new(Version::FIRST.0),
            inner: Mutex::new(inner),
            process: Process::current(),
        }
    }

    /// Returns the current version. A different one says no more than that something has changed:
    /// the lock orders what is read then, so that this load need not.
    #[inline]
    pub(crate) fn version(&self) -> Version {
        Version(self.version.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn state(&self) -> ClusterState {
        match self.version().code() {
            _ if !self.process.is_current() => self.state_in_child(),
            Version::CONNECTED => ClusterState::Connected,
            Version::AWAIT_NEW_LEADER => ClusterState::AwaitNewLeader,
            Version::AWAIT_NEW_LEADER_CONNECTION => ClusterState::AwaitNewLeaderConnection,
            _ => self.lock().map_or_else(|| self.state_in_child(), |inner| inner.session.state()),
        }
    }

    /// Returns the state in a forked child, which has no session.
    #[cold]
    pub(crate) fn state_in_child(&self) -> ClusterState {
        ClusterState::Closed(ClusterCloseCause::ClientClosed(self.process.close_cause()))
    }

    /// Returns the state with its version, and the leader. `None` in a forked child.
    pub(crate) fn read(&self) -> Option<(Version, ClusterState, Arc<Leader>)> {
        let inner = self.lock()?;
        Some((self.version(), inner.session.state(), inner.leader.clone()))
    }

    /// The leader of an event has accepted a message.
    #[cold]
    pub(crate) fn on_accepted(&self, leader_event: u64) {
        self.change(|inner| {
            if inner.leader.event == leader_event {
                inner.session.on_accepted();
            }
        });
    }

    /// The publication to the leader of an event has rejected a message. A rejection by an old
    /// leader's publication does not affect the session with its successor, but the death of the
    /// client does.
    #[cold]
    pub(crate) fn on_rejected(
        &self,
        leader_event: u64,
        error: OfferError,
        client_close_cause: Option<rusteron_client::CloseCause>,
    ) {
        let is_loss = matches!(
            error,
            OfferError::NotConnected | OfferError::Closed(_) | OfferError::MaxPositionExceeded
        );
        // Back pressure takes no lock.
        if !is_loss && client_close_cause.is_none() {
            return;
        }
        self.change(|inner| {
            if inner.leader.event == leader_event || client_close_cause.is_some() {
                inner.session.on_rejected(error, client_close_cause, Instant::now);
            }
        });
    }

    /// The image of the leader's egress has gone.
    pub(crate) fn on_egress_lost(&self) {
        self.change(|inner| inner.session.on_egress_lost(Instant::now()));
    }

    /// A leader has announced itself to the session.
    pub(crate) fn on_new_leader(&self, leader: Leader) {
        let leader = Arc::new(leader);
        self.change(|inner| {
            inner.leader = leader;
            inner.session.on_new_leader(Instant::now());
        });
    }

    /// Closes the session; the first cause counts.
    pub(crate) fn close(&self, cause: ClusterCloseCause) {
        self.change(|inner| inner.session.close(cause));
    }

    /// Closes the session if its deadline has passed. Returns whether that happened.
    pub(crate) fn check_deadline(&self, now: Instant) -> bool {
        let mut is_over = false;
        self.change(|inner| is_over = inner.session.check_deadline(now));
        is_over
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let Some(mut inner) = self.lock() else { return };
        let before = (inner.session.state(), inner.leader.event);
        change(&mut inner);
        let state = inner.session.state();
        if before != (state, inner.leader.event) {
            self.version.store(self.version().next(state).0, Ordering::Relaxed);
        }
    }

    /// Changes are complete or did not begin when a holder panics. `None` in a forked child: a thread
    /// of the parent may have held the lock.
    fn lock(&self) -> Option<MutexGuard<'_, Inner>> {
        let is_ours = self.process.is_current();
        is_ours.then(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

rusteron_core::impl_debug!(SharedSession: state());

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rusteron_client::CloseCause as ClientCause;

    use super::*;

    fn leader(event: u64) -> Leader {
        Leader {
            event,
            leadership_term_id: LeadershipTermId::new(2),
            member_id: MemberId::new(1),
            ingress_endpoints: String::new(),
        }
    }

    fn session() -> SharedSession {
        let timeout = Duration::from_secs(5);
        SharedSession::new(Session::new(Instant::now(), timeout, timeout), leader(0))
    }

    #[test]
    fn versions_change_with_states() {
        let session = session();
        let first = session.version();
        session.on_accepted(0);
        session.on_rejected(0, OfferError::BackPressured, None);
        assert_eq!(session.version(), first);
        session.on_egress_lost();
        let lost = session.version();
        assert_ne!(lost, first);
        assert_eq!(session.state(), ClusterState::AwaitNewLeader);
        session.on_new_leader(leader(1));
        session.on_accepted(1);
        assert_eq!(session.state(), ClusterState::Connected);
        assert!(session.version().is_connected() && session.version() != first);
        session.close(ClusterCloseCause::ClosedByCluster);
        assert_eq!(session.state(), ClusterState::Closed(ClusterCloseCause::ClosedByCluster));
        assert!(session.version().is_closed());
    }

    #[cfg(unix)]
    #[test]
    fn forked_child_waits_for_no_lock() {
        let session = session();
        let held = session.lock();
        let pid = std::process::id();
        let child = rusteron_test_support::ForkedChild::run(|| {
            session.close(ClusterCloseCause::ClosedByApplication);
            assert!(session.read().is_none());
            let ClusterState::Closed(ClusterCloseCause::ClientClosed(cause)) = session.state()
            else {
                panic!("{session:?}");
            };
            assert_eq!(cause, ClientCause::Forked { pid });
        });
        let deadline = Instant::now() + rusteron_test_support::DEADLINE;
        child.expect("a child").await_success(deadline).expect("a child that succeeds");
        drop(held);
        assert_eq!(session.state(), ClusterState::Connected);
    }

    #[test]
    fn same_term_announced_again_is_a_change() {
        let session = session();
        session.on_new_leader(leader(1));
        let first = session.version();
        session.on_new_leader(leader(2));
        assert_ne!(session.version(), first);
    }

    #[test]
    fn outcome_of_old_leader_does_not_count() {
        let session = session();
        session.on_new_leader(leader(1));
        session.on_accepted(0);
        assert_eq!(session.state(), ClusterState::AwaitNewLeaderConnection);
        session.on_accepted(1);
        let handle = OfferError::Closed(ClientCause::Handle);
        for error in [OfferError::NotConnected, handle, OfferError::MaxPositionExceeded] {
            session.on_rejected(0, error, None);
            assert_eq!(session.state(), ClusterState::Connected);
        }
        let cause = ClientCause::DriverShutdown;
        session.on_rejected(0, OfferError::Closed(cause), Some(cause));
        assert_eq!(session.state(), ClusterState::Closed(ClusterCloseCause::ClientClosed(cause)));
    }
}
