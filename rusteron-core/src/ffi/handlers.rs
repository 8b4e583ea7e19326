//! Handlers of the client's events, added and removed while the client runs.
//!
//! C has functions for that. They wait until the conductor has run a command that lies on the
//! caller's stack. After a timeout they return, and the command is still in the conductor's queue.
//! So C gets one handler of each kind before the client starts. That handler calls the handlers in
//! a Rust list. Adding and removing handlers waits for no conductor.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::ffi::{Process, callback};

/// A handler that was added to a client. The client calls the handler until this value is dropped.
///
/// Dropping this value removes and frees the handler. When `drop` returns, the handler is not
/// running and will not run again. If the handler is running on another thread, `drop` waits for
/// it. The caller must not hold anything that the handler waits for. Only within the handler
/// itself, `drop` does not wait: the running call is then the last, and the handler is freed after
/// that call.
///
/// This value does not keep the client open. But a handler that owns a handle of its own client
/// keeps that client open until the handler is removed. This value can be dropped on any thread,
/// and after the client. The client frees all handlers when it closes.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// let handler = aeron.add_close_handler(|| println!("the client closes"));
/// drop(handler); // the client calls it no more
/// # Ok(())
/// # }
/// ```
#[must_use = "the handler is removed when this is dropped"]
pub struct Handler {
    entry: Arc<dyn Remove + Send + Sync>,
    process: Process,
}

impl Drop for Handler {
    fn drop(&mut self) {
        // In a forked child, the thread of a running handler does not exist.
        if self.process.is_current() {
            self.entry.remove();
        }
    }
}

crate::impl_debug!(Handler);

/// The handlers of one kind of event, in the order in which they were added.
pub struct Handlers<F: ?Sized> {
    role: &'static str,
    entries: Mutex<Vec<Arc<Entry<F>>>>,
}

crate::impl_debug!([F: ?Sized] Handlers<F>: role);

impl<F: ?Sized + Send + 'static> Handlers<F> {
    /// Makes an empty list. `role` names the handlers in the log.
    pub fn new(role: &'static str) -> Self {
        Self { role, entries: Mutex::default() }
    }

    /// Adds a handler for events that begin after this call.
    pub fn add(&self, handler: Box<F>) -> Handler {
        let entry =
            Arc::new(Entry { state: Mutex::new(State::Idle(handler)), finished: Condvar::new() });
        let mut entries = lock(&self.entries);
        entries.retain(|entry| !entry.is_removed());
        entries.push(Arc::clone(&entry));
        Handler { entry, process: Process::current() }
    }

    /// Calls all handlers, each with `event`. Panics are caught.
    ///
    /// No lock is held during the calls, so a handler can add and remove handlers, itself included.
    pub fn call(&self, event: impl Fn(&mut F)) {
        let entries = lock(&self.entries).clone();
        for entry in entries {
            entry.call(self.role, &event);
        }
    }
}

impl<F: ?Sized> Drop for Handlers<F> {
    fn drop(&mut self) {
        // A `Handler` may outlive this list, but its closure does not.
        for entry in mem::take(&mut *lock(&self.entries)) {
            entry.remove();
        }
    }
}

trait Remove {
    fn remove(&self);
}

struct Entry<F: ?Sized> {
    state: Mutex<State<F>>,
    finished: Condvar,
}

enum State<F: ?Sized> {
    Idle(Box<F>),
    /// The calling thread owns the handler, and puts it back unless it was removed during the call.
    Running {
        thread: ThreadId,
        removed: bool,
    },
    Removed,
}

impl<F: ?Sized> Entry<F> {
    fn call(&self, role: &str, event: &impl Fn(&mut F)) {
        let Some(mut handler) = self.take() else { return };
        callback::run(role, || event(&mut handler));

        let mut state = lock(&self.state);
        if let State::Running { removed: false, .. } = *state {
            *state = State::Idle(handler);
        } else {
            drop(state);
            // Still marked as a callback: the handler may own the last handle of this thread's
            // client.
            callback::run(role, || drop(handler));
            state = lock(&self.state);
            *state = State::Removed;
        }
        drop(state);
        self.finished.notify_all();
    }

    /// Takes the handler for a call. `None` if it was removed, or if this thread is calling it.
    fn take(&self) -> Option<Box<F>> {
        let current = thread::current().id();
        let mut state = lock(&self.state);
        loop {
            match mem::replace(&mut *state, State::Removed) {
                State::Idle(handler) => {
                    *state = State::Running { thread: current, removed: false };
                    return Some(handler);
                }
                State::Removed => return None,
                running @ State::Running { thread, .. } => {
                    *state = running;
                    if thread == current {
                        return None;
                    }
                    state = self.wait(state);
                }
            }
        }
    }

    fn is_removed(&self) -> bool {
        matches!(*lock(&self.state), State::Removed)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<F>>) -> MutexGuard<'a, State<F>> {
        self.finished.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: ?Sized> Remove for Entry<F> {
    fn remove(&self) {
        let current = thread::current().id();
        let mut state = lock(&self.state);
        loop {
            match mem::replace(&mut *state, State::Removed) {
                State::Removed => return,
                State::Idle(handler) => {
                    // Dropping the handler runs user code, so the lock is released first.
                    drop(state);
                    drop(handler);
                    return;
                }
                State::Running { thread, .. } => {
                    *state = State::Running { thread, removed: true };
                    if thread == current {
                        return;
                    }
                    state = self.wait(state);
                }
            }
        }
    }
}

/// No code that could panic runs under these locks.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, OnceLock, mpsc};
    use std::time::Duration;

