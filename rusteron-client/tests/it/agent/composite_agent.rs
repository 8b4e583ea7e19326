//! Several agents as one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusteron_client::agent::{Agent, AgentRunner, CompositeAgent, RunnerError};
use rusteron_test_support::await_that;

use super::mock::{Calls, Mock, Outcome};

type Boxed = Box<dyn Agent + Send>;

/// Composites of the same members: a tuple, and a list.
fn both(members: impl Fn() -> (Mock, Mock, Mock)) -> [Boxed; 2] {
    let (first, second, third) = members();
    let list: Vec<Boxed> = vec![Box::new(first), Box::new(second), Box::new(third)];
    [Box::new(CompositeAgent::new(members())), Box::new(CompositeAgent::new(list))]
}

#[test]
fn members_work_in_order_and_sum_up() {
    let calls = Calls::default();
    let members = || {
        let member = |name, work| Mock::new(name, &calls).at_work(Outcome::Work(work));
        (member("a", 1), member("b", 2), member("c", 4))
    };
    for mut composite in both(members) {
        assert_eq!(composite.role_name(), "[a,b,c]");
        let before = calls.all().len();
        composite.on_start().expect("started");
        assert_eq!(composite.do_work().expect("work"), 7);
        assert_eq!(composite.do_work().expect("work"), 7);
        composite.on_close().expect("closed");
        let expected = [
            "a.start", "b.start", "c.start", "a.work", "b.work", "c.work", "a.work", "b.work",
            "c.work", "a.close", "b.close", "c.close",
        ];
        assert_eq!(calls.all()[before..], expected);
    }
}

#[test]
fn failing_member_does_not_starve_others() {
    let calls = Calls::default();
    let members = || {
        let failing = Mock::new("b", &calls).at_work(Outcome::Fail);
        (Mock::new("a", &calls), failing, Mock::new("c", &calls))
    };
    for mut composite in both(members) {
        let before = calls.all().len();
        let error = composite.do_work().expect_err("a failure");
        assert_eq!(error.to_string(), "agent b: work failed");
        assert_eq!(composite.do_work().expect("the rest"), 1);
        composite.do_work().expect_err("a failure");
        assert_eq!(calls.all()[before..], ["a.work", "b.work", "c.work", "a.work", "b.work"]);
    }
}

#[test]
fn all_members_close_although_some_fail() {
    let calls = Calls::default();
    let members = || {
        (
            Mock::new("a", &calls).on_close(Outcome::Fail),
            Mock::new("b", &calls).on_close(Outcome::End),
            Mock::new("c", &calls).on_close(Outcome::Fail),
        )
    };
    for mut composite in both(members) {
        let before = calls.all().len();
        let error = composite.on_close().expect_err("a failure");
        assert_eq!(error.to_string(), "agent a: close failed; also agent c: close failed");
        assert_eq!(error.suppressed().len(), 1);
        assert_eq!(calls.all()[before..], ["a.close", "b.close", "c.close"]);
    }
}

#[test]
fn all_members_close_although_some_panic() {
    let calls = Calls::default();
    let members = || {
        (
            Mock::new("a", &calls).on_close(Outcome::Panic),
            Mock::new("b", &calls).on_close(Outcome::Fail),
            Mock::new("c", &calls).on_close(Outcome::Panic),
        )
    };
    for mut composite in both(members) {
        let before = calls.all().len();
        let panicked = catch_unwind(AssertUnwindSafe(|| composite.on_close()));
        let payload = panicked.expect_err("the first panic");
        assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("close on purpose"));
        assert_eq!(calls.all()[before..], ["a.close", "b.close", "c.close"]);
    }
}

#[test]
fn all_members_close_although_names_panic() {
    for outcome in [Outcome::Fail, Outcome::Panic] {
        let calls = Calls::default();
        let member = |name| Mock::new(name, &calls).on_close(outcome).nameless_after_close();
        for mut composite in both(|| (member("a"), member("b"), member("c"))) {
            let before = calls.all().len();
            // The members' failure, and no panic of a name.
            match catch_unwind(AssertUnwindSafe(|| composite.on_close())) {
                Ok(closed) => {
                    let error = closed.expect_err("the failures").to_string();
                    assert!(error.starts_with("agent (no name): close failed; also "), "{error}");
                }
                Err(payload) => {
                    let message = payload.downcast_ref::<String>().map(String::as_str);
                    assert_eq!(message, Some("close on purpose"));
                }
            }
            assert_eq!(calls.all()[before..], ["a.close", "b.close", "c.close"]);
        }
    }
}

#[test]
fn members_of_failed_start_all_close() {
    let calls = Calls::default();
    let failing = || Mock::new("a", &calls).on_start(Outcome::Fail).on_close(Outcome::Fail);
    let composite = CompositeAgent::new((failing(), failing(), Mock::new("b", &calls)));
    let runner = AgentRunner::builder(composite).thread_name("t").start().expect("a thread");
    await_that("the end", || runner.is_finished());
    assert_eq!(runner.error_count(), 4);
    let error = runner.join().expect_err("a failure");
    assert!(matches!(error, RunnerError::Failed(error) if error.suppressed().len() == 1));
    let ends = ["a.close", "a.close", "b.close", "a.drop on t", "a.drop on t", "b.drop on t"];
    assert_eq!(calls.all(), [&["a.start", "a.start", "b.start"][..], &ends].concat());
}

#[test]
fn member_ends_whole_composite() {
    let calls = Calls::default();
    let inner = CompositeAgent::new((Mock::new("b", &calls).at_work(Outcome::End),));
    let composite = CompositeAgent::new((Mock::new("a", &calls), inner));
    assert_eq!(composite.role_name(), "[a,[b]]");
    AgentRunner::builder(composite).start().expect("a thread").join().expect("no failure");
    assert_eq!((calls.count("a.close"), calls.count("b.close")), (1, 1));
}

#[test]
fn composite_without_members_idles() {
    let mut composite = CompositeAgent::new(Vec::<Boxed>::new());
    assert_eq!(composite.role_name(), "[]");
    assert_eq!(composite.do_work().expect("nothing"), 0);
}
