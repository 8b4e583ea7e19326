//! Agents on threads of their own, in the caller's loop, and several as one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, Counter, Handler};
use rusteron_core::agent::{
    Agent, AgentError, AgentInvoker, AgentRunner, CompositeAgent, ErrorAction, RunnerError,
    ShutdownSignal,
};
use rusteron_core::error::ErrorKind;
use rusteron_core::idle::Yielding;
use rusteron_test_support::{DEADLINE, await_that, connect, launch, logged_with};

/// Calls of agents, in their order: `name.call`.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn add(&self, name: &str, call: &str) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(format!("{name}.{call}"));
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, call: &str) -> usize {
        self.all().iter().filter(|other| *other == call).count()
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Work(usize),
    Fail,
    Panic,
    End,
}

use Outcome::{End, Fail, Panic, Work};

impl Outcome {
    fn give(self, what: &str) -> Result<usize, AgentError> {
        match self {
            Work(work_count) => Ok(work_count),
            Fail => Err(AgentError::new(format!("{what} failed"))),
            Panic => panic!("{what} on purpose"),
            End => Err(AgentError::terminate()),
        }
    }
}

/// An agent that writes down its calls, and does in each what the test says.
struct Mock {
    name: &'static str,
    calls: Calls,
    /// Of start, work, close and drop.
    outcomes: [Outcome; 4],
    /// Set if the role name panics after `on_close`.
    is_nameless: bool,
}

/// An agent that does well and goes on for ever.
const WELL: [Outcome; 4] = [Work(0), Work(1), Work(0), Work(0)];

impl Mock {
    fn new(name: &'static str, calls: &Calls, outcomes: [Outcome; 4]) -> Self {
        Self { name, calls: calls.clone(), outcomes, is_nameless: false }
    }

    fn at_work(name: &'static str, calls: &Calls, outcome: Outcome) -> Self {
        Self::new(name, calls, [Work(0), outcome, Work(0), Work(0)])
    }

    fn on_close(name: &'static str, calls: &Calls, outcome: Outcome) -> Self {
        Self::new(name, calls, [Work(0), Work(1), outcome, Work(0)])
    }

    fn nameless(mut self) -> Self {
        self.is_nameless = true;
        self
    }

    fn call(&self, number: usize, call: &str) -> Result<usize, AgentError> {
        self.calls.add(self.name, call);
        self.outcomes[number].give(call)
    }
}

impl Agent for Mock {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.call(0, "start").map(drop)
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.call(1, "work")
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.call(2, "close").map(drop)
    }

    fn role_name(&self) -> &str {
        if self.is_nameless && self.calls.count(&format!("{}.close", self.name)) > 0 {
            panic!("role name on purpose");
        }
        self.name
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let call = format!("drop on {}", thread::current().name().unwrap_or("another"));
        self.calls.add(self.name, &call);
        if self.outcomes[3] == Panic {
            panic!("drop on purpose");
        }
    }
}

const WHOLE_LIFE: [&str; 4] = ["a.start", "a.work", "a.close", "a.drop on a"];
const WITHOUT_WORK: [&str; 3] = ["a.start", "a.close", "a.drop on a"];

