//! Idle strategy of the conductor's thread.
//!
//! Aeron's idle strategy sleeps, for 16 ms by default, and nothing ends the sleep early. On average
//! a request leaves for the media driver after half of the sleep. Noticing the answer takes as long
//! again. Here a command ends the sleep, and the next sleeps are short: a quarter of the time since
//! the command. So the conductor notices an answer with a delay of at most a quarter of the time
//! that the answer took, in few duty cycles.
//!
//! Every command that moves the end of C's command queue wakes the thread, also those of the archive's C
//! client. No pause is longer than the context's sleep, or shorter than 50 µs. A context with another idle
//! strategy keeps C's, called by this one.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rusteron_core::error::Result;
use rusteron_core::ffi::Fallible;
use rusteron_sys as sys;

use crate::context::Context;
use crate::context::close_state::CloseState;

/// Longest duration of a wait on Windows, however short the requested wait is.
const WINDOWS_TICK: Duration = Duration::from_millis(16);

/// The idle strategy of a conductor's thread, which others can wake.
pub(crate) struct ConductorIdle {
    last_command: Mutex<Option<Instant>>,
    commanded: Condvar,
    longest: Duration,
    /// A strategy of C's that stays awake, in place of the sleeps.
    awake: OnceLock<sys::rusteron_idle_t>,
    close_state: Arc<CloseState>,
}

// SAFETY: the state of C's strategy is used by the conductor's thread only, and freed after that
// thread has ended; the other fields are `Send`.
unsafe impl Send for ConductorIdle {}
// SAFETY: as above.
unsafe impl Sync for ConductorIdle {}

impl ConductorIdle {
    /// Makes the context's conductor idle with this strategy. If the context's own strategy sleeps,
    /// commands end its sleeps. In each pause the conductor looks whether the driver has died.
    ///
    /// # Safety
    /// No client uses the context yet, and the returned strategy outlives the client that will use
    /// the context.
    pub(crate) unsafe fn install(context: &Context) -> Result<Option<Arc<Self>>> {
        let mut nanos = 0;
        // SAFETY: the context is live, and its idle state belongs to its idle strategy.
        let sleeps = unsafe { sys::rusteron_context_sleeps(context.as_ptr(), &mut nanos) };
        let longest = Duration::from_nanos(nanos);
        // On Windows, C asks for a finer clock, and the standard library does not.
        if cfg!(windows) && (!sleeps || longest < WINDOWS_TICK) {
            return Ok(None);
        }
        let this = Arc::new(Self {
            last_command: Mutex::default(),
            commanded: Condvar::new(),
            longest,
            awake: OnceLock::new(),
            close_state: Arc::clone(&context.close_state),
        });
        let idler = Arc::as_ptr(&this).cast_mut().cast();
        let mut previous = sys::rusteron_idle_t { func: None, state: ptr::null_mut() };
        // SAFETY: the context is live and, by the contract, has no other user. `idle` treats its
        // argument as the address of a pointer to this strategy, which lives as long as `idle` is
        // called.
        unsafe {
            sys::rusteron_context_set_idle(context.as_ptr(), Some(idle), idler, &mut previous)
        }
        .into_result()?;
        if sleeps {
            // SAFETY: the state of the replaced strategy, which nothing uses any more.
            unsafe { sys::aeron_free(previous.state) };
        } else {
            let _ = this.awake.set(previous);
        }
        Ok(Some(this))
    }

    /// Makes the conductor check for commands at once, and often for a while.
    pub(crate) fn wake(&self) {
        let mut last_command = self.last_command.lock().unwrap_or_else(PoisonError::into_inner);
        *last_command = Some(Instant::now());
        drop(last_command);
        self.commanded.notify_one();
    }

    fn idle(&self, work_count: c_int) {
        // SAFETY: the conductor's thread calls this between two duty cycles.
        if unsafe { self.close_state.look_for_driver(Instant::now()) } {
            return;
        }
        match self.awake.get() {
            Some(sys::rusteron_idle_t { func: Some(func), state }) => {
                // SAFETY: C's strategy with its own state, on the conductor's thread.
                unsafe { func(*state, work_count) }
            }
            _ if work_count > 0 => {}
            _ => self.pause(),
        }
    }

    fn pause(&self) {
        let last_command = self.last_command.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = last_command.map_or(self.longest, |at| pause_after(at.elapsed(), self.longest));
        // If a command was sent before the lock was acquired, the pause is already short. Whatever
        // ends the pause, a duty cycle is due.
        drop(self.commanded.wait_timeout(last_command, pause));
    }
}

impl Drop for ConductorIdle {
    fn drop(&mut self) {
        if let Some(idle) = self.awake.get() {
            // SAFETY: the conductor has ended, and with it the strategy's only user.
            unsafe { sys::aeron_free(idle.state) }
        }
    }
}

/// Returns how long to wait when `elapsed` has passed since the last command.
fn pause_after(elapsed: Duration, longest: Duration) -> Duration {
    /// Shortest duration of a sleep on Linux.
    const SHORTEST: Duration = Duration::from_micros(50);
    (elapsed / 4).max(SHORTEST).min(longest)
}

/// # Safety
/// `idler_address` points to the address of a live [`ConductorIdle`].
unsafe extern "C" fn idle(idler_address: *mut c_void, work_count: c_int) {
    // SAFETY: by the contract.
    let idler = unsafe { &*ptr::read(idler_address.cast::<*const ConductorIdle>()) };
    idler.idle(work_count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let longest = Duration::from_millis(16);
        let after = |micros| pause_after(Duration::from_micros(micros), longest);
        assert_eq!(after(0), Duration::from_micros(50));
        assert_eq!(after(200), Duration::from_micros(50));
        assert_eq!(after(400), Duration::from_micros(100));
        assert_eq!(after(40_000), Duration::from_millis(10));
        assert_eq!(after(64_000), longest);
        assert_eq!(after(u64::MAX), longest);
        assert_eq!(pause_after(Duration::ZERO, Duration::from_nanos(1)), Duration::from_nanos(1));
    }

    #[test]
    fn a_command_ends_a_pause() {
        let idler = ConductorIdle {
            last_command: Mutex::default(),
            commanded: Condvar::new(),
            longest: Duration::from_secs(3600),
            awake: OnceLock::new(),
            close_state: Arc::default(),
        };
        std::thread::scope(|scope| {
            let paused = scope.spawn(|| idler.idle(0));
            // Before or during the pause.
            idler.wake();
            paused.join().expect("no panic");
        });
    }
}
