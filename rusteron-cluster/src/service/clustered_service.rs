//! The trait of replicated services.

use std::time::Instant;

use crate::ids::{ClusterSessionId, CorrelationId};
use crate::service::cluster::{Cluster, Lifecycle};
use crate::service::error::ServiceResult;
use crate::service::session::SessionInfo;
use crate::service::snapshot_reader::SnapshotReader;
use crate::service::snapshot_writer::SnapshotWriter;
use crate::service::types::{CloseReason, LeadershipTerm, Role, SessionMessage};

/// A replicated state machine. Every member of the cluster calls it with the same events in the
/// same order.
///
/// The state must depend on nothing but the events and the snapshot; see the crate's chapter on
/// [determinism](crate#determinism). A container calls the service from one thread.
///
/// Callbacks for events of the log get a [`Cluster`], which can send. The others get a
/// [`Lifecycle`], which cannot; so does background work:
///
/// ```compile_fail,E0053
/// use std::time::Instant;
///
/// use rusteron_cluster::*;
///
/// struct Service;
///
/// impl ClusteredService for Service {
/// #   fn on_start(&mut self, _: &mut Lifecycle<'_>, _: Option<&mut SnapshotReader<'_>>) -> ServiceResult { Ok(()) }
/// #   fn on_session_message(&mut self, _: &mut Cluster<'_>, _: &SessionMessage<'_>) -> ServiceResult { Ok(()) }
/// #   fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult { Ok(()) }
///     fn do_background_work(&mut self, cluster: &mut Cluster<'_>, now: Instant) -> usize {
///         0
///     }
/// }
/// ```
///
/// # Errors
/// An error or a panic in a callback ends the container, unless the
/// [error policy](crate::ErrorPolicy) says otherwise. The service is dropped with the container.
///
/// # Example
/// ```
/// use std::io::{Read, Write};
///
/// use rusteron_cluster::{
///     Cluster, ClusteredService, Lifecycle, ServiceResult, SessionMessage, SnapshotReader,
///     SnapshotWriter,
/// };
///
/// /// Counts messages.
/// #[derive(Default)]
/// struct Counter {
///     count: u64,
/// }
///
/// impl ClusteredService for Counter {
///     fn on_start(
///         &mut self,
///         _: &mut Lifecycle<'_>,
///         snapshot: Option<&mut SnapshotReader<'_>>,
///     ) -> ServiceResult {
///         if let Some(snapshot) = snapshot {
///             let mut count = [0; 8];
///             snapshot.read_exact(&mut count)?;
///             self.count = u64::from_le_bytes(count);
///         }
///         Ok(())
///     }
///
///     fn on_session_message(
///         &mut self,
///         _: &mut Cluster<'_>,
///         _: &SessionMessage<'_>,
///     ) -> ServiceResult {
///         self.count += 1;
///         Ok(())
///     }
///
///     fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
///         snapshot.write_all(&self.count.to_le_bytes())?;
///         Ok(())
///     }
/// }
/// ```
///
/// Corresponds to `io.aeron.cluster.service.ClusteredService`.
pub trait ClusteredService: Send {
    /// Called once, before all other callbacks: with the snapshot from which the node recovers, or
    /// with `None` if there is no snapshot yet. The log behind the snapshot follows as events.
    ///
    /// # Errors
    /// Any error or panic ends the container and the node's consensus module.
    #[doc(alias = "onStart")]
    fn on_start(
        &mut self,
        cluster: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult;

    /// Called when a session has been opened. [`Cluster::session`] returns the session.
    ///
    /// # Errors
    /// Left to the [error policy](crate::ErrorPolicy), as for all callbacks below.
    #[doc(alias = "onSessionOpen")]
    fn on_session_open(
        &mut self,
        _cluster: &mut Cluster<'_>,
        _session_id: ClusterSessionId,
        _timestamp: i64,
    ) -> ServiceResult {
        Ok(())
    }

    /// Called when a session has been closed. [`Cluster::session`] does not know the session any
    /// longer.
    ///
    /// # Errors
    /// Left to the [error policy](crate::ErrorPolicy).
    #[doc(alias = "onSessionClose")]
    fn on_session_close(
        &mut self,
        _cluster: &mut Cluster<'_>,
        _session: &SessionInfo,
        _timestamp: i64,
        _reason: CloseReason,
    ) -> ServiceResult {
        Ok(())
    }

    /// Called with each message of a client or of a service.
    ///
    /// # Errors
    /// Left to the [error policy](crate::ErrorPolicy).
    #[doc(alias = "onSessionMessage")]
    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult;

    /// Called when a timer has fired, of this or of another service of the cluster.
    ///
    /// # Errors
    /// Left to the [error policy](crate::ErrorPolicy).
    #[doc(alias = "onTimerEvent")]
    fn on_timer_event(
        &mut self,
        _cluster: &mut Cluster<'_>,
        _correlation_id: CorrelationId,
        _timestamp: i64,
    ) -> ServiceResult {
        Ok(())
    }

    /// Called to write the state into a snapshot, at the same position of the log on all members.
    ///
    /// # Errors
    /// There is no snapshot of this member then. The error or panic is recorded, and the service
    /// goes on, whatever its [error policy](crate::ErrorPolicy) is.
    /// [`ServiceError::Terminate`](crate::ServiceError::Terminate) ends the container.
    #[doc(alias = "onTakeSnapshot")]
    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult;

    /// Called when a new term of a leader has begun, also of the same leader.
    ///
    /// # Errors
    /// Left to the [error policy](crate::ErrorPolicy).
    #[doc(alias = "onNewLeadershipTermEvent")]
    fn on_new_leadership_term(
        &mut self,
        _cluster: &mut Cluster<'_>,
        _term: &LeadershipTerm,
    ) -> ServiceResult {
        Ok(())
    }

    /// Called when the role of the node has changed. This is no event of the log: members get it
    /// at other positions or not at all, so it must not change the replicated state.
    #[doc(alias = "onRoleChange")]
    fn on_role_change(&mut self, _cluster: &mut Lifecycle<'_>, _role: Role) {}

    /// Called between messages, in each duty cycle of a service that has started, and while the
    /// container waits for the consensus module or the archive. A callback that waits holds the
    /// service, so that background work waits for the callback's end. Returns the amount of work:
    /// with 0, the container idles. `now` is the time of the call, on this machine's clock.
    ///
    /// Must neither block nor change the replicated state. [`Lifecycle::aeron`] has the client.
    #[doc(alias = "doBackgroundWork")]
    fn do_background_work(&mut self, _cluster: &mut Lifecycle<'_>, _now: Instant) -> usize {
        0
    }

    /// Called at most once, as the last callback, when the container ends. Not called after a panic
    /// that has ended the container.
    #[doc(alias = "onTerminate")]
    fn on_terminate(&mut self, _cluster: &mut Lifecycle<'_>) {}
}
