//! Taking snapshots.

use super::*;

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
fn failed_snapshot_acks_once() {
    let recording = || SnapshotError::Recording("lost".to_owned());
    let storage = || SnapshotError::StorageSpace("full".to_owned());
    let failed = |error: &str| TerminationCause::ServiceFailed {
        callback: "on_take_snapshot",
        error: error.to_owned(),
    };
    let on_policies = |behaviour, error: Option<SnapshotError>, expected: [Result<(), _>; 2]| {
        let policies = [ErrorPolicy::Terminate, ErrorPolicy::RecordAndContinue];
        for (policy, expected) in policies.into_iter().zip(expected) {
            let mut harness = Harness::started_with(behaviour, policy);
            harness.network.recordings.push_back(error.clone().map_or(Ok(1), Err));
            assert_eq!(harness.on_log(64, action(64, 2, 0)), expected);
            assert_eq!(harness.acks()[1..], [(1, 64, -1)]);
            assert_eq!(harness.network.errors.len(), 1);
        }
    };
    on_policies(None, Some(recording()), [Ok(()), Ok(())]);
    let full = || Err(TerminationCause::Failed("full".to_owned()));
    on_policies(None, Some(storage()), [full(), full()]);
    on_policies(Some("fail snapshot"), None, [Err(failed("on snapshot")), Ok(())]);
    on_policies(Some("panic snapshot"), None, [Err(failed("panic: on snapshot")), Ok(())]);
}

#[test]
fn panic_counts_more_than_a_failed_writer() {
    for failure in [None, Some(OfferError::NotConnected)] {
        for (behaviour, events) in
            [("panic snapshot", 1), ("fail snapshot", 2), ("end snapshot", 2)]
        {
            let mut harness = Harness::started_with(Some(behaviour), ErrorPolicy::Terminate);
            harness.network.snapshot_failure = failure;
            harness.on_log(32, open(5)).expect("handled");
            harness.events();
            let outcome = harness.on_log(64, action(64, 2, 0));
            let expected = match (behaviour, failure) {
                ("end snapshot", _) => Err(TerminationCause::ServiceTerminated),
                // The recording failed first.
                ("fail snapshot", Some(_)) => Ok(()),
                _ => Err(TerminationCause::ServiceFailed {
                    callback: "on_take_snapshot",
                    error: match behaviour {
                        "panic snapshot" => "panic: on snapshot".to_owned(),
                        _ => "on snapshot".to_owned(),
                    },
                }),
            };
            assert_eq!(outcome, expected, "{behaviour} {failure:?}");
            assert_eq!(harness.acks()[1..], [(1, 64, -1)]);
            // No call of a service in the middle of a change.
            harness.core.terminate(&mut harness.network);
            assert_eq!(harness.events().len(), events);
        }
    }
}
