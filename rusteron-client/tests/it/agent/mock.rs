//! An agent that writes down its calls, and does in each what the test says.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rusteron_client::agent::{Agent, AgentError};

/// Calls of agents, in their order: `name.call`.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn add(&self, name: &str, call: &str) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(format!("{name}.{call}"));
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn count(&self, call: &str) -> usize {
        self.all().iter().filter(|other| *other == call).count()
    }
}

/// The outcome of a call.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    Work(usize),
    Fail,
    Panic,
    End,
}

impl Outcome {
    fn give(self, what: &str) -> Result<usize, AgentError> {
        match self {
            Self::Work(work_count) => Ok(work_count),
            Self::Fail => Err(AgentError::new(format!("{what} failed"))),
            Self::Panic => panic!("{what} on purpose"),
            Self::End => Err(AgentError::terminate()),
        }
    }
}

pub(super) struct Mock {
    name: &'static str,
    calls: Calls,
    start: Outcome,
    work: Outcome,
    close: Outcome,
    drop: Outcome,
    /// Set if the role name panics after `on_close`.
    is_nameless: bool,
}

impl Mock {
    /// An agent that does well and goes on for ever.
    pub(super) fn new(name: &'static str, calls: &Calls) -> Self {
        let (calls, done) = (calls.clone(), Outcome::Work(0));
        let work = Outcome::Work(1);
        Self { name, calls, start: done, work, close: done, drop: done, is_nameless: false }
    }

    pub(super) fn on_start(mut self, outcome: Outcome) -> Self {
        self.start = outcome;
        self
    }

    pub(super) fn at_work(mut self, outcome: Outcome) -> Self {
        self.work = outcome;
        self
    }

    pub(super) fn on_close(mut self, outcome: Outcome) -> Self {
        self.close = outcome;
        self
    }

    /// Makes the role name panic after `on_close`.
    pub(super) fn nameless_after_close(mut self) -> Self {
        self.is_nameless = true;
        self
    }

    pub(super) fn on_drop(mut self, outcome: Outcome) -> Self {
        self.drop = outcome;
        self
    }
}

impl Agent for Mock {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.calls.add(self.name, "start");
        self.start.give("start").map(drop)
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.calls.add(self.name, "work");
        self.work.give("work")
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.calls.add(self.name, "close");
        self.close.give("close").map(drop)
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
        if self.drop == Outcome::Panic {
            panic!("drop on purpose");
        }
    }
}
