//! The state machine, driven by scripts.

use std::collections::VecDeque;
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rusteron_client::{Action, CloseCause, OfferError};

use super::*;
use crate::codec::{self, MessageHeader};
use crate::service::error::NotSent;
use crate::service::snapshot_reader::{OnMessage, SnapshotReader, SnapshotSource};
use crate::service::snapshot_writer::{SnapshotError, SnapshotWriter};
use crate::service::tests::Script;
use crate::service::types::{AppVersion, ClusterTimeUnit, LeadershipTerm};

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

    /// Obeys a command.
    fn obey(&self, cluster: &mut Cluster<'_>, command: &[u8]) -> ServiceResult {
        match command {
            b"fail" => Err(ServiceError::failed("on request")),
            b"panic" => panic!("on request"),
            b"end" => Err(ServiceError::Terminate),
            b"timer" => cluster.schedule_timer(7, 99),
            b"swallow" => {
                let _ = cluster.schedule_timer(7, 99);
                Ok(())
            }
            b"cancel" => cluster.cancel_timer(7),
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
                let mut session = cluster.session(5).expect("open");
                let max = session.max_claim_length();
                let claims = [0, max, max + 1, usize::MAX]
                    .map(|length| session.try_claim(length).map(|claim| claim.len()));
                self.add(format!("{claims:?}"));
                Ok(())
            }
            b"close" => {
                let closed = cluster.session(5).expect("open").close()?;
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
        let ids: Vec<i64> = cluster.sessions().map(SessionInfo::id).collect();
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

    fn on_session_open(&mut self, _: &mut Cluster<'_>, id: i64, timestamp: i64) -> ServiceResult {
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
        assert!(cluster.session(session.id()).is_none());
        self.add(format!("close {} {timestamp} {reason:?}", session.id()));
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        let text = String::from_utf8_lossy(message.payload);
        let (position, time) = (cluster.log_position(), cluster.time());
        assert_eq!(time, message.timestamp);
        self.add(format!("{position} {time} {:?} {text}", message.source));
        self.obey(cluster, message.payload)
    }

    fn on_timer_event(&mut self, cluster: &mut Cluster<'_>, id: i64, time: i64) -> ServiceResult {
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
        self.add(format!("term {} at {}", term.leadership_term_id, cluster.log_position()));
        Ok(())
    }

    fn on_role_change(&mut self, _: &mut Lifecycle<'_>, role: Role) {
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
            service_id: 3,
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
            leadership_term_id: -1,
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

/// A snapshot with two sessions that was written by another container.
fn snapshot() -> Vec<Vec<u8>> {
    let mut harness = Harness::started();
    harness.on_log(64, term(1, 64, VERSION)).expect("handled");
    harness.on_log(128, open(9)).expect("handled");
    harness.on_log(192, open(5)).expect("handled");
    harness.on_log(256, action(256, 2, 0)).expect("handled");
    assert_eq!(harness.network.snapshot.len(), 5);
    harness.network.snapshot
}

#[test]
fn fresh_start_acks_the_client() {
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    assert_eq!(harness.recover(Ok(None)), Ok(()));
    assert_eq!(harness.acks(), [(0, 0, 4711)]);
    assert_eq!(harness.events(), ["start at 0 Millis []"]);
}

#[test]
fn failed_start_acks_and_ends() {
    for (start, text) in [("fail", "on start"), ("panic", "panic: on start")] {
        let mut harness = Harness::with(Some(start), ErrorPolicy::RecordAndContinue);
        let cause = TerminationCause::StartFailed(text.to_owned());
        assert_eq!(harness.recover(Ok(None)), Err(cause));
        assert_eq!(harness.acks(), [(0, 0, -1)]);
        harness.events();
        harness.core.terminate(&mut harness.network);
        assert_eq!(harness.events(), [""; 0]);
    }
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    let no_archive = Err(SnapshotError::Failed("no archive".to_owned()));
    assert!(matches!(harness.recover(no_archive), Err(TerminationCause::StartFailed(_))));
    assert_eq!((harness.acks(), harness.events()), (vec![(0, 0, -1)], vec![]));
}

#[test]
fn end_while_starting_acks_a_failure() {
    let cases = [
        ("idle", TerminationCause::Stopped, 1),
        ("end", TerminationCause::ServiceTerminated, 1),
        // The consensus module is gone, or cannot be reached.
        ("idle", TerminationCause::ConsensusModuleGone, 0),
        ("idle", TerminationCause::ClientClosed(CloseCause::DriverShutdown), 0),
    ];
    for (start, cause, acks) in cases {
        let mut harness = Harness::with(Some(start), ErrorPolicy::RecordAndContinue);
        harness.network.end_after(1, cause.clone());
        assert_eq!(harness.recover(Ok(None)), Err(cause));
        assert_eq!(harness.acks(), [(0, 0, -1)][..acks]);
        harness.events();
        harness.core.terminate(&mut harness.network);
        assert_eq!(harness.events(), [""; 0]);
    }
}

#[test]
fn snapshot_brings_sessions_and_state() {
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    let mut replay = Replay { messages: snapshot().into(), is_cut: false };
    assert_eq!(harness.recover(Ok(Some(&mut replay))), Ok(()));
    assert_eq!(harness.events(), ["start at 0 Micros [5, 9]", "state [1, 2, 3, 1, 2, 3]"]);
    let session = &harness.core.state().sessions[&9];
    assert_eq!(session.response_channel(), "aeron:udp?endpoint=client:1");
    assert_eq!(
        (session.response_stream_id(), session.encoded_principal()),
        (102, &b"principal"[..])
    );
    assert_eq!(harness.acks(), [(0, 0, 4711)]);
}

#[test]
fn damaged_snapshots_fail_the_start() {
    let good = snapshot();
    let marker = |type_id, mark, major| {
        codec::SnapshotMarker {
            type_id,
            log_position: 0,
            leadership_term_id: 0,
            index: 0,
            mark,
            time_unit: 0,
            app_version: AppVersion::new(major, 0, 0).code(),
        }
        .to_vec()
    };
    let with = |range: std::ops::Range<usize>| good[range].to_vec();
    let cases = [
        (vec![], "ends before"),
        (with(0..3), "ends before"),
        (with(1..5), "before the beginning"),
        ([with(0..1), with(0..5)].concat(), "begins twice"),
        (with(3..5), "ends before it begins"),
        (vec![marker(1, 0, 1)], "type 1"),
        (vec![vec![0; 4]], "4 bytes"),
        (vec![good[1][..20].to_vec()], "truncated"),
        (vec![good[0].clone(), good[1][..20].to_vec()], "truncated"),
    ];
    for (messages, text) in cases {
        let mut harness = Harness::with(None, ErrorPolicy::Terminate);
        let mut replay = Replay { messages: messages.into(), is_cut: false };
        let outcome = harness.recover(Ok(Some(&mut replay)));
        let Err(TerminationCause::StartFailed(error)) = outcome else { panic!("{outcome:?}") };
        assert!(error.contains(text), "{error}: {text}");
        assert_eq!(harness.acks(), [(0, 0, -1)]);
    }
    let messages = vec![marker(2, 0, 2), marker(2, 2, 2)];
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    let mut replay = Replay { messages: messages.into(), is_cut: false };
    let found = AppVersion::new(2, 0, 0);
    let cause = TerminationCause::IncompatibleVersion { own: VERSION, found, is_snapshot: true };
    assert_eq!(harness.recover(Ok(Some(&mut replay))), Err(cause));
    assert_eq!((harness.acks(), harness.events()), (vec![(0, 0, -1)], vec![]));
    // The user's part is cut.
    let mut harness = Harness::with(None, ErrorPolicy::Terminate);
    let mut replay = Replay { messages: good.into(), is_cut: true };
    let outcome = harness.recover(Ok(Some(&mut replay)));
    assert!(matches!(outcome, Err(TerminationCause::StartFailed(_))), "{outcome:?}");
}

#[test]
fn reads_and_messages_can_be_mixed() {
    let messages = [&b"abc"[..], b"defg", b"h", b"ijk"].map(<[u8]>::to_vec);
    let replay = || Replay { messages: messages.clone().into(), is_cut: false };
    let mut source = replay();
    let mut reader = SnapshotReader::new(&mut source);
    let mut bytes = [0; 5];
    reader.read_exact(&mut bytes).expect("bytes");
    assert_eq!(&bytes, b"abcde");
    let mut polled = Vec::new();
    // The rest of the message, and nothing else.
    assert_eq!(reader.poll(|message| polled.push(message.to_vec()), 10).expect("messages"), 1);
    assert_eq!(polled, [b"fg"]);
    reader.read_exact(&mut bytes[..1]).expect("a byte");
    assert_eq!(bytes[0], b'h');
    assert!(!reader.is_at_end());
    let mut rest = Vec::new();
    let collect = |message: &[u8]| {
        rest.push(message.to_vec());
        Ok(())
    };
    reader.for_each(collect).expect("the last message");
    assert_eq!(rest, [b"ijk"]);
    assert!(reader.is_at_end());
    assert_eq!(reader.read(&mut bytes).expect("the end"), 0);
    // `for_each` begins with the rest, too.
    let mut source = replay();
    let mut reader = SnapshotReader::new(&mut source);
    reader.read_exact(&mut bytes[..2]).expect("bytes");
    let mut rest = Vec::new();
    let collect = |message: &[u8]| {
        rest.extend_from_slice(message);
        Ok(())
    };
    reader.for_each(collect).expect("all messages");
    assert_eq!(rest, b"cdefghijk");
}

#[test]
fn join_acks_then_changes_the_role() {
    let mut harness = Harness::started();
    harness.join(2, 0).expect("joined");
    assert_eq!(harness.acks(), [(0, 0, 4711), (1, 0, -1)]);
    assert_eq!(harness.events(), ["role Leader"]);
    harness.say(96, b"hello").expect("handled");
    // The next log begins where this one ends.
    harness.on_control(join(0, 96, 0)).expect("handled");
    assert!(harness.core.is_log_done(96) && !harness.core.is_log_done(95));
    harness.core.on_log_closed(&mut harness.network, 96).expect("closed");
    let join = harness.core.take_next_log().expect("a log");
    harness.core.on_joining(&join);
    harness.core.on_joined(&mut harness.network, &join, 96).expect("joined");
    assert_eq!(harness.acks()[2..], [(2, 96, -1)]);
    let source = "Client { session_id: 5 }";
    assert_eq!(harness.events(), [format!("96 96 {source} hello"), "role Follower".to_owned()]);
}

#[test]
fn gap_before_the_log_ends_without_ack() {
    for (image, event) in [(0, 64), (64, 0), (64, 64)] {
        let mut harness = Harness::started();
        harness.on_control(join(0, event, 0)).expect("handled");
        let join = harness.core.take_next_log().expect("a log");
        let joined = harness.core.on_joined(&mut harness.network, &join, image);
        assert!(matches!(joined, Err(TerminationCause::Failed(_))), "{joined:?}");
        assert_eq!(harness.acks().len(), 1);
    }
}

#[test]
fn leader_connects_sessions_but_not_at_startup() {
    for (role, is_startup, connected) in [(2, 0, 1), (2, 1, 0), (0, 0, 0)] {
        let mut harness = Harness::started();
        harness.on_log(64, open(5)).expect("handled");
        harness.on_control(join(role, 64, is_startup)).expect("handled");
        let join = harness.core.take_next_log().expect("a log");
        harness.core.on_joining(&join);
        harness.core.on_joined(&mut harness.network, &join, 64).expect("joined");
        let requested = &harness.network.responses;
        assert_eq!(requested.len(), connected, "role {role}");
        // The client's channel is not valid; the service goes on.
        assert_eq!(harness.network.errors.len(), connected);
    }
}

#[test]
fn events_reach_the_service_in_order() {
    let mut harness = Harness::started();
    harness.join(2, 0).expect("joined");
    let service_session = i64::MIN | 2 << 56 | 17;
    let timer = codec::TimerEvent { leadership_term_id: 0, correlation_id: 8, timestamp: 50 };
    harness.on_log(32, term(6, 32, VERSION)).expect("handled");
    harness.on_log(64, open(5)).expect("handled");
    harness.on_log(96, message(5, 40, b"a")).expect("handled");
    harness.on_log(128, message(service_session, 41, b"b")).expect("handled");
    harness.on_log(160, timer.to_vec()).expect("handled");
    harness.on_log(192, action(192, 0, 0)).expect("handled");
    harness.on_log(224, close(5)).expect("handled");
    harness.on_log(256, close(5)).expect("handled");
    let expected = [
        "role Leader",
        "term 6 at 32",
        "open 5 11",
        "96 40 Client { session_id: 5 } a",
        "128 41 Service { service_id: 2 } b",
        "timer 8 50 at 160",
        "close 5 12 Timeout",
    ];
    assert_eq!(harness.events(), expected);
    let state = harness.core.state();
    assert_eq!((state.leadership_term_id, state.time_unit), (6, ClusterTimeUnit::Micros));
    assert_eq!((state.log_position, state.time, state.member_id), (256, 12, 2));
    // One for the client's channel, one for the unknown session.
    assert_eq!(harness.network.errors.len(), 2);
    assert_eq!(harness.acks().len(), 2);
}

#[test]
fn session_opened_twice_ends_with_any_policy() {
    let mut harness = Harness::started_with(None, ErrorPolicy::RecordAndContinue);
    harness.on_log(64, open(5)).expect("handled");
    let twice = harness.on_log(128, open(5));
    assert!(matches!(twice, Err(TerminationCause::Failed(_))), "{twice:?}");
}

#[test]
fn incompatible_version_ends() {
    let (own, found) = (VERSION, AppVersion::new(2, 0, 0));
    let mut harness = Harness::started_with(None, ErrorPolicy::RecordAndContinue);
    harness.on_log(64, term(1, 64, AppVersion::new(1, 9, 0))).expect("handled");
    let ended = harness.on_log(128, term(2, 128, found));
    let cause = TerminationCause::IncompatibleVersion { own, found, is_snapshot: false };
    assert_eq!(ended, Err(cause.clone()));
    let text = "application version 1.2.3: the log has incompatible version 2.0.0";
    assert_eq!(cause.to_string(), text);
    assert_eq!(harness.events(), ["term 1 at 64"]);
}

#[test]
fn validator_decides_about_versions() {
    let mut harness = Harness::started();
    harness.core.settings.app_version_validator = Arc::new(|own, found| {
        assert_ne!(found.major, 9, "on request");
        own == VERSION && found.minor == 7
    });
    harness.on_log(64, term(1, 64, AppVersion::new(2, 7, 0))).expect("handled");
    let ended = harness.on_log(128, term(2, 128, VERSION));
    assert!(matches!(ended, Err(TerminationCause::IncompatibleVersion { .. })), "{ended:?}");
    let ended = harness.on_log(128, term(2, 128, AppVersion::new(9, 7, 0)));
    let Err(TerminationCause::Failed(text)) = ended else { panic!("{ended:?}") };
    assert!(text.starts_with("app_version_validator: panic: "), "{text}");
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
    codec::SessionOpenEvent {
        leadership_term_id: 0,
        correlation_id: 1,
        cluster_session_id: session_id,
        timestamp: 11,
        response_stream_id: 102,
        response_channel: b"aeron:udp?endpoint=client:1",
        encoded_principal: b"principal",
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

#[test]
fn actions_by_code_and_flags() {
    let wants = |action, flags, is_standby| {
        let (leadership_term_id, log_position, timestamp) = (1, 64, 9);
        let request = codec::ClusterActionRequest {
            leadership_term_id,
            log_position,
            timestamp,
            action,
            flags,
        };
        wants_snapshot(&request, is_standby)
    };
    assert!(!wants(0, 0, true) && !wants(1, 0, true));
    assert!(wants(2, 0, false) && wants(2, i32::MIN, false));
    assert_eq!((wants(2, 1, false), wants(2, 1, true), wants(2, 2, true)), (false, true, false));
}

fn termination(log_position: i64, ack_required: i32) -> Vec<u8> {
    codec::ServiceTerminationPosition { log_position, ack_required }.to_vec()
}

#[test]
fn blocking_calls_end_with_the_container() {
    for command in [&b"timer"[..], b"cancel", b"offer", b"swallow"] {
        let mut harness = Harness::started();
        harness.network.refuse(OfferError::BackPressured, 3);
        harness.say(64, command).expect("sent after a while");
        assert_eq!((harness.network.idles, harness.network.sent.len()), (3, 2));
        harness.network.refuse(OfferError::BackPressured, usize::MAX);
        harness.network.end_after(10, TerminationCause::ConsensusModuleGone);
        let ended = harness.say(128, command);
        assert_eq!(ended, Err(TerminationCause::ConsensusModuleGone));
        assert_eq!(harness.network.errors, [""; 0]);
    }
}

#[test]
fn messages_to_the_consensus_module() {
    let mut harness = Harness::started();
    for (position, command) in [(64, &b"timer"[..]), (128, b"cancel"), (192, b"offer")] {
        harness.say(position, command).expect("sent");
    }
    let timer = codec::ScheduleTimer { correlation_id: 7, deadline: 99 };
    assert_eq!(harness.network.sent[1], timer.to_vec());
    assert_eq!(harness.network.sent[2], codec::CancelTimer { correlation_id: 7 }.to_vec());
    let (header, body) = MessageHeader::split(&harness.network.sent[3]).expect("a header");
    assert_eq!(header, codec::SessionMessageHeader::HEADER);
    let session = codec::SessionMessageHeader::decode(header, body).expect("whole");
    assert_eq!((session.cluster_session_id, &body[24..]), (3, &b"to all"[..]));
}

#[test]
fn followers_answers_go_nowhere() {
    let mut harness = Harness::started();
    harness.join(0, 0).expect("joined");
    for id in [9, 5] {
        harness.on_log(64, open(id)).expect("handled");
    }
    harness.events();
    harness.say(128, b"answer").expect("handled");
    harness.say(192, b"close").expect("handled");
    harness.say(256, b"answer").expect("handled");
    let events = harness.events();
    assert_eq!(events[1], "[(5, Ok(Mocked), false), (9, Ok(Mocked), false)]");
    assert_eq!(events[3], "closed true");
    assert_eq!(events[5], "[(5, Ok(Mocked), true), (9, Ok(Mocked), false)]");
    let request = codec::CloseSession { cluster_session_id: 5 }.to_vec();
    assert_eq!(harness.network.sent.iter().filter(|sent| **sent == request).count(), 1);
    // A leader asks again: the request of the old leader may be lost.
    harness.core.on_log_closed(&mut harness.network, 256).expect("closed");
    harness.join(2, 256).expect("joined");
    harness.events();
    harness.say(320, b"answer").expect("handled");
    let answers =
        "[(5, Err(NotSent(NotConnected)), false), (9, Err(NotSent(NotConnected)), false)]";
    assert_eq!(harness.events()[1], answers);
}

#[test]
fn claims_have_one_limit_in_all_roles() {
    let too_long =
        |length, max_message_length| Err::<usize, _>(NotSent::too_long(length, max_message_length));
    // Without a media driver, a leader's sessions are not connected.
    for (role, accepted) in [(0, None), (2, Some(NotSent::from(OfferError::NotConnected)))] {
        let mut harness = Harness::started();
        harness.join(role, 0).expect("joined");
        harness.on_log(64, open(5)).expect("handled");
        harness.events();
        harness.say(128, b"claim").expect("handled");
        let outcome = |length| accepted.map_or(Ok(length), Err);
        let claims = [outcome(0), outcome(1344), too_long(1345, 1344), too_long(usize::MAX, 1344)];
        assert_eq!(harness.events()[1], format!("{claims:?}"), "role {role}");
    }
}

#[test]
fn termination_at_its_position() {
    for (ack_required, acks) in [(1, 2), (i32::MIN, 2), (0, 1)] {
        let mut harness = Harness::started();
        harness.on_control(termination(64, ack_required)).expect("not yet");
        assert_eq!(harness.events(), [""; 0]);
        harness.say(64, b"last").expect("handled");
        let ended = harness.core.check_positions(&mut harness.network);
        let log_position = 64;
        let cause = TerminationCause::ConsensusModuleTerminated { log_position, is_expected: true };
        assert_eq!(ended, Err(cause));
        assert_eq!(harness.acks().len(), acks);
        assert!(harness.acks()[1..].iter().all(|ack| *ack == (1, 64, -1)));
        // Once only.
        harness.core.terminate(&mut harness.network);
        assert_eq!(harness.events()[1..], ["terminate"]);
    }
    let mut harness = Harness::started();
    harness.say(96, b"behind").expect("handled");
    let ended = harness.on_control(termination(64, 1));
    let log_position = 96;
    let cause = TerminationCause::ConsensusModuleTerminated { log_position, is_expected: false };
    assert_eq!(ended, Err(cause));
    assert_eq!(harness.acks()[1..], [(1, 96, -1)]);
}

#[test]
fn requested_ack_at_its_position() {
    let request = |log_position| codec::RequestServiceAck { log_position }.to_vec();
    let mut harness = Harness::started();
    harness.on_control(request(64)).expect("handled");
    harness.core.check_positions(&mut harness.network).expect("not yet");
    assert_eq!(harness.acks().len(), 1);
    harness.say(64, b"reached").expect("handled");
    harness.core.check_positions(&mut harness.network).expect("acked");
    harness.core.check_positions(&mut harness.network).expect("acked before");
    harness.on_control(request(32)).expect("late");
    assert_eq!(harness.acks()[1..], [(1, 64, -1), (2, 64, -1)]);
    assert_eq!(harness.network.errors.len(), 1);
}

#[test]
fn failures_follow_the_policy() {
    let position = 64;
    let cases: [(&[u8], &str); 2] = [(b"fail", "on request"), (b"panic", "panic: on request")];
    for (command, error) in cases {
        let mut harness = Harness::started();
        let callback = "on_session_message";
        let cause = TerminationCause::ServiceFailed { callback, error: error.to_owned() };
        assert_eq!(harness.say(position, command), Err(cause));
        assert_eq!(harness.network.errors.len(), 1);
        // After a panic the service is in the middle of a change.
        harness.core.terminate(&mut harness.network);
        let ends = usize::from(command == b"fail");
        assert_eq!(harness.events().len(), 1 + ends);

        let mut harness = Harness::started_with(None, ErrorPolicy::RecordAndContinue);
        assert_eq!(harness.say(position, command), Ok(()));
        assert_eq!(harness.say(position + 64, b"next"), Ok(()));
        harness.core.terminate(&mut harness.network);
        assert_eq!(harness.events().len(), 3);
        assert_eq!(harness.network.errors.len(), 1);
    }
    let mut harness = Harness::started_with(None, ErrorPolicy::RecordAndContinue);
    assert_eq!(harness.say(position, b"end"), Err(TerminationCause::ServiceTerminated));
}

#[test]
fn malformed_messages_follow_the_policy() {
    let mut harness = Harness::started();
    let ended = harness.on_log(64, vec![1, 2, 3]);
    assert!(matches!(ended, Err(TerminationCause::Failed(_))), "{ended:?}");
    let mut harness = Harness::started_with(None, ErrorPolicy::RecordAndContinue);
    harness.on_log(64, vec![1, 2, 3]).expect("recorded");
    harness.on_control(vec![1, 2, 3]).expect("recorded");
    harness.on_control(join(7, 0, 0)).expect("recorded");
    assert_eq!(harness.network.errors.len(), 3);
}

#[test]
fn snapshot_acks_its_recording() {
    let mut harness = Harness::started();
    harness.network.recordings.push_back(Ok(33));
    // The position of the request counts, not that of the message.
    harness.on_log(300, action(288, 2, 0)).expect("handled");
    assert_eq!(harness.acks()[1..], [(1, 288, 33)]);
    assert_eq!(harness.core.state().log_position, 288);
    // For standby members only.
    harness.on_log(352, action(352, 2, 1)).expect("handled");
    assert_eq!((harness.acks().len(), harness.events().len()), (2, 1));
}

#[test]
fn failed_snapshot_leaves_the_service_running() {
    let failed = || SnapshotError::Failed("no space left".to_owned());
    let cases = [
        (None, Some(failed()), "no space left"),
        (Some("fail snapshot"), None, "on snapshot"),
        (Some("panic snapshot"), None, "panic: on snapshot"),
    ];
    for (behaviour, error, text) in cases {
        for policy in [ErrorPolicy::Terminate, ErrorPolicy::RecordAndContinue] {
            let mut harness = Harness::started_with(behaviour, policy);
            harness.network.recordings.push_back(error.clone().map_or(Ok(1), Err));
            assert_eq!(harness.on_log(64, action(64, 2, 0)), Ok(()));
            assert_eq!(harness.acks()[1..], [(1, 64, -1)]);
            assert_eq!(harness.network.errors, [format!("no snapshot at position 64: {text}")]);
            assert_eq!(harness.say(128, b"next"), Ok(()));
            // The service is whole: it is told of its end.
            harness.events();
            harness.core.terminate(&mut harness.network);
            assert_eq!(harness.events().len(), 1);
        }
    }
}

#[test]
fn panic_counts_more_than_a_failed_writer() {
    for failure in [None, Some(OfferError::NotConnected)] {
        for behaviour in ["panic snapshot", "fail snapshot", "end snapshot"] {
            let mut harness = Harness::started_with(Some(behaviour), ErrorPolicy::Terminate);
            harness.network.snapshot_failure = failure;
            harness.on_log(32, open(5)).expect("handled");
            let outcome = harness.on_log(64, action(64, 2, 0));
            assert_eq!(harness.acks()[1..], [(1, 64, -1)]);
            if behaviour == "end snapshot" {
                assert_eq!(outcome, Err(TerminationCause::ServiceTerminated));
                continue;
            }
            assert_eq!(outcome, Ok(()), "{behaviour} {failure:?}");
            let error = harness.network.errors.last().expect("an error");
            let expected = match (behaviour, failure) {
                ("panic snapshot", _) => "panic: on snapshot",
                // The recording failed first.
                (_, Some(_)) => "snapshot publication",
                _ => "on snapshot",
            };
            assert!(error.contains(expected), "{error}");
        }
    }
}

const WORK: &str = "work as Follower at 10";

#[test]
fn work_begins_with_the_start() {
    let mut harness = Harness::with(Some("work"), ErrorPolicy::Terminate);
    harness.network.refuse(OfferError::BackPressured, 3);
    harness.recover(Ok(None)).expect("started");
    assert_eq!(harness.events(), ["start at 0 Millis []"]);
    let work = harness.core.do_background_work(&mut harness.network, Instant::now());
    assert_eq!((work, harness.events()), (Ok(1), vec![WORK.to_owned()]));
    harness.core.terminate(&mut harness.network);
    let work = harness.core.do_background_work(&mut harness.network, Instant::now());
    assert_eq!((work, harness.events()), (Ok(0), vec!["terminate".to_owned()]));
}

#[test]
fn work_goes_on_while_acks_wait() {
    let mut harness = Harness::started_with(Some("work"), ErrorPolicy::Terminate);
    harness.network.refuse(OfferError::BackPressured, 2);
    harness.join(2, 0).expect("joined");
    assert_eq!(harness.events(), [WORK, WORK, "role Leader"]);
    assert_eq!(harness.acks()[1..], [(1, 0, -1)]);
}

#[test]
fn work_goes_on_while_snapshots_wait() {
    let mut harness = Harness::started_with(Some("work"), ErrorPolicy::Terminate);
    harness.network.snapshot_idles = 2;
    harness.network.refuse(OfferError::BackPressured, 1);
    harness.on_log(64, action(64, 2, 0)).expect("handled");
    let events = harness.events();
    assert_eq!((events.len(), &*events[0]), (4, "snapshot"));
    assert!(events[1..].iter().all(|event| event.starts_with("work as Follower")), "{events:?}");
    assert_eq!(harness.acks()[1..], [(1, 64, 0)]);
}

#[test]
fn panic_at_work_obeys_the_policy() {
    for policy in [ErrorPolicy::Terminate, ErrorPolicy::RecordAndContinue] {
        let mut harness = Harness::started_with(Some("panic at work"), policy);
        harness.network.refuse(OfferError::BackPressured, 1);
        let joined = harness.join(2, 0);
        let error = "panic: at work".to_owned();
        let text = format!("do_background_work failed at position 0: {error}");
        assert_eq!(harness.network.errors, [text]);
        match policy {
            ErrorPolicy::Terminate => {
                let callback = "do_background_work";
                assert_eq!(joined, Err(TerminationCause::ServiceFailed { callback, error }));
            }
            ErrorPolicy::RecordAndContinue => {
                assert_eq!(joined, Ok(()));
                assert_eq!(harness.acks()[1..], [(1, 0, -1)]);
            }
        }
    }
}

/// Replays messages, one at a poll.
struct Replay {
    messages: VecDeque<Vec<u8>>,
    /// Messages that never arrive.
    is_cut: bool,
}

impl SnapshotSource for Replay {
    fn poll(
        &mut self,
        handler: &mut OnMessage<'_>,
        fragment_limit: usize,
    ) -> Result<usize, SnapshotError> {
        let mut count = 0;
        while count < fragment_limit {
            let Some(message) = self.messages.pop_front() else { break };
            count += 1;
            if handler(&message) == Action::Break {
                break;
            }
        }
        Ok(count)
    }

    fn is_at_end(&mut self) -> bool {
        self.messages.is_empty() && !self.is_cut
    }

    fn idle(&mut self, work_count: usize) -> Result<(), SnapshotError> {
        match work_count {
            0 => Err(SnapshotError::Failed("the replay has ended early".to_owned())),
            _ => Ok(()),
        }
    }
}
