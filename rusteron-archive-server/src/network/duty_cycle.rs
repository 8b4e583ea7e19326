//! How long the turns of an agent take.

use std::time::{Duration, Instant};

use rusteron_client::Counter;
use rusteron_core::agent::{Agent, AgentError};

/// The counters of an agent's turns (types 103 and 104).
#[derive(Debug)]
pub(crate) struct DutyCycle {
    /// The longest time between the beginnings of two turns, in nanoseconds.
    max_time: Counter,
    /// The number of turns that took longer than the threshold.
    exceeded: Counter,
    threshold: Duration,
    last: Option<Instant>,
}

impl DutyCycle {
    pub(crate) fn new(max_time: Counter, exceeded: Counter, threshold: Duration) -> Self {
        Self { max_time, exceeded, threshold, last: None }
    }

    /// Notes the beginning of a turn.
    pub(crate) fn begin(&mut self, now: Instant) {
        let Some(last) = self.last.replace(now) else { return };
        let time = now.saturating_duration_since(last);
        self.max_time.propose_max_release(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        if time > self.threshold {
            self.exceeded.increment_release();
        }
    }
}

/// An agent with a thread of its own, whose turns are measured.
#[derive(Debug)]
pub(crate) struct AgentOnThread<A> {
    pub(crate) agent: A,
    pub(crate) duty_cycle: DutyCycle,
    /// The CPU that the thread is bound to.
    pub(crate) cpu: Option<usize>,
}

impl<A: Agent> Agent for AgentOnThread<A> {
    fn on_start(&mut self) -> Result<(), AgentError> {
        if let Some(cpu) = self.cpu {
            bind_to(cpu, self.role_name());
        }
        self.agent.on_start()
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.duty_cycle.begin(Instant::now());
        self.agent.do_work()
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.agent.on_close()
    }

    fn role_name(&self) -> &str {
        self.agent.role_name()
    }
}

/// Binds this thread to a CPU. If the operating system refuses that, the thread stays as it is.
#[cfg(target_os = "linux")]
fn bind_to(cpu: usize, role: &str) {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(cpu);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &cpus) {
        log::warn!("{role}: not bound to CPU {cpu}: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn bind_to(cpu: usize, role: &str) {
    log::warn!("{role}: not bound to CPU {cpu}: this server does so on Linux only");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_turns_are_counted() {
        let driver = rusteron_test_support::launch();
        let aeron = rusteron_test_support::connect(&driver);
        let counter = |label| aeron.add_counter(1001, b"", label).expect("a counter");
        let threshold = Duration::from_millis(10);
        let mut cycle = DutyCycle::new(counter("max"), counter("slow"), threshold);
        let start = Instant::now();
        for ms in [0, 10, 21, 22] {
            cycle.begin(start + Duration::from_millis(ms));
        }
        assert_eq!((cycle.max_time.get(), cycle.exceeded.get()), (11_000_000, 1));
    }
}
