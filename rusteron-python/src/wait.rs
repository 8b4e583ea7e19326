//! Waiting without the GIL.
//!
//! A wait holds its handle only during each attempt, so another thread can use and close it meanwhile. Idling
//! looks for messages without the GIL, and takes the GIL when there is one and every 50 ms for signals such as
//! that of Ctrl-C. Polls take an `idle_strategy`, because backing off costs up to 1 ms after a pause.

use std::panic;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rusteron_client::{AnyIdleStrategy, IdleStrategy, IdleStrategyKind};

use crate::settings::{Seconds, Setting};
use crate::slot::Slot;
use crate::{error, exit};

/// After this time, a wait lets Python handle signals, such as that of Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

/// The action of a wait that finds nothing: the name of an idle strategy.
#[derive(Clone, Copy)]
pub(crate) struct Idle(IdleStrategyKind);

impl Default for Idle {
    fn default() -> Self {
        Self(IdleStrategyKind::Backoff)
    }
}

impl<'py> FromPyObject<'_, 'py> for Idle {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        IdleStrategyKind::read(&object).map(Self)
    }
}

/// The end of a wait; `None` is never.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) const NEVER: Self = Self(None);

    /// A timeout too long for the clock is none.
    pub(crate) fn after(timeout: Duration) -> Self {
        Self(Instant::now().checked_add(timeout))
    }

    /// `None` means at once.
    pub(crate) fn after_optional(timeout: Option<Seconds>) -> Self {
        Self::after(timeout.map_or(Duration::ZERO, |timeout| timeout.0))
    }

    fn has_passed(self) -> bool {
        self.0.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Attempts something with the GIL, until it succeeds or the deadline has passed. Between two attempts, idles without the
/// GIL until `is_ready`, or until Python has to handle signals. Backs off unless there is another idle strategy.
pub(crate) fn until<T>(
    py: Python<'_>,
    strategy: Option<Idle>,
    deadline: Deadline,
    mut attempt: impl FnMut() -> PyResult<Option<T>>,
    mut is_ready: impl FnMut() -> bool + Send,
) -> PyResult<Option<T>> {
    let mut idle: Option<AnyIdleStrategy> = None;
    loop {
        if let Some(outcome) = attempt()? {
            return Ok(Some(outcome));
        }
        if deadline.has_passed() {
            return Ok(None);
        }
        let idle = idle.get_or_insert_with(|| strategy.unwrap_or_default().0.new_strategy());
        exit::detached(py, || {
            let signals = Instant::now() + SIGNALS;
            loop {
                idle.idle(0);
                if is_ready() || deadline.has_passed() || Instant::now() >= signals {
                    break;
                }
            }
        });
        py.check_signals()?;
    }
}

/// Waits until a handle is connected. `look` returns whether it is, and `None` if it is closed. `failure` describes that
/// it is not.
pub(crate) fn connected<T: Send>(
    py: Python<'_>,
    slot: &Slot<T>,
    timeout: Seconds,
    look: impl Fn(&T) -> Option<bool> + Sync,
    failure: &str,
) -> PyResult<()> {
    let attempt = || match look(&*slot.enter()?) {
        Some(is_connected) => Ok(is_connected.then_some(())),
        None => Err(error::closed(slot.noun)),
    };
    let is_ready = || slot.is_closed_or(|handle| look(handle).unwrap_or(true));
    until(py, None, Deadline::after(timeout.0), attempt, is_ready)?
        .ok_or_else(|| error::timed_out(&format!("{failure} for {:?}", timeout.0), "NotConnected"))
}

/// Waits for the outcome of a request, without the GIL.
pub(crate) fn outcome<T: Send, E: Send>(
    py: Python<'_>,
    mut poll: impl FnMut() -> Result<Option<T>, E> + Send,
    error: impl FnOnce(E) -> PyErr,
) -> PyResult<T> {
    let mut idle = IdleStrategyKind::Backoff.new_strategy();
    loop {
        let outcome = exit::detached(py, || {
            let signals = Instant::now() + SIGNALS;
            loop {
                let outcome = poll().transpose();
                if outcome.is_some() || Instant::now() >= signals {
                    return outcome;
                }
                idle.idle(0);
            }
        });
        match outcome {
            Some(outcome) => return outcome.map_err(error),
            None => py.check_signals()?,
        }
    }
}

/// Makes a call that blocks, on a thread of its own, so that signals such as that of Ctrl-C end the wait for it. The call
/// then goes on to its end, and its outcome is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = mpsc::channel();
    let work = move || drop(sender.send(call()));
    let thread = thread::Builder::new().name("rusteron-call".to_owned()).spawn(work)?;
    loop {
        let receiver = &mut receiver;
        match exit::detached(py, move || receiver.recv_timeout(SIGNALS)) {
            Ok(outcome) => return Ok(outcome),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                let ended = exit::detached(py, || thread.join());
                panic::resume_unwind(ended.expect_err("only a panic sends nothing"))
            }
        }
    }
}