    type Handlers = super::Handlers<dyn FnMut(u32) + Send>;

    fn handlers() -> Arc<Handlers> {
        Arc::new(Handlers::new("test handler"))
    }

    fn call(handlers: &Handlers, event: u32) {
        handlers.call(|handler| handler(event));
    }

    #[test]
    fn handlers_run_in_order_until_dropped() {
        let handlers = handlers();
        let (sender, receiver) = mpsc::channel();
        let add = |name: &'static str| {
            let sender = sender.clone();
            handlers.add(Box::new(move |event| sender.send((name, event)).expect("a receiver")))
        };
        let first = add("first");
        let second = add("second");
        call(&handlers, 1);
        drop(first);
        call(&handlers, 2);
        drop(second);
        call(&handlers, 3);
        let calls: Vec<_> = receiver.try_iter().collect();
        assert_eq!(calls, [("first", 1), ("second", 1), ("second", 2)]);
    }

    #[test]
    fn removed_handlers_do_not_accumulate() {
        let handlers = handlers();
        for _ in 0..100 {
            drop(handlers.add(Box::new(|_| {})));
        }
        assert!(lock(&handlers.entries).len() <= 1);
    }

    #[test]
    fn removal_waits_for_running_call() {
        let handlers = handlers();
        let alive = Arc::new(());
        let (entered, done) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
        let handler = {
            let (alive, entered, done) = (alive.clone(), entered.clone(), done.clone());
            handlers.add(Box::new(move |_| {
                let _ = &alive;
                entered.wait();
                thread::sleep(Duration::from_millis(50));
                done.fetch_add(1, Ordering::SeqCst);
            }))
        };
        thread::scope(|scope| {
            scope.spawn(|| call(&handlers, 1));
            entered.wait();
            drop(handler);
            assert_eq!(done.load(Ordering::SeqCst), 1);
            assert_eq!(Arc::strong_count(&alive), 1);
        });
        call(&handlers, 2);
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn handler_can_add_and_remove_handlers() {
        let handlers = handlers();
        let calls = Arc::new(AtomicUsize::new(0));
        let count = |amount| {
            let calls = Arc::clone(&calls);
            Box::new(move |_| {
                calls.fetch_add(amount, Ordering::SeqCst);
            })
        };
        let own: Arc<Mutex<Vec<Handler>>> = Arc::default();
        let later: Arc<OnceLock<Handler>> = Arc::default();
        let handler = {
            let (all, own, added) = (Arc::clone(&handlers), Arc::clone(&own), count(100));
            let later = Arc::clone(&later);
            let mut added = Some(added);
            handlers.add(Box::new(move |_| {
                // This one and the next.
                let removed = mem::take(&mut *lock(&own));
                assert_eq!(removed.len(), 2);
                drop(removed);
                if let Some(added) = added.take() {
                    later.get_or_init(|| all.add(added));
                }
            }))
        };
        lock(&own).extend([handler, handlers.add(count(1))]);
        call(&handlers, 1);
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        call(&handlers, 2);
        assert_eq!(calls.load(Ordering::SeqCst), 100);
        assert_eq!(Arc::strong_count(&own), 1, "the handler is freed");
    }

    #[test]
    fn a_handler_that_panics_is_called_again() {
        let handlers = handlers();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let _handler = handlers.add(Box::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("on purpose");
        }));
        call(&handlers, 1);
        call(&handlers, 2);
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_handler_is_not_entered_twice() {
        let handlers = handlers();
        let (all, depth) =
            (Arc::new(OnceLock::<Arc<Handlers>>::new()), Arc::new(AtomicUsize::new(0)));
        let handler = {
            let (all, depth) = (Arc::clone(&all), Arc::clone(&depth));
            handlers.add(Box::new(move |event| {
                depth.fetch_add(1, Ordering::SeqCst);
                call(all.get().expect("set"), event + 1);
            }))
        };
        assert!(all.set(Arc::clone(&handlers)).is_ok());
        call(&handlers, 1);
        assert_eq!(depth.load(Ordering::SeqCst), 1);
        drop(handler);
    }

    #[test]
    fn concurrent_calls_of_a_handler_take_turns() {
        let handlers = handlers();
        let inside = Arc::new(AtomicUsize::new(0));
        let calls = Arc::new(AtomicUsize::new(0));
        let handler = {
            let (inside, calls) = (Arc::clone(&inside), Arc::clone(&calls));
            handlers.add(Box::new(move |_| {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                calls.fetch_add(1, Ordering::SeqCst);
            }))
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|event| call(&handlers, event)));
            }
        });
        assert_eq!(calls.load(Ordering::SeqCst), 400);
        drop(handler);
    }

    #[test]
    fn dropped_list_frees_handlers_at_once() {
        let handlers = handlers();
        let alive = Arc::new(());
        let owned = Arc::clone(&alive);
        let handler = handlers.add(Box::new(move |_| {
            let _ = &owned;
        }));
        drop(handlers);
        assert_eq!(Arc::strong_count(&alive), 1);
        drop(handler);
    }
}
