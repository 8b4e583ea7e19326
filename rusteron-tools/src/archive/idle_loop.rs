//! The loop that waits for a replay.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use rusteron_client::{Backoff, IdleStrategy};

use crate::failure::Failure;
use crate::interrupt;

/// Longest time without any work, for a loop that has to end.
const DEADLINE: Duration = Duration::from_secs(60);

/// The idle strategy of a loop that the user can end.
#[derive(Debug)]
pub(super) struct IdleLoop {
    interrupted: Receiver<()>,
    idle: Backoff,
    /// `None` if only the user ends the loop.
    deadline: Option<Instant>,
}

impl IdleLoop {
    /// For a loop that fails after a minute without work.
    pub(super) fn with_deadline() -> Result<Self, Failure> {
        Ok(Self { deadline: Some(Instant::now() + DEADLINE), ..Self::until_interrupted()? })
    }

    /// For a loop that may wait for any time.
    pub(super) fn until_interrupted() -> Result<Self, Failure> {
        let interrupted = interrupt::on_signals()?;
        Ok(Self { interrupted, idle: Backoff::default(), deadline: None })
    }

    /// Idles if the last pass of the loop had no work. Fails after the deadline, or if the user wants
    /// the end.
    pub(super) fn idle(&mut self, work_count: usize) -> Result<(), Failure> {
        if !matches!(self.interrupted.try_recv(), Err(TryRecvError::Empty)) {
            return Err(Failure::Interrupted);
        }
        if let Some(deadline) = &mut self.deadline {
            if work_count > 0 {
                *deadline = Instant::now() + DEADLINE;
            } else if Instant::now() >= *deadline {
                let seconds = DEADLINE.as_secs();
                return Err(Failure::Run(format!("waited {seconds} s for the replay in vain")));
            }
        }
        self.idle.idle(work_count);
        Ok(())
    }
}