#[test]
fn runner_starts_works_closes_and_drops() {
    let calls = Calls::default();
    let runner = AgentRunner::builder(Mock::new("a", &calls, WELL)).start().expect("a thread");
    assert_eq!(runner.role_name(), "a");
    await_that("some work", || calls.count("a.work") > 2);
    assert!(!runner.is_finished());
    runner.close().expect("a good end");
    let mut life = calls.all();
    life.dedup();
    assert_eq!(life, WHOLE_LIFE);

    let builder = AgentRunner::builder(Mock::new("b", &calls, WELL)).thread_name("t");
    drop(builder.start().expect("a thread"));
    assert_eq!(calls.all().last().map(String::as_str), Some("b.drop on t"));
    let builder = AgentRunner::builder(Mock::new("c", &calls, WELL)).thread_name("a\0b");
    let error = builder.start().expect_err("no name of a thread");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains(r#""a\0b""#), "{error}");
    assert_eq!(calls.count("c.start"), 0);
}

#[test]
fn outcomes_of_calls_end_runner() {
    let cases: [([Outcome; 4], u64, &str, &[&str]); 6] = [
        ([Work(0), End, Work(0), Work(0)], 0, "", &WHOLE_LIFE),
        ([Work(0), Fail, Work(0), Work(0)], 1, "agent a: work failed", &WHOLE_LIFE),
        ([Work(0), Panic, Work(0), Work(0)], 1, "agent a panicked: work on purpose", &WHOLE_LIFE),
        ([Fail, Work(1), Fail, Work(0)], 2, "agent a: start failed", &WITHOUT_WORK),
        ([End, Work(1), End, Work(0)], 0, "", &WITHOUT_WORK),
        // The first of many panics is returned.
        ([Panic, Work(1), Panic, Panic], 3, "agent a panicked: start on purpose", &WITHOUT_WORK),
    ];
    for (outcomes, error_count, text, life) in cases {
        let calls = Calls::default();
        let mock = Mock::new("a", &calls, outcomes);
        let runner = AgentRunner::builder(mock).start().expect("a thread");
        await_that("the end", || runner.is_finished());
        assert_eq!(runner.error_count(), error_count, "{outcomes:?}");
        let error = runner.join().err();
        match &error {
            Some(RunnerError::Panicked { role, .. }) => assert_eq!(role, "a"),
            Some(RunnerError::Failed(error)) => assert_eq!(error.role(), Some("a")),
            other => assert!(other.is_none(), "{other:?}"),
        }
        assert_eq!(error.map(|error| error.to_string()).unwrap_or_default(), text);
        assert_eq!(calls.all(), life, "{outcomes:?}");
    }
}

#[test]
fn handler_decides_when_errors_end_agent() {
    let calls = Calls::default();
    let mut remaining = 5;
    let runner = AgentRunner::builder(Mock::at_work("a", &calls, Fail))
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

    // A start that fails ends the agent, whatever the handler says.
    let (sender, errors) = mpsc::channel();
    let failing = Mock::new("a", &calls, [Fail, Work(1), Fail, Work(0)]);
    let runner = AgentRunner::builder(failing).on_error(move |error| {
        sender.send(error.to_string()).expect("a receiver");
        ErrorAction::Continue
    });
    runner.start().expect("a thread").join().expect_err("a failure");
    let errors: Vec<_> = errors.try_iter().collect();
    assert_eq!(errors, ["agent a: start failed", "agent a: close failed"]);
}

#[test]
fn panicking_handler_ends_agent() {
    let calls = Calls::default();
    let builder = AgentRunner::builder(Mock::at_work("handled", &calls, Fail))
        .on_error(|_| panic!("handler on purpose"));
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
    let healthy = start(Mock::new("healthy", &calls, WELL));
    await_that("some work", || calls.count("healthy.work") > 0);
    assert!(!shutdown.is_signalled());
    let panicking = start(Mock::at_work("panicking", &calls, Panic));
    shutdown.wait();
    healthy.join().expect("a good end");
    panicking.join().expect_err("a panic");
    assert_eq!(calls.count("healthy.close"), 1);
}

type Ending = fn(AgentRunner) -> Result<(), RunnerError>;

/// Drop, join and close of a runner, where they must not wait.
const ENDINGS: [Ending; 3] = [
    |runner| {
        drop(runner);
        Ok(())
    },
    AgentRunner::join,
    AgentRunner::close,
];

/// An agent that holds its own runner, and ends it in its work.
struct Owner {
    runner: Arc<Mutex<Option<AgentRunner>>>,
    ending: Ending,
    outcome: mpsc::Sender<Result<(), RunnerError>>,
}

impl Agent for Owner {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let Some(runner) = self.runner.lock().expect("no panic").take() else { return Ok(0) };
        self.outcome.send((self.ending)(runner))?;
        Ok(1)
    }

    fn role_name(&self) -> &str {
        "owner"
    }
}

