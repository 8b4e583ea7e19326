//! Failures and panics of the service, and malformed messages.

use super::*;

#[test]
fn session_opened_twice_ends_with_any_policy() {
    let mut harness = Harness::started_with(None, ErrorPolicy::RecordAndContinue);
    harness.on_log(64, open(5)).expect("handled");
    let twice = harness.on_log(128, open(5));
    assert!(matches!(twice, Err(TerminationCause::Failed(_))), "{twice:?}");
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
