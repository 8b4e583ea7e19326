//! Agents in the caller's loop.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusteron_client::agent::{Agent, AgentInvoker};

use super::mock::{Calls, Mock, Outcome};

#[test]
fn invoker_starts_invokes_and_closes() {
    let calls = Calls::default();
    let mut invoker = AgentInvoker::start(Mock::new("a", &calls)).expect("started");
    assert_eq!(invoker.invoke().expect("work"), 1);
    assert_eq!(invoker.agent().role_name(), "a");
    invoker.close().expect("closed");
    assert_eq!(calls.all()[..3], ["a.start", "a.work", "a.close"]);
    assert_eq!(calls.count("a.close"), 1);
}

#[test]
fn caller_has_the_error_policy() {
    let calls = Calls::default();
    let failing = Mock::new("a", &calls).at_work(Outcome::Fail).on_close(Outcome::Fail);
    let mut invoker = AgentInvoker::start(failing).expect("started");
    for _ in 0..2 {
        let error = invoker.invoke().expect_err("a failure");
        assert_eq!((error.role(), error.is_termination()), (Some("a"), false));
    }
    assert_eq!(calls.count("a.work"), 2);
    assert_eq!(invoker.close().expect_err("a failure").to_string(), "agent a: close failed");
}

#[test]
fn request_to_end_reaches_caller() {
    let calls = Calls::default();
    let ending = Mock::new("a", &calls).at_work(Outcome::End);
    let mut invoker = AgentInvoker::start(ending).expect("started");
    assert!(invoker.invoke().expect_err("a request").is_termination());
    drop(invoker);
    assert_eq!(calls.count("a.close"), 1);
}

#[test]
fn failed_start_closes_and_returns_both() {
    let calls = Calls::default();
    let failing = Mock::new("a", &calls).on_start(Outcome::Fail).on_close(Outcome::Fail);
    let error = AgentInvoker::start(failing).expect_err("a failure");
    assert_eq!(error.to_string(), "agent a: start failed; also agent a: close failed");
    assert_eq!(calls.all()[..2], ["a.start", "a.close"]);
}

#[test]
fn panic_reaches_caller_after_close() {
    let calls = Calls::default();
    let panicking = || Mock::new("a", &calls).at_work(Outcome::Panic).on_close(Outcome::Panic);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut invoker = AgentInvoker::start(panicking()).expect("started");
        invoker.invoke()
    }));
    let payload = panicked.expect_err("the panic");
    assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("work on purpose"));
    assert_eq!(calls.count("a.close"), 1);

    let panicking = panicking().on_start(Outcome::Panic);
    catch_unwind(AssertUnwindSafe(|| AgentInvoker::start(panicking))).expect_err("the panic");
    assert_eq!(calls.count("a.close"), 2);
}

#[test]
fn drop_outlasts_panicking_role_name() {
    let calls = Calls::default();
    for outcome in [Outcome::Fail, Outcome::Panic] {
        let nameless = || Mock::new("a", &calls).on_close(outcome).nameless_after_close();
        drop(AgentInvoker::start(nameless()).expect("started"));
    }
    assert_eq!(calls.count("a.close"), 2);

    // A second panic during an unwinding would abort the process.
    let calls = Calls::default();
    let panicking = Mock::new("a", &calls).at_work(Outcome::Panic).on_close(Outcome::Fail);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let panicking = panicking.nameless_after_close();
        AgentInvoker::start(panicking).expect("started").invoke()
    }));
    let payload = panicked.expect_err("the panic");
    assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("work on purpose"));
    assert_eq!(calls.count("a.close"), 1);
}

#[test]
fn invoker_takes_borrowed_agents() {
    let calls = Calls::default();
    let mut agent = Mock::new("a", &calls);
    AgentInvoker::start(&mut agent).expect("started").close().expect("closed");
    agent.do_work().expect("still here");
    assert_eq!(calls.all(), ["a.start", "a.close", "a.work"]);
}