#[test]
fn ending_on_own_thread_does_not_wait() {
    for (number, ending) in ENDINGS.into_iter().enumerate() {
        let (outcome, outcomes) = mpsc::channel();
        let slot = Arc::new(Mutex::new(None));
        let owner = Owner { runner: Arc::clone(&slot), ending, outcome };
        let runner = AgentRunner::builder(owner).start().expect("a thread");
        let shutdown = runner.shutdown_signal().clone();
        *slot.lock().expect("no panic") = Some(runner);
        let outcome = outcomes.recv_timeout(DEADLINE).expect("no deadlock");
        assert!(shutdown.is_signalled());
        // The agent has the other sender and the other reference.
        await_that("the end of the agent", || Arc::strong_count(&slot) == 1);
        assert_eq!(outcome.is_ok(), number == 0);
        let is_expected =
            |error| matches!(error, RunnerError::JoinedByItself { role } if role == "owner");
        assert!(outcome.err().is_none_or(is_expected));
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

#[test]
fn ending_in_callback_does_not_wait() {
    for (number, ending) in ENDINGS.into_iter().enumerate() {
        let driver = launch();
        let aeron = connect(&driver);
        let slot = Arc::new(Mutex::new(None::<AgentRunner>));
        let (sender, outcomes) = mpsc::channel();
        let in_handler = Arc::clone(&slot);
        let handler = aeron.add_available_counter_handler(move |_, _, _| {
            let runner = in_handler.lock().expect("no panic").take();
            if let Some(runner) = runner {
                let _ = sender.send(ending(runner));
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
        assert_eq!(outcome.is_ok(), number == 0);
        let is_expected = |error| matches!(error, RunnerError::CalledFromConductor { role } if role == "client owner");
        assert!(outcome.err().is_none_or(is_expected));
    }
}

#[test]
fn signal_wakes_all_waiting_threads() {
    let signal = ShutdownSignal::default();
    assert!(!signal.wait_timeout(Duration::ZERO));
    assert!(!signal.wait_timeout(Duration::from_millis(1)));
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
    assert!(signal.wait_timeout(Duration::ZERO) && signal.wait_timeout(Duration::MAX));
}

#[test]
fn invoker_starts_invokes_and_closes() {
    let calls = Calls::default();
    let mut agent = Mock::new("a", &calls, WELL);
    let mut invoker = AgentInvoker::start(&mut agent).expect("started");
    assert_eq!(invoker.invoke().expect("work"), 1);
    assert_eq!(invoker.agent().role_name(), "a");
    invoker.close().expect("closed");
    assert_eq!(calls.all(), ["a.start", "a.work", "a.close"]);

    // The caller has the error policy.
    let calls = Calls::default();
    let failing = Mock::new("a", &calls, [Work(0), Fail, Fail, Work(0)]);
    let mut invoker = AgentInvoker::start(failing).expect("started");
    for _ in 0..2 {
        let error = invoker.invoke().expect_err("a failure");
        assert_eq!((error.role(), error.is_termination()), (Some("a"), false));
    }
    assert_eq!(calls.count("a.work"), 2);
    assert_eq!(invoker.close().expect_err("a failure").to_string(), "agent a: close failed");
    let mut invoker = AgentInvoker::start(Mock::at_work("b", &calls, End)).expect("started");
    assert!(invoker.invoke().expect_err("a request").is_termination());
    drop(invoker);
    assert_eq!(calls.count("b.close"), 1);
    let error = AgentInvoker::start(Mock::new("c", &calls, [Fail, Work(1), Fail, Work(0)]));
    let error = error.expect_err("a failure").to_string();
    assert_eq!(error, "agent c: start failed; also agent c: close failed");
    assert_eq!(calls.count("c.close"), 1);
}

#[test]
fn invokers_panic_reaches_caller_after_close() {
    let invoke = |mock: Mock| {
        let invoke = AssertUnwindSafe(|| AgentInvoker::start(mock)?.invoke().map(drop));
        let payload = catch_unwind(invoke).expect_err("the panic");
        payload.downcast_ref::<String>().cloned()
    };
    let calls = Calls::default();
    for (outcomes, text) in [
        ([Work(0), Panic, Panic, Work(0)], "work on purpose"),
        ([Panic, Work(1), Panic, Work(0)], "start on purpose"),
    ] {
        let mock = Mock::new("a", &calls, outcomes);
        assert_eq!(invoke(mock).as_deref(), Some(text));
    }
    assert_eq!(calls.count("a.close"), 2);
    // A second panic during an unwinding would abort the process.
    let mock = Mock::new("b", &calls, [Work(0), Panic, Fail, Work(0)]).nameless();
    assert_eq!(invoke(mock).as_deref(), Some("work on purpose"));
    for outcome in [Fail, Panic] {
        let mock = Mock::on_close("b", &calls, outcome).nameless();
        drop(AgentInvoker::start(mock).expect("started"));
    }
    assert_eq!(calls.count("b.close"), 3);
}

type Boxed = Box<dyn Agent + Send>;

/// Runs a test with composites of the same members: a tuple, and a list. `of` makes the member with
/// a name and number.
fn each_composite(
    of: impl Fn(&'static str, usize, &Calls) -> Mock,
    test: impl Fn(&mut dyn Agent, &Calls),
) {
    let calls = Calls::default();
    let members = || (of("a", 0, &calls), of("b", 1, &calls), of("c", 2, &calls));
    test(&mut CompositeAgent::new(members()), &calls);
    let calls = Calls::default();
    let list: Vec<Boxed> = vec![
        Box::new(of("a", 0, &calls)),
        Box::new(of("b", 1, &calls)),
        Box::new(of("c", 2, &calls)),
    ];
    test(&mut CompositeAgent::new(list), &calls);
}

#[test]
fn members_work_in_order_and_sum_up() {
    let member = |name, number: usize, calls: &Calls| Mock::at_work(name, calls, Work(1 << number));
    each_composite(member, |composite, calls| {
        assert_eq!(composite.role_name(), "[a,b,c]");
        composite.on_start().expect("started");
        for _ in 0..2 {
            assert_eq!(composite.do_work().expect("work"), 7);
        }
        composite.on_close().expect("closed");
        let expected = [
            "a.start", "b.start", "c.start", "a.work", "b.work", "c.work", "a.work", "b.work",
            "c.work", "a.close", "b.close", "c.close",
        ];
        assert_eq!(calls.all(), expected);
    });
    let mut composite = CompositeAgent::new(Vec::<Boxed>::new());
    assert_eq!(composite.do_work().expect("nothing"), 0);
    assert_eq!(composite.role_name(), "[]");
}

#[test]
fn failing_member_does_not_starve_others() {
    let member = |name, number, calls: &Calls| {
        Mock::at_work(name, calls, if number == 1 { Fail } else { Work(1) })
    };
    each_composite(member, |composite, calls| {
        let error = composite.do_work().expect_err("a failure");
        assert_eq!(error.to_string(), "agent b: work failed");
        assert_eq!(composite.do_work().expect("the rest"), 1);
        composite.do_work().expect_err("a failure");
        assert_eq!(calls.all(), ["a.work", "b.work", "c.work", "a.work", "b.work"]);
    });
}

#[test]
fn all_members_close_whatever_happens() {
    let nameless = "agent (no name): close failed; also ";
    let cases: [([Outcome; 3], bool, &str); 4] = [
        ([Fail, End, Fail], false, "agent a: close failed; also agent c: close failed"),
        ([Panic, Fail, Panic], false, "close on purpose"),
        ([Fail; 3], true, nameless),
        ([Panic; 3], true, "close on purpose"),
    ];
    for (outcomes, is_nameless, expected) in cases {
        let member = |name, number: usize, calls: &Calls| {
            let mock = Mock::on_close(name, calls, outcomes[number]);
            if is_nameless { mock.nameless() } else { mock }
        };
        each_composite(member, |composite, calls| {
            // The members' failure or the first panic, and no panic of a name.
            let text = match catch_unwind(AssertUnwindSafe(|| composite.on_close())) {
                Ok(closed) => closed.expect_err("a failure").to_string(),
                Err(payload) => payload.downcast_ref::<String>().expect("a text").clone(),
            };
            assert!(text.starts_with(expected), "{text}");
            assert_eq!(calls.all(), ["a.close", "b.close", "c.close"]);
        });
    }
}

#[test]
fn composite_on_runner_ends_with_its_members() {
    let calls = Calls::default();
    let failing = || Mock::new("a", &calls, [Fail, Work(1), Fail, Work(0)]);
    let composite = CompositeAgent::new((failing(), failing(), Mock::new("b", &calls, WELL)));
    let runner = AgentRunner::builder(composite).thread_name("t").start().expect("a thread");
    await_that("the end", || runner.is_finished());
    assert_eq!(runner.error_count(), 4);
    let error = runner.join().expect_err("a failure");
    assert!(matches!(error, RunnerError::Failed(error) if error.suppressed().len() == 1));
    let ends = ["a.close", "a.close", "b.close", "a.drop on t", "a.drop on t", "b.drop on t"];
    assert_eq!(calls.all(), [&["a.start", "a.start", "b.start"][..], &ends].concat());

    let calls = Calls::default();
    let inner = CompositeAgent::new((Mock::at_work("b", &calls, End),));
    let composite = CompositeAgent::new((Mock::new("a", &calls, WELL), inner));
    assert_eq!(composite.role_name(), "[a,[b]]");
    AgentRunner::builder(composite).start().expect("a thread").join().expect("no failure");
    assert_eq!((calls.count("a.close"), calls.count("b.close")), (1, 1));
}
