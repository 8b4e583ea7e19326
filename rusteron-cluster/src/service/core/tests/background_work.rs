//! Work of the service between messages.

use super::*;

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
