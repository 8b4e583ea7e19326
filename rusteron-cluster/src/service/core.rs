//! The state machine of a container, without I/O.
//!
//! ```text
//! AwaitCounters → Recover (snapshot, on_start, acknowledgement 0) → Closed ⇄ Joining → Open log
//!                                                                       └── any state → end, with a cause
//! ```
//!
//! Each event of the protocol sends exactly one acknowledgement, because the consensus module ends the node for
//! any gap or repetition in their numbers. A failed start or snapshot is acknowledged with -1.
//!
//! Callbacks borrow the service, the state and the network, but not the log, so a handler that polls the log
//! can use the other three. Background work runs between callbacks, also while an acknowledgement or the
//! archive is awaited, and never within another callback as in Java: `&mut self` forbids it.
//!
//! The container ends with one cause. `on_terminate` runs at most once, and not after a panic that ended the
//! container. Publications and the log close first, then the client, by whose end the consensus module notices.

use std::fmt::Display;
use std::time::Instant;

use crate::codec::{self, Message};
use crate::ids::{ClusterSessionId, CorrelationId, LeadershipTermId, ServiceId};
use crate::service::ack_ledger::{Ack, AckLedger};
use crate::service::cluster::{Cluster, Lifecycle};
use crate::service::clustered_service::ClusteredService;
use crate::service::context::AppVersionValidator;
use crate::service::error::{ErrorPolicy, ServiceError, ServiceResult, TerminationCause, caught};
use crate::service::network::Network;
use crate::service::session::SessionInfo;
use crate::service::state::State;
use crate::service::types::{
    AppVersion, CloseReason, JoinLog, LeadershipTerm, MessageSource, Role, SessionMessage,
};

mod snapshot;
#[cfg(test)]
mod tests;

/// The settings of the state machine.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) service_id: ServiceId,
    pub(crate) app_version: AppVersion,
    pub(crate) app_version_validator: AppVersionValidator,
    pub(crate) is_responding: bool,
    pub(crate) error_policy: ErrorPolicy,
}

/// The state machine of a container: events in, calls of the service and acknowledgements out.
///
/// An error of a method ends the container.
pub(crate) struct Core<S> {
    service: S,
    state: State,
    ledger: AckLedger,
    settings: Settings,
    /// The service has started, and has not been told to end.
    is_active: bool,
    is_standby: bool,
    /// The log that follows the present log.
    next_log: Option<JoinLog>,
    /// The present log ends here.
    max_log_position: i64,
    termination: Option<codec::ServiceTerminationPosition>,
    requested_ack: Option<i64>,
}

