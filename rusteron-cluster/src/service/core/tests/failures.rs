//! Failures and panics of the service, malformed messages, and work between messages.

use super::*;

const WORK: &str = "work as Follower at 10";

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

#[test]
fn panics_in_each_callback_follow_the_policy() {
    type Provoke = fn(&mut Harness) -> Result<(), TerminationCause>;
    let callbacks: [(&str, Provoke); 6] = [
        ("on_session_open", |harness| harness.on_log(64, open(5))),
        ("on_session_close", |harness| {
            harness.on_log(64, open(5))?;
            harness.on_log(64, close(5))
        }),
        ("on_session_message", |harness| harness.say(64, b"any")),
        ("on_timer_event", |harness| harness.on_log(64, timer(8, 50))),
        ("on_new_leadership_term", |harness| harness.on_log(64, term(1, 64, VERSION))),
        ("on_role_change", |harness| harness.join(2, 0)),
    ];
    for (callback, provoke) in callbacks {
        let error = "panic: on request".to_owned();
        let mut harness = Harness::started_with(Some(callback), ErrorPolicy::Terminate);
        let cause = TerminationCause::ServiceFailed { callback, error };
        assert_eq!(provoke(&mut harness), Err(cause));
        harness.events();
        harness.core.terminate(&mut harness.network);
        assert_eq!(
            harness.events(),
            [""; 0],
            "{callback}: the service is in the middle of a change"
        );

        let mut harness = Harness::started_with(Some(callback), ErrorPolicy::RecordAndContinue);
        assert_eq!(provoke(&mut harness), Ok(()));
        let recorded = harness.network.errors.last().expect("an error");
        assert!(recorded.starts_with(&format!("{callback} failed at position ")), "{recorded}");
        harness.core.terminate(&mut harness.network);
        assert_eq!(harness.events().last().map(String::as_str), Some("terminate"));
    }
    let mut harness = Harness::started_with(Some("on_terminate"), ErrorPolicy::RecordAndContinue);
    harness.core.terminate(&mut harness.network);
    assert!(
        harness.network.errors[0].starts_with("on_terminate failed"),
        "{:?}",
        harness.network.errors
    );
}

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
