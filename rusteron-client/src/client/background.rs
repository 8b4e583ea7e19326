//! A blocking call on a thread of its own, whose outcome is polled or awaited.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;

use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::Process;

/// A blocking call on a thread of its own. Dropping this cancels the call, and does not wait.
pub(crate) struct Background<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    process: Process,
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
        let background = Self { shared: Arc::clone(&shared), process: Process::current() };
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
        self.process.check()?;
        // Wakers are user code: cloned before the lock is taken, and dropped after it. A task is
        // mostly polled with the same waker again.
        let is_same = match (&*self.shared.lock(), waker) {
            (State::Running(Some(waiting)), Some(waker)) => waiting.will_wake(waker),
            (State::Running(None), None) => true,
            _ => false,
        };
        if is_same {
            return Ok(None);
        }
        let mut next = waker.cloned();
        let mut state = self.shared.lock();
        if let State::Running(waiting) = &mut *state {
            mem::swap(waiting, &mut next);
            drop(state);
            drop(next); // the previous waker
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
        // If the caller has dropped the request, this thread drops the outcome below.
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
        if !self.process.is_current() {
            // The call goes on in the other process. Its outcome, if there is one, is that process's.
            std::mem::forget(Arc::clone(&self.shared));
            return;
        }
        self.shared.is_cancelled.store(true, Ordering::Relaxed);
        let state = mem::replace(&mut *self.shared.lock(), State::Over);
        if let State::Done(Ok(outcome)) = state {
            // Dropping the outcome may block. If there is no thread for it, it blocks here.
            let _ = thread::Builder::new().spawn(move || drop(outcome));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;
    use std::time::Duration;

    use super::*;

    /// A task that polls as it goes.
    struct Polling(Arc<Background<()>>, mpsc::Sender<bool>);

    impl Wake for Polling {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Polling {
        fn drop(&mut self) {
            let _ = self.1.send(matches!(self.0.poll(None), Ok(None)));
        }
    }

    #[test]
    fn previous_waker_is_dropped_after_unlock() {
        let (release, released) = mpsc::channel::<()>();
        let call = move |_: &AtomicBool| {
            let _ = released.recv();
            Ok(())
        };
        let background = Arc::new(Background::start("waits", call).expect("a thread"));
        let (sender, polled) = mpsc::channel();
        // On another thread, which a deadlock leaves behind.
        thread::spawn(move || {
            let waker = Waker::from(Arc::new(Polling(Arc::clone(&background), sender)));
            assert!(matches!(background.poll(Some(&waker)), Ok(None)));
            drop(waker);
            assert!(matches!(background.poll(Some(Waker::noop())), Ok(None)));
        });
        assert_eq!(polled.recv_timeout(Duration::from_secs(10)), Ok(true), "no deadlock");
        drop(release);
    }
}
