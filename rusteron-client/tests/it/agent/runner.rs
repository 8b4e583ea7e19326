//! Agents on threads of their own, and the signal that ends them.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rusteron_client::agent::{
    Agent, AgentError, AgentRunner, ErrorAction, RunnerError, ShutdownSignal,
};
use rusteron_client::{Aeron, Counter, ErrorKind, Handler, Sleeping, Yielding};
use rusteron_test_support::{DEADLINE, await_that, connect, launch, logged_with};

use super::mock::{Calls, Mock, Outcome};

/// The calls without the repetitions of `work`.
fn life(calls: &Calls) -> Vec<String> {
    let mut calls = calls.all();
    calls.dedup();
    calls
}

const WHOLE_LIFE: [&str; 4] = ["a.start", "a.work", "a.close", "a.drop on a"];

#[test]
fn agent_starts_works_closes_and_drops() {
    let calls = Calls::default();
    let runner = AgentRunner::builder(Mock::new("a", &calls)).start().expect("a thread");
    assert_eq!(runner.role_name(), "a");
    await_that("some work", || calls.count("a.work") > 2);
    assert!(!runner.is_finished());
    runner.close().expect("a good end");
    assert_eq!(life(&calls), WHOLE_LIFE);
}

#[test]
fn drop_joins_the_named_thread() {
    let calls = Calls::default();
    drop(AgentRunner::builder(Mock::new("a", &calls)).thread_name("t").start().expect("a thread"));
    assert_eq!(calls.all().last().map(String::as_str), Some("a.drop on t"));
    assert_eq!(calls.count("a.close"), 1);
}

