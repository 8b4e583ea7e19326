//! A blocking call on a thread of its own, whose outcome is polled or awaited.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;

use crate::error::{Error, ErrorKind, Result};

/// A blocking call on a thread of its own. Dropping this cancels the call, and does not wait.
pub(crate) struct Background<T: Send + 'static> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    is_cancelled: AtomicBool,
}

enum State<T> {
    /// With the task to wake.
    Running(Option<Waker>),
    Done(Result<T>),
    /// The outcome has been returned, or nobody will ask for it.
    Over,
}

impl<T: Send + 'static> Background<T> {
    /// Starts `call` on a thread with this name. `call` looks at the flag now and then, which says
    /// that the call is cancelled.
    pub(crate) fn start(
        thread_name: &str,
        call: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        let state = Mutex::new(State::Running(None));
        let shared = Arc::new(Shared { state, is_cancelled: AtomicBool::new(false) });
        let background = Self { shared: Arc::clone(&shared) };
        let run = move || {
            // Only a logger of the application can panic. The task must not wait for ever then.
            let outcome = catch_unwind(AssertUnwindSafe(|| call(&shared.is_cancelled)));
            let panicked = |_| Err(Error::new(ErrorKind::Other, "panicked in the background"));
            shared.finish(outcome.unwrap_or_else(panicked));
        };
        thread::Builder::new().name(thread_name.to_owned()).spawn(run).map_err(|error| {
            let message = format!("cannot start thread {thread_name:?}: {error}");
            Error::new(ErrorKind::Io(error.kind()), message)
        })?;
        Ok(background)
    }

    /// Returns the outcome once, and `None` while there is none. If there is none, the task of
    /// `waker` is woken later.
    pub(crate) fn poll(&self, waker: Option<&Waker>) -> Result<Option<T>> {
        let mut state = self.shared.lock();
        if let State::Running(waiting) = &mut *state {
            *waiting = waker.cloned();
            return Ok(None);
        }
        match mem::replace(&mut *state, State::Over) {
            State::Done(outcome) => outcome.map(Some),
            _ => Err(Error::new(ErrorKind::IllegalState, "the outcome was returned before")),
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No user code runs while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, outcome: Result<T>) {
        let mut state = self.lock();
        // Otherwise nobody asks, and this thread drops the outcome below.
        if let State::Running(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Done(outcome);
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T: Send + 'static> Drop for Background<T> {
    fn drop(&mut self) {
        self.shared.is_cancelled.store(true, Ordering::Relaxed);
        let state = mem::replace(&mut *self.shared.lock(), State::Over);
        if let State::Done(Ok(outcome)) = state {
            // Dropping the outcome may block. If there is no thread for it, it blocks here.
            let _ = thread::Builder::new().spawn(move || drop(outcome));
        }
    }
}
