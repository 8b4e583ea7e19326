//! Work on a thread of its own whose one outcome is polled.
//!
//! C's connect waits for a driver, so it runs on such a thread. It looks for cancellation each millisecond until a
//! driver is there. An outcome that comes too late is dropped on a thread other than the caller's, because closing
//! a client waits.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::Process;

/// Dropping it cancels the work, without waiting.
pub(crate) struct Background<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    process: Process,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    is_cancelled: AtomicBool,
}

enum State<T> {
    Running,
    Done(thread::Result<T>),
    /// The outcome has been returned, or the work was cancelled.
    Over,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No user code runs while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Background<T> {
    /// Starts work that connects a client. The work ends soon after its argument has become true.
    pub(crate) fn connect(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Result<Self> {
        const THREAD: &str = "aeron-connect";
        let is_cancelled = AtomicBool::new(false);
        let shared = Arc::new(Shared { state: Mutex::new(State::Running), is_cancelled });
        let background = Self { shared: Arc::clone(&shared), process: Process::current() };
        let run = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&shared.is_cancelled)));
            let mut state = shared.lock();
            // If the work was cancelled, this thread drops the outcome, after the lock.
            if matches!(*state, State::Running) {
                *state = State::Done(outcome);
            }
        };
        thread::Builder::new().name(THREAD.to_owned()).spawn(run).map_err(|error| {
            let message = format!("cannot start thread {THREAD:?}: {error}");
            Error::new(ErrorKind::Io(error.kind()), message)
        })?;
        Ok(background)
    }

    /// Returns the outcome or the panic of the work, once, and `None` if there is none yet.
    pub(crate) fn poll(&mut self) -> Result<Option<thread::Result<T>>> {
        self.process.check()?;
        let mut state = self.shared.lock();
        match mem::replace(&mut *state, State::Over) {
            State::Running => {
                *state = State::Running;
                Ok(None)
            }
            State::Done(outcome) => Ok(Some(outcome)),
            State::Over => {
                Err(Error::new(ErrorKind::IllegalState, "the outcome was returned before"))
            }
        }
    }
}

impl<T: Send + 'static> Drop for Background<T> {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The work goes on in the other process. Its outcome, if there is one, is that process's.
            mem::forget(Arc::clone(&self.shared));
            return;
        }
        self.shared.is_cancelled.store(true, Ordering::Relaxed);
        let state = mem::replace(&mut *self.shared.lock(), State::Over);
        if let State::Done(Ok(outcome)) = state {
            // Dropping a client may block. If there is no thread for it, it blocks here.
            let _ = thread::Builder::new().spawn(move || drop(outcome));
        }
    }
}
