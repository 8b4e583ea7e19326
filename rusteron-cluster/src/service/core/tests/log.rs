//! Joining the log, its events, and what waits for one of its positions.

use super::*;
use crate::service::types::ClusterTimeUnit;

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
    // It leads no log now.
    let source = "Client { session_id: 5 }";
    assert_eq!(harness.events(), [format!("96 96 {source} hello"), "role Follower".to_owned()]);
    let join = harness.core.take_next_log().expect("a log");
    harness.core.on_joining(&join);
    harness.core.on_joined(&mut harness.network, &join, 96).expect("joined");
    assert_eq!(harness.acks()[2..], [(2, 96, -1)]);
    assert_eq!(harness.events(), [""; 0]);
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
    harness.on_log(32, term(6, 32, VERSION)).expect("handled");
    harness.on_log(64, open(5)).expect("handled");
    harness.on_log(96, message(5, 40, b"a")).expect("handled");
    harness.on_log(128, message(service_session, 41, b"b")).expect("handled");
    harness.on_log(160, timer(8, 50)).expect("handled");
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
    assert_eq!(
        (state.leadership_term_id, state.time_unit),
        (Some(6.into()), ClusterTimeUnit::Micros)
    );
    assert_eq!((state.log_position, state.time, state.member_id), (256, 12, Some(2.into())));
    // One for the client's channel, one for the unknown session.
    assert_eq!(harness.network.errors.len(), 2);
    assert_eq!(harness.acks().len(), 2);
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

fn termination(log_position: i64, ack_required: i32) -> Vec<u8> {
    codec::ServiceTerminationPosition { log_position, ack_required }.to_vec()
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
        assert_eq!(harness.events()[1..], ["terminate"]);
        // Once only.
        harness.core.terminate(&mut harness.network);
        assert_eq!(harness.events(), [""; 0]);
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
