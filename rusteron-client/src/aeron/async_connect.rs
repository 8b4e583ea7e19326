//! Connecting to a media driver without blocking.
//!
//! C's connect waits for a driver, so it runs on a thread of its own. It looks for cancellation each
//! millisecond until a driver is there. A client that connects too late is dropped on a thread other than the
//! task's, because closing waits.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll};
use std::thread;

use crate::aeron::Aeron;
use crate::context::Context;
use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::{Process, wake};

impl Aeron {
    /// Starts connecting on a thread of its own, which ends with the outcome. Poll or await the
    /// result.
    ///
    /// Does not block, and can be called from callbacks. Dropping the [`AsyncConnect`] cancels it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the operating system refuses another thread.
    ///
    /// Corresponds to no function of C, whose `aeron_init` blocks.
    pub fn async_connect(context: Context) -> Result<AsyncConnect> {
        const THREAD: &str = "aeron-connect";
        let shared = Arc::<Shared>::default();
        let connecting = AsyncConnect { shared: Arc::clone(&shared), process: Process::current() };
        let run = move || {
            let connect = || Aeron::connect_unless_cancelled(context, &shared.is_cancelled);
            // Only a logger of the application can panic. The task must not wait for ever then.
            let outcome = catch_unwind(AssertUnwindSafe(connect)).unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Other, "panicked in the background"))
            });
            let mut state = shared.lock();
            // If the attempt was cancelled, this thread drops the client, after the lock.
            if matches!(*state, State::Running) {
                *state = State::Done(outcome);
            }
        };
        thread::Builder::new().name(THREAD.to_owned()).spawn(run).map_err(|error| {
            let message = format!("cannot start thread {THREAD:?}: {error}");
            Error::new(ErrorKind::Io(error.kind()), message)
        })?;
        Ok(connecting)
    }
}

/// A client that is being connected. Made by [`Aeron::async_connect`].
///
/// Poll it until it returns the client or an error, or await it as a future. The future needs no
/// particular runtime. If it is dropped before that, the attempt is cancelled, without waiting:
/// a client that connects nevertheless is closed on another thread.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// let mut connecting = Aeron::async_connect(context)?;
/// let aeron = loop {
///     if let Some(aeron) = connecting.poll()? {
///         break aeron;
///     }
///     std::thread::yield_now(); // or go on with other work
/// };
/// assert!(!aeron.is_closed());
/// # Ok(())
/// # }
/// ```
#[must_use = "the attempt is cancelled when this is dropped"]
pub struct AsyncConnect {
    shared: Arc<Shared>,
    process: Process,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    is_cancelled: AtomicBool,
}

#[derive(Default)]
enum State {
    #[default]
    Running,
    Done(Result<Aeron>),
    /// The outcome has been returned, or the attempt was cancelled.
    Over,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No user code runs while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncConnect {
    /// Returns the client if it has connected, and `None` if not yet. Does not block.
    ///
    /// # Errors
    /// The outcome is returned once, and can be an error of [`Aeron::connect`]. After that,
    /// [`ErrorKind::IllegalState`].
    pub fn poll(&mut self) -> Result<Option<Aeron>> {
        self.process.check()?;
        let mut state = self.shared.lock();
        match mem::replace(&mut *state, State::Over) {
            State::Running => {
                *state = State::Running;
                Ok(None)
            }
            State::Done(outcome) => outcome.map(Some),
            State::Over => {
                Err(Error::new(ErrorKind::IllegalState, "the outcome was returned before"))
            }
        }
    }
}

impl Future for AsyncConnect {
    type Output = Result<Aeron>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        wake::outcome(Self::poll(self.get_mut()), context)
    }
}

impl Drop for AsyncConnect {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The attempt goes on in the other process. Its client, if there is one, is that process's.
            mem::forget(Arc::clone(&self.shared));
            return;
        }
        self.shared.is_cancelled.store(true, Ordering::Relaxed);
        let state = mem::replace(&mut *self.shared.lock(), State::Over);
        if let State::Done(Ok(aeron)) = state {
            // Dropping the client may block. If there is no thread for it, it blocks here.
            let _ = thread::Builder::new().spawn(move || drop(aeron));
        }
    }
}

rusteron_core::impl_debug!(AsyncConnect);