#[test]
fn thread_name_with_nul_is_refused() {
    let calls = Calls::default();
    let builder = AgentRunner::builder(Mock::new("a", &calls)).thread_name("a\0b");
    let error = builder.start().expect_err("no name of a thread");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains(r#""a\0b""#), "{error}");
    assert_eq!(calls.count("a.start"), 0);
}

#[test]
fn agent_ends_itself() {
    let calls = Calls::default();
    let ending = Mock::new("a", &calls).at_work(Outcome::End);
    let runner = AgentRunner::builder(ending).start().expect("a thread");
    await_that("the end", || runner.is_finished());
    assert_eq!(runner.error_count(), 0);
    runner.join().expect("no failure");
    assert_eq!(calls.all(), WHOLE_LIFE);
}

#[test]
fn first_error_ends_agent_without_handler() {
    let calls = Calls::default();
    let failing = Mock::new("a", &calls).at_work(Outcome::Fail);
    let runner = AgentRunner::builder(failing).start().expect("a thread");
    await_that("the end", || runner.is_finished());
    assert_eq!(runner.error_count(), 1);
    let error = runner.join().expect_err("a failure");
    assert_eq!(error.to_string(), "agent a: work failed");
    assert!(matches!(error, RunnerError::Failed(error) if error.role() == Some("a")));
    assert_eq!(calls.all(), WHOLE_LIFE);
}

#[test]
fn handler_decides_when_errors_end_agent() {
    let calls = Calls::default();
    let mut remaining = 5;
    let failing = Mock::new("a", &calls).at_work(Outcome::Fail);
    let runner = AgentRunner::builder(failing)
        .idle_strategy(Yielding)
        .on_error(move |error| {
            assert_eq!(error.to_string(), "agent a: work failed");
            remaining -= 1;
            if remaining > 0 { ErrorAction::Continue } else { ErrorAction::Stop }
        })
        .start()
        .expect("a thread");
    await_that("the end", || runner.is_finished());
    assert_eq!(runner.error_count(), 5);
    assert!(matches!(runner.join(), Err(RunnerError::Failed(_))));
    assert_eq!(calls.count("a.work"), 5);
}

#[test]
fn failed_start_is_followed_by_close() {
    let calls = Calls::default();
    let failing = Mock::new("a", &calls).on_start(Outcome::Fail).on_close(Outcome::Fail);
    let (sender, errors) = mpsc::channel();
    let runner = AgentRunner::builder(failing)
        .on_error(move |error| {
            sender.send(error.to_string()).expect("a receiver");
            ErrorAction::Continue
        })
        .start()
        .expect("a thread");
    await_that("the end", || runner.is_finished());
    assert_eq!(runner.error_count(), 2);
    let error = runner.join().expect_err("a failure");
    assert_eq!(error.to_string(), "agent a: start failed");
    assert_eq!(calls.all(), ["a.start", "a.close", "a.drop on a"]);
    let errors: Vec<_> = errors.try_iter().collect();
    assert_eq!(errors, ["agent a: start failed", "agent a: close failed"]);
}

#[test]
fn request_to_end_on_start_is_no_failure() {
    let calls = Calls::default();
    let ending = Mock::new("a", &calls).on_start(Outcome::End).on_close(Outcome::End);
    AgentRunner::builder(ending).start().expect("a thread").join().expect("no failure");
    assert_eq!(calls.all(), ["a.start", "a.close", "a.drop on a"]);
}

#[test]
fn panic_at_work_is_returned_after_close() {
    let calls = Calls::default();
    let panicking = Mock::new("a", &calls).at_work(Outcome::Panic);
    let runner = AgentRunner::builder(panicking).start().expect("a thread");
    await_that("the end", || runner.is_finished());
    assert_eq!(runner.error_count(), 1);
    let error = runner.close().expect_err("a panic");
    assert_eq!(error.to_string(), "agent a panicked: work on purpose");
    assert!(matches!(&error, RunnerError::Panicked { role, .. } if role == "a"));
    assert_eq!(calls.all(), WHOLE_LIFE);
}

#[test]
fn first_of_many_panics_is_returned() {
    let calls = Calls::default();
    let panicking = Mock::new("a", &calls)
        .on_start(Outcome::Panic)
        .on_close(Outcome::Panic)
        .on_drop(Outcome::Panic);
    let runner = AgentRunner::builder(panicking).start().expect("a thread");
    await_that("the end", || runner.is_finished());
    assert_eq!(runner.error_count(), 3);
    let error = runner.join().expect_err("a panic");
    assert_eq!(error.to_string(), "agent a panicked: start on purpose");
    assert_eq!(calls.all(), ["a.start", "a.close", "a.drop on a"]);
}

#[test]
fn panicking_handler_ends_agent() {
    let calls = Calls::default();
    let failing = Mock::new("handled", &calls).at_work(Outcome::Fail);
    let builder = AgentRunner::builder(failing).on_error(|_| panic!("handler on purpose"));
    let logged = logged_with("agent handled", || {
        let error = builder.start().expect("a thread").join().expect_err("a panic");
        assert_eq!(error.to_string(), "agent handled panicked: handler on purpose");
    });
    // The error would be lost otherwise.
    let panicked = "ERROR: agent handled panicked: handler on purpose";
    assert_eq!(logged, ["ERROR: agent handled: work failed", panicked]);
    assert_eq!(calls.count("handled.close"), 1);
}

#[test]
fn runners_of_one_signal_end_together() {
    let (calls, shutdown) = (Calls::default(), ShutdownSignal::new());
    let start = |agent| {
        AgentRunner::builder(agent).shutdown_signal(shutdown.clone()).start().expect("a thread")
    };
    let healthy = start(Mock::new("healthy", &calls));
    await_that("some work", || calls.count("healthy.work") > 0);
    assert!(!shutdown.is_signalled());
    let panicking = start(Mock::new("panicking", &calls).at_work(Outcome::Panic));
    shutdown.wait();
    healthy.join().expect("a good end");
    panicking.join().expect_err("a panic");
    assert_eq!(calls.count("healthy.close"), 1);
}

/// An agent that holds its own runner, and drops it in its work.
struct Owner {
    runner: Arc<Mutex<Option<AgentRunner>>>,
    action: fn(AgentRunner) -> Result<(), RunnerError>,
    outcome: mpsc::Sender<Result<(), RunnerError>>,
}

impl Agent for Owner {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let Some(runner) = self.runner.lock().expect("no panic").take() else { return Ok(0) };
        self.outcome.send((self.action)(runner))?;
        Ok(1)
    }

    fn role_name(&self) -> &str {
        "owner"
    }
}

/// Returns what the action gives on the runner's own thread, once the agent has ended.
fn on_own_thread(action: fn(AgentRunner) -> Result<(), RunnerError>) -> Result<(), RunnerError> {
    let (outcome, outcomes) = mpsc::channel();
    let slot = Arc::new(Mutex::new(None));
    let owner = Owner { runner: Arc::clone(&slot), action, outcome };
    let runner = AgentRunner::builder(owner).start().expect("a thread");
    let shutdown = runner.shutdown_signal().clone();
    *slot.lock().expect("no panic") = Some(runner);
    let outcome = outcomes.recv_timeout(DEADLINE).expect("no deadlock");
    assert!(shutdown.is_signalled());
    // The agent has the other sender and the other reference.
    await_that("the end of the agent", || Arc::strong_count(&slot) == 1);
    outcome
}

