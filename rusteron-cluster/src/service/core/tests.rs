//! The state machine, driven by scripts.

mod failures;
mod log;
mod offers;
mod recovery;
mod snapshots;

use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rusteron_client::{CloseCause, OfferError};

use super::*;
use crate::codec::{self, MessageHeader};
use crate::service::snapshot_reader::{SnapshotReader, SnapshotSource};
use crate::service::snapshot_writer::{SnapshotError, SnapshotWriter};
use crate::service::tests::Script;
use crate::service::types::{AppVersion, LeadershipTerm, Recovery};

type Log = Arc<Mutex<Vec<String>>>;

/// Logs its callbacks, and does what the messages say.
struct Recorder {
    log: Log,
    start: Option<&'static str>,
    state: Vec<u8>,
}

impl Recorder {
    fn add(&self, text: impl Into<String>) {
        self.log.lock().expect("no panic").push(text.into());
    }

    /// Panics in the callback that the test has named.
    fn enter(&self, callback: &str) {
        assert!(self.start != Some(callback), "on request");
    }

    /// Obeys a command.
    fn obey(&self, cluster: &mut Cluster<'_>, command: &[u8]) -> ServiceResult {
        match command {
            b"fail" => Err(ServiceError::failed("on request")),
            b"panic" => panic!("on request"),
            b"end" => Err(ServiceError::Terminate),
            b"timer" => cluster.schedule_timer(7.into(), 99),
            b"swallow" => {
                let _ = cluster.schedule_timer(7.into(), 99);
                Ok(())
            }
            b"cancel" => cluster.cancel_timer(7.into()),
            b"offer" => cluster.offer(b"to all").map(drop),
            b"answer" => {
                let mut sent = Vec::new();
                cluster.for_each_session(|session| {
                    sent.push((session.id(), session.offer(b"answer"), session.is_closing()));
                    Ok(())
                })?;
                self.add(format!("{sent:?}"));
                Ok(())
            }
            b"claim" => {
                let mut session = cluster.session(5.into()).expect("open");
                let max = session.max_claim_length();
                let claims = [0, max, max + 1, usize::MAX]
                    .map(|length| session.try_claim(length).map(|claim| claim.len()));
                self.add(format!("{claims:?}"));
                Ok(())
            }
            b"close" => {
                let closed = cluster.session(5.into()).expect("open").close()?;
                self.add(format!("closed {closed}"));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl ClusteredService for Recorder {
    fn on_start(
        &mut self,
        cluster: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        let ids: Vec<ClusterSessionId> = cluster.sessions().map(SessionInfo::id).collect();
        self.add(format!("start at {} {:?} {ids:?}", cluster.log_position(), cluster.time_unit()));
        if let Some(snapshot) = snapshot {
            snapshot.read_to_end(&mut self.state)?;
            self.add(format!("state {:?}", self.state));
        }
        match self.start {
            Some("fail") => Err(ServiceError::failed("on start")),
            Some("panic") => panic!("on start"),
            Some("idle") => cluster.idle(0),
            Some("end") => Err(ServiceError::Terminate),
            _ => Ok(()),
        }
    }

    fn on_session_open(
        &mut self,
        _: &mut Cluster<'_>,
        id: ClusterSessionId,
        timestamp: i64,
    ) -> ServiceResult {
        self.enter("on_session_open");
        self.add(format!("open {id} {timestamp}"));
        Ok(())
    }

    fn on_session_close(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: &SessionInfo,
        timestamp: i64,
        reason: CloseReason,
    ) -> ServiceResult {
        self.enter("on_session_close");
        assert!(cluster.session(session.id()).is_none());
        self.add(format!("close {} {timestamp} {reason:?}", session.id()));
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        self.enter("on_session_message");
        let text = String::from_utf8_lossy(message.payload);
        let (position, time) = (cluster.log_position(), cluster.time());
        assert_eq!(time, message.timestamp);
        self.add(format!("{position} {time} {:?} {text}", message.source));
        self.obey(cluster, message.payload)
    }

    fn on_timer_event(
        &mut self,
        cluster: &mut Cluster<'_>,
        id: CorrelationId,
        time: i64,
    ) -> ServiceResult {
        self.enter("on_timer_event");
        self.add(format!("timer {id} {time} at {}", cluster.log_position()));
        Ok(())
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        self.add("snapshot");
        // Not with `?`: the service may pass over a failure of the writer.
        let _ = snapshot.offer(&self.state);
        match self.start {
            Some("fail snapshot") => Err(ServiceError::failed("on snapshot")),
            Some("panic snapshot") => panic!("on snapshot"),
            Some("end snapshot") => Err(ServiceError::Terminate),
            _ => Ok(()),
        }
    }

    fn on_new_leadership_term(
        &mut self,
        cluster: &mut Cluster<'_>,
        term: &LeadershipTerm,
    ) -> ServiceResult {
        self.enter("on_new_leadership_term");
        self.add(format!("term {} at {}", term.leadership_term_id, cluster.log_position()));
        Ok(())
    }

    fn on_role_change(&mut self, _: &mut Lifecycle<'_>, role: Role) {
        self.enter("on_role_change");
        self.add(format!("role {role:?}"));
    }

    fn do_background_work(&mut self, cluster: &mut Lifecycle<'_>, _: Instant) -> usize {
        match self.start {
            Some("work") => self.add(format!("work as {:?} at {}", cluster.role(), cluster.time())),
            Some("panic at work") => panic!("at work"),
            _ => {}
        }
        1
    }

    fn on_terminate(&mut self, _: &mut Lifecycle<'_>) {
        self.enter("on_terminate");
        self.add("terminate");
    }
}

struct Harness {
    core: Core<Recorder>,
    network: Script,
    log: Log,
}

const VERSION: AppVersion = AppVersion::new(1, 2, 3);

impl Harness {
    fn with(start: Option<&'static str>, error_policy: ErrorPolicy) -> Self {
        let log = Log::default();
        let service = Recorder { log: Arc::clone(&log), start, state: vec![1, 2, 3] };
        let settings = Settings {
            service_id: ServiceId::new(3),
            app_version: VERSION,
            app_version_validator: Arc::new(AppVersion::is_compatible),
            is_responding: true,
            error_policy,
        };
        Self { core: Core::new(service, settings), network: Script::new(), log }
    }

    /// A container that has started at position 0.
    fn started() -> Self {
        Self::started_with(None, ErrorPolicy::Terminate)
    }

    fn started_with(start: Option<&'static str>, error_policy: ErrorPolicy) -> Self {
        let mut harness = Self::with(start, error_policy);
        harness.recover(Ok(None)).expect("started");
        harness.events();
        harness
    }

    fn recover(
        &mut self,
        snapshot: Result<Option<&mut dyn SnapshotSource>, SnapshotError>,
    ) -> Result<(), TerminationCause> {
        let recovery = Recovery {
            leadership_term_id: None,
            log_position: 0,
            timestamp: 10,
            snapshot_recording_id: None,
        };
        self.core.recover(&mut self.network, &recovery, snapshot)
    }

    /// The callbacks since the last call.
    fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().expect("no panic"))
    }

    /// Number, position and related id of all acknowledgements.
    fn acks(&self) -> Vec<(i64, i64, i64)> {
        let acks = self.network.acks();
        assert!(acks.iter().all(|ack| ack.service_id == 3));
        acks.iter().map(|ack| (ack.ack_id, ack.log_position, ack.relevant_id)).collect()
    }

    fn on_log(&mut self, position: i64, message: Vec<u8>) -> Result<(), TerminationCause> {
        self.core.on_log_message(&mut self.network, position, &message)
    }

    fn say(&mut self, position: i64, payload: &[u8]) -> Result<(), TerminationCause> {
        self.on_log(position, message(5, position, payload))
    }

    fn on_control(&mut self, message: Vec<u8>) -> Result<(), TerminationCause> {
        self.core.on_control_message(&mut self.network, &message)?;
        self.core.check_positions(&mut self.network)
    }

    fn join(&mut self, role: i32, position: i64) -> Result<(), TerminationCause> {
        self.on_control(join(role, position, 0))?;
        let join = self.core.take_next_log().expect("a log");
        self.core.on_joining(&join);
        self.core.on_joined(&mut self.network, &join, position)
    }
}

fn message(session_id: i64, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    let header = codec::SessionMessageHeader {
        leadership_term_id: 0,
        cluster_session_id: session_id,
        timestamp,
    };
    [header.to_vec(), payload.to_vec()].concat()
}

fn open(session_id: i64) -> Vec<u8> {
    open_as(session_id, b"principal")
}

fn open_as(session_id: i64, encoded_principal: &[u8]) -> Vec<u8> {
    codec::SessionOpenEvent {
        leadership_term_id: 0,
        correlation_id: 1,
        cluster_session_id: session_id,
        timestamp: 11,
        response_stream_id: 102,
        response_channel: b"aeron:udp?endpoint=client:1",
        encoded_principal,
    }
    .to_vec()
}

fn close(session_id: i64) -> Vec<u8> {
    codec::SessionCloseEvent {
        leadership_term_id: 0,
        cluster_session_id: session_id,
        timestamp: 12,
        close_reason: 2,
    }
    .to_vec()
}

fn timer(correlation_id: i64, timestamp: i64) -> Vec<u8> {
    codec::TimerEvent { leadership_term_id: 0, correlation_id, timestamp }.to_vec()
}

fn action(log_position: i64, action: i32, flags: i32) -> Vec<u8> {
    codec::ClusterActionRequest {
        leadership_term_id: 4,
        log_position,
        timestamp: 13,
        action,
        flags,
    }
    .to_vec()
}

fn term(leadership_term_id: i64, log_position: i64, app_version: AppVersion) -> Vec<u8> {
    codec::NewLeadershipTermEvent {
        leadership_term_id,
        log_position,
        timestamp: 14,
        term_base_log_position: 0,
        leader_member_id: 1,
        log_session_id: 2,
        time_unit: 1,
        app_version: app_version.code(),
    }
    .to_vec()
}

fn join(role: i32, log_position: i64, is_startup: i32) -> Vec<u8> {
    codec::JoinLog {
        log_position,
        max_log_position: 1 << 40,
        member_id: 2,
        log_session_id: 9,
        log_stream_id: 100,
        is_startup,
        role,
        is_standby: 0,
        log_channel: b"aeron:ipc",
    }
    .to_vec()
}
