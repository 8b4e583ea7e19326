//! Waiting without the GIL.
//!
//! A wait holds its handle only during each attempt, so another thread can use and close it meanwhile. Idling
//! looks for messages without the GIL, and takes the GIL when there is one and every 50 ms for signals such as
//! that of Ctrl-C. Polls take an `idle_strategy`, because backing off costs up to 1 ms after a pause.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use rusteron_client::{AnyIdleStrategy, IdleStrategy, IdleStrategyKind};

use crate::exit;
use crate::settings::Setting;
use crate::values::Seconds;

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

/// As `until_with`, backing off.
pub(crate) fn until<T>(
    py: Python<'_>,
    deadline: Deadline,
    attempt: impl FnMut() -> PyResult<Option<T>>,
    is_ready: impl FnMut() -> bool + Send,
) -> PyResult<Option<T>> {
    until_with(py, Idle::default(), deadline, attempt, is_ready)
}

/// Attempts something with the GIL, until it succeeds or the deadline has passed. Between two attempts, idles without the
/// GIL until `is_ready`, or until Python has to handle signals.
pub(crate) fn until_with<T>(
    py: Python<'_>,
    strategy: Idle,
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
        let idle = idle.get_or_insert_with(|| strategy.0.new_strategy());
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