#[test]
fn drop_on_own_thread_does_not_wait() {
    on_own_thread(|runner| {
        drop(runner);
        Ok(())
    })
    .expect("no error");
}

#[test]
fn join_on_own_thread_is_an_error() {
    for action in [AgentRunner::join, AgentRunner::close] {
        let error = on_own_thread(action).expect_err("a refusal");
        assert!(matches!(&error, RunnerError::JoinedByItself { role } if role == "owner"));
    }
}

/// An agent that holds the only handles of a client.
struct ClientOwner {
    aeron: Aeron,
    _handler: Handler,
    /// Given once the runner is in its slot.
    may_add: mpsc::Receiver<()>,
    counter: Option<Counter>,
}

impl Agent for ClientOwner {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        if self.may_add.try_recv().is_err() {
            return Ok(0);
        }
        // Waits for the conductor, which runs the handler.
        self.counter = Some(self.aeron.add_counter(1001, b"", "any")?);
        Ok(1)
    }

    fn role_name(&self) -> &str {
        "client owner"
    }
}

/// Returns what the action gives in a handler of the client that the runner's agent owns.
fn in_callback(action: fn(AgentRunner) -> Result<(), RunnerError>) -> Result<(), RunnerError> {
    let driver = launch();
    let aeron = connect(&driver);
    let slot = Arc::new(Mutex::new(None));
    let (sender, outcomes) = mpsc::channel();
    let in_handler = Arc::clone(&slot);
    let handler = aeron.add_available_counter_handler(move |_, _, _| {
        let runner = in_handler.lock().expect("no panic").take();
        if let Some(runner) = runner {
            let _ = sender.send(action(runner));
        }
    });
    let (may_add, receiver) = mpsc::channel();
    let owner = ClientOwner { aeron, _handler: handler, may_add: receiver, counter: None };
    let runner = AgentRunner::builder(owner).start().expect("a thread");
    let shutdown = runner.shutdown_signal().clone();
    *slot.lock().expect("no panic") = Some(runner);
    may_add.send(()).expect("a receiver");
    let outcome = outcomes.recv_timeout(DEADLINE).expect("no deadlock");
    assert!(shutdown.is_signalled());
    // The handler has the other reference, and goes with the client, which the agent drops.
    await_that("the end of the agent", || Arc::strong_count(&slot) == 1);
    outcome
}

#[test]
fn drop_in_callback_does_not_wait() {
    in_callback(|runner| {
        let finished = runner.shutdown_signal().clone();
        drop(runner);
        assert!(finished.is_signalled());
        Ok(())
    })
    .expect("no error");
}

#[test]
fn join_in_callback_is_an_error() {
    for action in [AgentRunner::join, AgentRunner::close] {
        let error = in_callback(action).expect_err("a refusal");
        assert!(
            matches!(&error, RunnerError::CalledFromConductor { role } if role == "client owner"),
            "{error}"
        );
    }
}

#[test]
fn error_of_agent_is_read_on_other_threads() {
    let calls = Calls::default();
    let failing = Mock::new("a", &calls).at_work(Outcome::Fail);
    let runner = AgentRunner::builder(failing)
        .idle_strategy(Sleeping::new(Duration::from_millis(1)))
        .on_error(|_| ErrorAction::Continue)
        .start()
        .expect("a thread");
    thread::scope(|scope| {
        scope.spawn(|| await_that("errors", || runner.error_count() > 1));
    });
    runner.close().expect("the handler continued");
}

#[test]
fn signal_wakes_all_waiting_threads() {
    let signal = ShutdownSignal::new();
    thread::scope(|scope| {
        let waiting = [(); 4].map(|()| {
            let signal = signal.clone();
            scope.spawn(move || signal.wait())
        });
        let limited = scope.spawn(|| signal.wait_timeout(DEADLINE));
        assert!(!signal.is_signalled());
        signal.signal();
        signal.signal();
        for thread in waiting {
            thread.join().expect("woken");
        }
        assert!(limited.join().expect("woken"));
    });
    assert!(signal.is_signalled() && signal.clone().is_signalled());
}

#[test]
fn wait_timeout_ends_without_signal() {
    let signal = ShutdownSignal::default();
    assert!(!signal.wait_timeout(Duration::ZERO));
    assert!(!signal.wait_timeout(Duration::from_millis(1)));
    signal.signal();
    assert!(signal.wait_timeout(Duration::ZERO));
    assert!(signal.wait_timeout(Duration::MAX));
    signal.wait();
}
