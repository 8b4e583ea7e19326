//! A signal that ends agents.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::agent::interrupt;
use crate::ffi::PerProcess;

/// Tells threads to end, once and for all. Clones are the same signal.
///
/// A runner [with the signal](crate::agent::AgentRunnerBuilder::shutdown_signal) ends when the signal
/// is given, and gives the signal when its agent ends for another reason. So runners that share a
/// signal end together, and a main thread that [waits](Self::wait) learns of a failed agent, too.
///
/// [`on_interrupt`](Self::on_interrupt) returns the signal that Ctrl-C gives:
///
/// ```no_run
/// use rusteron_client::agent::ShutdownSignal;
/// use rusteron_client::{Backoff, IdleStrategy, Subscription};
///
/// # fn run(mut subscription: Subscription) -> Result<(), Box<dyn std::error::Error>> {
/// let shutdown = ShutdownSignal::on_interrupt()?;
/// let mut idle = Backoff::default();
/// while !shutdown.is_signalled() {
///     let fragments = subscription.poll(|message, _| println!("{message:?}"), 10)?;
///     idle.idle(fragments);
/// }
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to Agrona's `ShutdownSignalBarrier`.
#[derive(Clone, Default)]
#[doc(alias = "ShutdownSignalBarrier")]
pub struct ShutdownSignal {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_signalled: AtomicBool,
    /// Held while the flag is set, so that no waiting thread misses the change.
    lock: Mutex<()>,
    changed: Condvar,
}

impl ShutdownSignal {
    /// Makes a signal that has not been given.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the process's signal, which is given when the user or the operating system asks the process to end: by
    /// SIGINT, which is Ctrl-C, by SIGTERM, or by SIGHUP, which says that the terminal is gone. On Windows by the
    /// console's events. Every call returns the same signal.
    ///
    /// The first call installs handlers, in place of earlier ones, and starts a thread. SIGHUP stays ignored if the
    /// parent process, such as `nohup`, ignores it. A second Ctrl-C ends the process at once, in case it is stuck.
    ///
    /// A forked child has a signal of its own, which its first call returns. Until then, Ctrl-C and the others have their
    /// default effects there. The parent's signal is not given in the child.
    ///
    /// # Errors
    /// If the operating system has no descriptors left, or no threads.
    pub fn on_interrupt() -> io::Result<Self> {
        static INSTALLED: PerProcess<Mutex<Option<ShutdownSignal>>> = PerProcess::new();
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signal) = &*installed {
            return Ok(signal.clone());
        }
        let signal = Self::new();
        let on_interrupt = signal.clone();
        interrupt::install(move || on_interrupt.signal())?;
        Ok(installed.insert(signal).clone())
    }

    /// Gives the signal, and wakes all waiting threads. Has no effect if the signal was given
    /// before.
    ///
    /// Takes a lock for a moment. So do not call this in a handler that the operating system runs on
    /// an interrupted thread.
    pub fn signal(&self) {
        let _guard = self.lock();
        self.state.is_signalled.store(true, Ordering::Release);
        self.state.changed.notify_all();
    }

    /// Returns whether the signal was given. Does not block: one load.
    #[inline]
    pub fn is_signalled(&self) -> bool {
        self.state.is_signalled.load(Ordering::Acquire)
    }

    /// Waits for the signal. Never call this in a callback of a conductor: the client stands still
    /// meanwhile, and an agent that needs the client cannot end.
    pub fn wait(&self) {
        let waited = self.state.changed.wait_while(self.lock(), |()| !self.is_signalled());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for the signal, at most for `timeout`. Returns whether the signal was given. As
    /// [`wait`](Self::wait), not for callbacks of a conductor.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        let changed = &self.state.changed;
        let waited = changed.wait_timeout_while(self.lock(), timeout, |()| !self.is_signalled());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.is_signalled()
    }

    /// Takes the lock, which protects no data that a panic could leave half changed.
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.state.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

crate::impl_debug!(ShutdownSignal: is_signalled());
