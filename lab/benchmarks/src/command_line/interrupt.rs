//! Ending a program early and orderly.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rusteron_client::agent::ShutdownSignal;

use crate::command_line::failure::Failure;

/// Tells the main thread to come to an end; the main thread sleeps on it in between.
#[derive(Debug, Default)]
pub struct Interrupt {
    requested: Mutex<bool>,
    changed: Condvar,
}

impl Interrupt {
    /// An interrupt that [Ctrl-C and its like](ShutdownSignal::on_interrupt) request.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn on_signals() -> Result<Arc<Self>, Failure> {
        let shutdown = ShutdownSignal::on_interrupt()
            .map_err(|error| Failure::run("cannot handle signals", error))?;
        let interrupt = Arc::new(Self::default());
        let requested = Arc::clone(&interrupt);
        thread::spawn(move || {
            shutdown.wait();
            requested.request();
        });
        Ok(interrupt)
    }

    /// Asks for the end, and wakes every waiting thread.
    pub fn request(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Returns whether the end has been asked for.
    pub fn is_requested(&self) -> bool {
        *self.lock()
    }

    /// Makes [`wait_until`](Self::wait_until) look at its condition again.
    pub fn wake(&self) {
        // Not between the waiter's look at its condition and its falling asleep: hence the lock.
        let _guard = self.lock();
        self.changed.notify_all();
    }

    /// Waits for a point in time; `true` if the end was asked for or `ended` came true before it.
    pub fn wait_until(&self, deadline: Instant, ended: impl Fn() -> bool) -> bool {
        let mut requested = self.lock();
        loop {
            if *requested || ended() {
                return true;
            }
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return false;
            }
            requested = self
                .changed
                .wait_timeout(requested, remaining)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        // A flag cannot be left half-changed by a panic.
        self.requested.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_request_wakes_the_waiter() {
        let interrupt = Interrupt::default();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| interrupt.wait_until(Instant::now() + LONG, || false));
            interrupt.request();
            assert!(waiter.join().expect("no panic"));
        });
        assert!(interrupt.is_requested());
    }

    #[test]
    fn a_condition_wakes_the_waiter() {
        let interrupt = Interrupt::default();
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                interrupt.wait_until(Instant::now() + LONG, || ended.load(Ordering::SeqCst))
            });
            ended.store(true, Ordering::SeqCst);
            interrupt.wake();
            assert!(waiter.join().expect("no panic"));
        });
        assert!(!interrupt.is_requested());
    }

    #[test]
    fn a_deadline_is_kept() {
        let deadline = Instant::now() + Duration::from_millis(5);
        assert!(!Interrupt::default().wait_until(deadline, || false));
        assert!(Instant::now() >= deadline);
    }
}