impl<S: ClusteredService> Core<S> {
    pub(crate) fn new(service: S, settings: Settings) -> Self {
        Self {
            service,
            state: State::new(settings.service_id),
            ledger: AckLedger::new(settings.service_id),
            settings,
            is_active: false,
            is_standby: false,
            next_log: None,
            max_log_position: i64::MAX,
            termination: None,
            requested_ack: None,
        }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Marks sessions that the service has asked to close. Snapshots leave the requests out.
    pub(crate) fn set_closing(&mut self, session_ids: &[ClusterSessionId]) {
        for id in session_ids {
            if let Some(session) = self.state.sessions.get_mut(id) {
                session.set_closing(true);
            }
        }
    }

    /// Returns whether the present log has been read to its end.
    pub(crate) fn is_log_done(&self, position: i64) -> bool {
        position >= self.max_log_position
    }

    /// Takes the request to join a log. The present log has been closed.
    pub(crate) fn take_next_log(&mut self) -> Option<JoinLog> {
        self.next_log.take()
    }

    /// Handles a message of the consensus module.
    pub(crate) fn on_control_message(
        &mut self,
        network: &mut dyn Network,
        message: &[u8],
    ) -> Result<(), TerminationCause> {
        let decoded = codec::parse(message).and_then(|(message, _)| match message {
            Message::JoinLog(join) => {
                let join = JoinLog::new(&join)?;
                self.max_log_position = join.log_position;
                self.next_log = Some(join);
                Ok(())
            }
            Message::ServiceTerminationPosition(end) => {
                self.termination = Some(end);
                Ok(())
            }
            Message::RequestServiceAck(request) => {
                self.requested_ack = Some(request.log_position);
                Ok(())
            }
            // Answers to tools arrive on the same stream.
            _ => Ok(()),
        });
        decoded.or_else(|error| self.on_malformed(network, "of the consensus module", &error))
    }

    /// Ends the service, or acknowledges, if the position for that was reached.
    pub(crate) fn check_positions(
        &mut self,
        network: &mut dyn Network,
    ) -> Result<(), TerminationCause> {
        let log_position = self.state.log_position;
        if let Some(end) = self.termination.filter(|end| log_position >= end.log_position) {
            let is_expected = log_position == end.log_position;
            if !is_expected {
                network.record_error(&format_args!(
                    "at position {log_position}, behind the termination at {}",
                    end.log_position
                ));
            }
            self.terminate(network);
            // Senders before version 17 have no such field, and wait for the acknowledgement.
            if end.ack_required != 0 {
                self.acknowledge(network, Ack::Terminated)?;
            }
            return Err(TerminationCause::ConsensusModuleTerminated { log_position, is_expected });
        }
        if let Some(requested) = self.requested_ack.filter(|&requested| log_position >= requested) {
            if log_position > requested {
                network.record_error(&format_args!(
                    "at position {log_position}, behind the requested acknowledgement at {requested}"
                ));
            }
            self.requested_ack = None;
            self.acknowledge(network, Ack::Requested)?;
        }
        Ok(())
    }

    /// Called before the log is added.
    pub(crate) fn on_joining(&mut self, join: &JoinLog) {
        if join.role != Role::Leader {
            self.disconnect_sessions();
        }
        self.is_standby = join.is_standby;
    }

    /// Called when the log is there, with the position at which it begins.
    pub(crate) fn on_joined(
        &mut self,
        network: &mut dyn Network,
        join: &JoinLog,
        join_position: i64,
    ) -> Result<(), TerminationCause> {
        let position = self.state.log_position;
        if join_position != position || join.log_position != position {
            return Err(TerminationCause::Failed(format!(
                "the log is not contiguous: at position {position}, the log begins at \
                 {join_position}, and the consensus module expects {}",
                join.log_position
            )));
        }
        self.max_log_position = join.max_log_position;
        self.acknowledge(network, Ack::Joined)?;
        self.state.member_id = Some(join.member_id).filter(|id| id.get() >= 0);
        if join.role == Role::Leader {
            for session in self.state.sessions.values_mut() {
                if self.settings.is_responding && !join.is_startup {
                    session.connect(network);
                }
                session.set_closing(false);
            }
        }
        self.set_role(network, join.role)
    }

    /// Called when the log has been read to its end, or has gone. `position` is the last position
    /// that was read.
    pub(crate) fn on_log_closed(
        &mut self,
        network: &mut dyn Network,
        position: i64,
    ) -> Result<(), TerminationCause> {
        self.state.log_position = self.state.log_position.max(position);
        self.disconnect_sessions();
        self.set_role(network, Role::Follower)
    }

    fn disconnect_sessions(&mut self) {
        self.state.sessions.values_mut().for_each(SessionInfo::disconnect);
    }

    fn set_role(&mut self, network: &mut dyn Network, role: Role) -> Result<(), TerminationCause> {
        if self.state.role == role {
            return Ok(());
        }
        self.state.role = role;
        let Self { service, state, .. } = self;
        let outcome = caught(|| {
            service.on_role_change(&mut Lifecycle::new(state, network), role);
            Ok(())
        });
        self.background().after(network, "on_role_change", outcome)
    }

    /// Handles a message of the log. `position` is the position behind the message.
    pub(crate) fn on_log_message(
        &mut self,
        network: &mut dyn Network,
        position: i64,
        message: &[u8],
    ) -> Result<(), TerminationCause> {
        // Decoded apart from other events, because moving the enumeration of all messages costs more.
        let Some((header, payload)) = codec::parse_session_message(message) else {
            return self.on_event(network, position, message);
        };
        let timestamp = header.timestamp;
        self.advance(position, timestamp);
        let source = MessageSource::from_session_id(header.cluster_session_id);
        let message = SessionMessage { source, timestamp, payload };
        self.call(network, "on_session_message", |service, cluster| {
            service.on_session_message(cluster, &message)
        })
    }

    fn on_event(
        &mut self,
        network: &mut dyn Network,
        position: i64,
        message: &[u8],
    ) -> Result<(), TerminationCause> {
        let event = match codec::parse(message) {
            Ok((event, _)) => event,
            Err(error) => return self.on_malformed(network, "of the log", &error),
        };
        match event {
            Message::TimerEvent(timer) => {
                self.advance(position, timer.timestamp);
                self.call(network, "on_timer_event", |service, cluster| {
                    service.on_timer_event(
                        cluster,
                        CorrelationId::new(timer.correlation_id),
                        timer.timestamp,
                    )
                })
            }
            Message::SessionOpenEvent(event) => self.on_session_open(network, position, &event),
            Message::SessionCloseEvent(event) => self.on_session_close(network, position, &event),
            Message::ClusterActionRequest(request) => {
                self.advance(request.log_position, request.timestamp);
                if !wants_snapshot(&request, self.is_standby) {
                    return Ok(());
                }
                let term = LeadershipTermId::from_number(request.leadership_term_id);
                self.take_snapshot(network, term)
            }
            Message::NewLeadershipTermEvent(event) => {
                let term = LeadershipTerm::new(&event);
                self.check_app_version(term.app_version, false)?;
                self.advance(term.log_position, term.timestamp);
                self.state.leadership_term_id = Some(term.leadership_term_id);
                self.state.time_unit = term.time_unit;
                self.call(network, "on_new_leadership_term", |service, cluster| {
                    service.on_new_leadership_term(cluster, &term)
                })
            }
            _ => Ok(()),
        }
    }

    fn advance(&mut self, log_position: i64, timestamp: i64) {
        self.state.log_position = log_position;
        self.state.time = timestamp;
    }

    fn on_session_open(
        &mut self,
        network: &mut dyn Network,
        position: i64,
        event: &codec::SessionOpenEvent<'_>,
    ) -> Result<(), TerminationCause> {
        self.advance(position, event.timestamp);
        let id = ClusterSessionId::new(event.cluster_session_id);
        if self.state.sessions.contains_key(&id) {
            return Err(TerminationCause::Failed(format!(
                "session {id} is opened twice, at position {position}"
            )));
        }
        let mut session = SessionInfo::new(
            id,
            event.response_stream_id,
            event.response_channel,
            event.encoded_principal,
        );
        if self.state.role == Role::Leader && self.settings.is_responding {
            session.connect(network);
        }
        self.state.sessions.insert(id, session);
        self.call(network, "on_session_open", |service, cluster| {
            service.on_session_open(cluster, id, event.timestamp)
        })
    }

    fn on_session_close(
        &mut self,
        network: &mut dyn Network,
        position: i64,
        event: &codec::SessionCloseEvent,
    ) -> Result<(), TerminationCause> {
        self.advance(position, event.timestamp);
        let id = ClusterSessionId::new(event.cluster_session_id);
        let Some(mut session) = self.state.sessions.remove(&id) else {
            network.record_error(&format_args!(
                "unknown session {id} is closed, at position {position}"
            ));
            return Ok(());
        };
        session.disconnect();
        let reason = CloseReason::from_code(event.close_reason);
        self.call(network, "on_session_close", |service, cluster| {
            service.on_session_close(cluster, &session, event.timestamp, reason)
        })
    }

    /// Calls the service with the cluster.
    #[inline]
    fn call(
        &mut self,
        network: &mut dyn Network,
        callback: &'static str,
        call: impl FnOnce(&mut S, &mut Cluster<'_>) -> ServiceResult,
    ) -> Result<(), TerminationCause> {
        let Self { service, state, .. } = self;
        let outcome = caught(|| call(service, &mut Cluster::new(state, network)));
        self.background().after(network, callback, outcome)
    }

    fn on_malformed(
        &self,
        network: &mut dyn Network,
        origin: &str,
        error: &dyn Display,
    ) -> Result<(), TerminationCause> {
        let position = self.state.log_position;
        let text = format!("message {origin} behind position {position}: {error}");
        network.record_error(&text);
        match self.settings.error_policy {
            ErrorPolicy::Terminate => Err(TerminationCause::Failed(text)),
            ErrorPolicy::RecordAndContinue => Ok(()),
        }
    }

    fn check_app_version(
        &self,
        found: AppVersion,
        is_snapshot: bool,
    ) -> Result<(), TerminationCause> {
        let own = self.settings.app_version;
        let mut is_compatible = false;
        let validated = caught(|| {
            is_compatible = (self.settings.app_version_validator)(own, found);
            Ok(())
        });
        match validated {
            Ok(_) if is_compatible => Ok(()),
            Ok(_) => Err(TerminationCause::IncompatibleVersion { own, found, is_snapshot }),
            Err(panic) => Err(TerminationCause::Failed(format!("app_version_validator: {panic}"))),
        }
    }

    /// Tells the service that it ends, once.
    pub(crate) fn terminate(&mut self, network: &mut dyn Network) {
        if !std::mem::take(&mut self.is_active) {
            return;
        }
        let Self { service, state, .. } = self;
        let outcome = caught(|| {
            service.on_terminate(&mut Lifecycle::new(state, network));
            Ok(())
        });
        if let Err(panic) = outcome {
            network.record_error(&format_args!("on_terminate failed: {panic}"));
        }
        self.state.end = None;
    }

    /// Closes the publications to clients.
    pub(crate) fn close(&mut self) {
        self.disconnect_sessions();
    }
}

/// Returns whether an action asks a member for a snapshot. Services take no other actions.
pub(crate) fn wants_snapshot(request: &codec::ClusterActionRequest, is_standby: bool) -> bool {
    const SNAPSHOT: i32 = 2;
    const STANDBY: i32 = 1;
    // Senders before version 11 have no flags.
    let is_for_all = matches!(request.flags, 0 | i32::MIN);
    request.action == SNAPSHOT && (is_for_all || is_standby && request.flags & STANDBY != 0)
}

/// The part of a container that calls the service. It does background work also while the rest waits
/// for an acknowledgement or for the archive.
pub(super) struct Background<'a, S> {
    pub(super) service: &'a mut S,
    pub(super) state: &'a mut State,
    pub(super) is_active: &'a mut bool,
    pub(super) error_policy: ErrorPolicy,
}

impl<S: ClusteredService> Background<'_, S> {
    pub(super) fn work(
        &mut self,
        network: &mut dyn Network,
        now: Instant,
    ) -> Result<usize, TerminationCause> {
        if !*self.is_active {
            return Ok(0);
        }
        let Self { service, state, .. } = self;
        let mut work_count = 0;
        let outcome = caught(|| {
            work_count = service.do_background_work(&mut Lifecycle::new(state, network), now);
            Ok(())
        });
        self.after(network, "do_background_work", outcome)?;
        Ok(work_count)
    }

