//! Requests for snapshots.

use rusteron_core::RecordingId;

use super::*;

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

#[test]
fn snapshot_acks_its_recording() {
    let mut harness = Harness::started();
    harness.network.recordings.push_back(Ok(RecordingId::new(33)));
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
            harness
                .network
                .recordings
                .push_back(error.clone().map_or(Ok(RecordingId::new(1)), Err));
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
