//! Requests of the consensus module for a position.

use super::*;

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
