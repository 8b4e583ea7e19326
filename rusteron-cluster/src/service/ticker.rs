//! Work that goes on while a container waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, AnyIdleStrategy, IdleStrategy};

use crate::service::counters::CommitPosition;
use crate::service::error::TerminationCause;
use crate::service::mark_file::MarkFile;

/// The interval of checks.
const INTERVAL: Duration = Duration::from_millis(1);

/// The interval of signs of life in the mark file.
const MARK_INTERVAL: Duration = Duration::from_secs(1);

/// Checks once a millisecond whether the container must end, does the conductor's work of a client
/// without a conductor thread, and gives signs of life in the mark file.
#[derive(Clone)]
pub(crate) struct Ticker {
    aeron: Aeron,
    has_invoker: bool,
    stop: Arc<AtomicBool>,
    commit_position: Option<CommitPosition>,
    idle_strategy: AnyIdleStrategy,
    last_tick: Instant,
    mark_file: Option<Arc<MarkFile>>,
    last_mark: Instant,
}

impl Ticker {
    pub(crate) fn new(
        aeron: &Aeron,
        stop: Arc<AtomicBool>,
        idle_strategy: AnyIdleStrategy,
        mark_file: Option<Arc<MarkFile>>,
    ) -> Self {
        Self {
            aeron: aeron.clone(),
            has_invoker: aeron.context().use_conductor_agent_invoker(),
            stop,
            commit_position: None,
            idle_strategy,
            last_tick: Instant::now(),
            mark_file,
            last_mark: Instant::now(),
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
        if let Some(mark_file) = &self.mark_file {
            if now.duration_since(self.last_mark) >= MARK_INTERVAL {
                self.last_mark = now;
                mark_file.tick();
            }
        }
        self.check()?;
        Ok(true)
    }

    fn check(&self) -> Result<(), TerminationCause> {
        if self.has_invoker {
            // A failure closes the client.
            let _ = self.aeron.do_work();
        }
        if let Some(cause) = self.aeron.close_cause() {
            return Err(TerminationCause::ClientClosed(cause));
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
