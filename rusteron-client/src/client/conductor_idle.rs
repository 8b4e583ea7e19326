//! Idle strategy of the conductor's thread.
//!
//! Aeron's idle strategy sleeps, for 16 ms by default, and nothing ends the sleep early. On average
//! a request leaves for the media driver after half of the sleep. Noticing the answer takes as long
//! again. Here a command ends the sleep, and the next sleeps are short: a quarter of the time since
//! the command. So the conductor notices an answer with a delay of at most a quarter of the time
//! that the answer took, in few duty cycles.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::error::Result;
use crate::ffi::Fallible;
use rusteron_sys as sys;

/// Longest duration of a wait on Windows, however short the requested wait is.
const WINDOWS_TICK: Duration = Duration::from_millis(16);

/// The idle strategy of a conductor's thread, which others can wake.
pub(crate) struct ConductorIdle {
    last_command: Mutex<Option<Instant>>,
    commanded: Condvar,
    longest: Duration,
}

impl ConductorIdle {
    /// Makes the context's conductor idle with this strategy, if the context's strategy sleeps.
    /// Other strategies stay awake anyway.
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
        let is_too_coarse = cfg!(windows) && longest < WINDOWS_TICK;
        if !sleeps || is_too_coarse {
            return Ok(None);
        }
        let this =
            Arc::new(Self { last_command: Mutex::default(), commanded: Condvar::new(), longest });
        let idler = Arc::as_ptr(&this).cast_mut().cast();
        // SAFETY: the context is live and, by the contract, has no other user. `idle` treats its
        // argument as the address of a pointer to this strategy, which lives as long as `idle` is
        // called.
        unsafe { sys::rusteron_context_set_idle(context.as_ptr(), Some(idle), idler) }
            .into_result()?;
        Ok(Some(this))
    }

    /// Makes the conductor check for commands at once, and often for a while.
    pub(crate) fn wake(&self) {
        let mut last_command = self.last_command.lock().unwrap_or_else(PoisonError::into_inner);
        *last_command = Some(Instant::now());
        drop(last_command);
        self.commanded.notify_one();
    }

    fn pause(&self) {
        let last_command = self.last_command.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = last_command.map_or(self.longest, |at| pause_after(at.elapsed(), self.longest));
        // If a command was sent before the lock was acquired, the pause is already short. Whatever
        // ends the pause, a duty cycle is due.
        drop(self.commanded.wait_timeout(last_command, pause));
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
    if work_count > 0 {
        return;
    }
    // SAFETY: by the contract.
    let idler = unsafe { &*ptr::read(idler_address.cast::<*const ConductorIdle>()) };
    idler.pause();
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
        };
        std::thread::scope(|scope| {
            let paused = scope.spawn(|| idler.pause());
            // Before or during the pause.
            idler.wake();
            paused.join().expect("no panic");
        });
    }
}