    #[inline]
    fn after(
        &mut self,
        network: &mut dyn Network,
        callback: &'static str,
        outcome: Result<ServiceResult, String>,
    ) -> Result<(), TerminationCause> {
        match (outcome, &self.state.end) {
            (Ok(Ok(())), None) => Ok(()),
            (outcome, _) => self.on_failure(network, callback, outcome),
        }
    }

    /// Records the failure of a callback, and ends the container if the policy says so.
    #[cold]
    fn on_failure(
        &mut self,
        network: &mut dyn Network,
        callback: &'static str,
        outcome: Result<ServiceResult, String>,
    ) -> Result<(), TerminationCause> {
        if let Some(cause) = self.state.end.take() {
            return Err(cause);
        }
        let is_panic = outcome.is_err();
        let error = match outcome {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(ServiceError::Terminate)) => return Err(TerminationCause::ServiceTerminated),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic,
        };
        let position = self.state.log_position;
        network.record_error(&format_args!("{callback} failed at position {position}: {error}"));
        match self.error_policy {
            ErrorPolicy::Terminate => {
                // After a panic, the service is in the middle of a change.
                *self.is_active &= !is_panic;
                Err(TerminationCause::ServiceFailed { callback, error })
            }
            ErrorPolicy::RecordAndContinue => Ok(()),
        }
    }
}

impl<S: ClusteredService> Core<S> {
    pub(super) fn background(&mut self) -> Background<'_, S> {
        self.split().0
    }

    fn split(&mut self) -> (Background<'_, S>, &mut AckLedger) {
        let Self { service, state, is_active, settings, ledger, .. } = self;
        (Background { service, state, is_active, error_policy: settings.error_policy }, ledger)
    }

    /// Lets the service do its background work.
    pub(crate) fn do_background_work(
        &mut self,
        network: &mut dyn Network,
        now: Instant,
    ) -> Result<usize, TerminationCause> {
        self.background().work(network, now)
    }

    /// Acknowledges at the present position. The service does its background work meanwhile.
    pub(super) fn acknowledge(
        &mut self,
        network: &mut dyn Network,
        ack: Ack,
    ) -> Result<(), TerminationCause> {
        let (log_position, time) = (self.state.log_position, self.state.time);
        let (mut background, ledger) = self.split();
        ledger.send(network, ack, log_position, time, &mut |network| {
            background.work(network, Instant::now()).map(drop)
        })
    }
}
