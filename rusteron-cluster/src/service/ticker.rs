//! Work that goes on while a container waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, AnyIdleStrategy, IdleStrategy};

use crate::service::counters::CommitPosition;
use crate::service::error::TerminationCause;

/// The interval of checks.
const INTERVAL: Duration = Duration::from_millis(1);

/// Checks once a millisecond whether the container must end, and does the conductor's work of a
/// client without a conductor thread.
#[derive(Clone)]
pub(crate) struct Ticker {
    aeron: Aeron,
    has_invoker: bool,
    stop: Arc<AtomicBool>,
    commit_position: Option<CommitPosition>,
    idle_strategy: AnyIdleStrategy,
    last_tick: Instant,
}

impl Ticker {
    pub(crate) fn new(
        aeron: &Aeron,
        stop: Arc<AtomicBool>,
        idle_strategy: AnyIdleStrategy,
    ) -> Self {
        Self {
            aeron: aeron.clone(),
            has_invoker: aeron.context().use_conductor_agent_invoker(),
            stop,
            commit_position: None,
            idle_strategy,
            last_tick: Instant::now(),
        }
    }

    /// Sets the counter whose end is the consensus module's end.
    pub(crate) fn set_commit_position(&mut self, commit_position: Option<CommitPosition>) {
        self.commit_position = commit_position;
    }

    /// Returns the position up to which the log may be read. `None` if the consensus module has
    /// gone.
    #[inline]
    pub(crate) fn commit_position(&self) -> Option<i64> {
        self.commit_position?.get(&self.aeron)
    }

    /// Returns whether a millisecond has passed since the last tick. An error ends the container.
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant) -> Result<bool, TerminationCause> {
        if now.duration_since(self.last_tick) < INTERVAL {
            return Ok(false);
        }
        self.last_tick = now;
        self.check()?;
        Ok(true)
    }

    fn check(&self) -> Result<(), TerminationCause> {
        if self.has_invoker {
            // A failure closes the client.
            let _ = self.aeron.do_work();
        }
        if self.aeron.is_closed() {
            return Err(TerminationCause::ClientClosed);
        }
        if self.stop.load(Ordering::Acquire) {
            return Err(TerminationCause::Stopped);
        }
        if self.commit_position.is_some() && self.commit_position().is_none() {
            return Err(TerminationCause::ConsensusModuleGone);
        }
        Ok(())
    }

    /// Idles without work, and ticks.
    pub(crate) fn idle(&mut self, work_count: usize) -> Result<(), TerminationCause> {
        self.idle_strategy.idle(work_count);
        self.tick(Instant::now()).map(drop)
    }
}
