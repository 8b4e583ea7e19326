//! How the conductor's thread waits for something to do.
//!
//! Aeron's sleeps, for 16 ms by default, and nothing ends that: what a caller asks the media driver for
//! leaves after half of it, and the answer is noticed as much later again. Here a command ends the
//! sleep, and the next ones are short: a quarter of the time since the command. An answer is thus
//! noticed before a quarter more has passed than it took, in few turns.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::error::Result;
use crate::ffi::Fallible;
use rusteron_sys as sys;

/// How long a wait takes on Windows at the most, however short it was meant to be.
const WINDOWS_TICK: Duration = Duration::from_millis(16);

/// The idle strategy of a conductor's thread, which others can wake.
pub(crate) struct ConductorIdle {
    last_command: Mutex<Option<Instant>>,
    commanded: Condvar,
    longest: Duration,
}

impl ConductorIdle {
    /// Has the context's conductor idle with one of these, if it is to sleep: other strategies are
    /// awake anyway.
    ///
    /// # Safety
    /// No client uses the context yet, and what is returned outlives the one that will.
    pub(crate) unsafe fn install(context: &Context) -> Result<Option<Arc<Self>>> {
        let mut nanos = 0;
        // SAFETY: the context is live, and its strategy's state is that of the strategy.
        let sleeps = unsafe { sys::rusteron_context_sleeps(context.as_ptr(), &mut nanos) };
        let longest = Duration::from_nanos(nanos);
        // There C asks for a finer clock, and the standard library does not.
        let is_too_coarse = cfg!(windows) && longest < WINDOWS_TICK;
        if !sleeps || is_too_coarse {
            return Ok(None);
        }
        let this =
            Arc::new(Self { last_command: Mutex::default(), commanded: Condvar::new(), longest });
        let idler = Arc::as_ptr(&this).cast_mut().cast();
        // SAFETY: the context is live and, by the contract, nobody else's; `idle` takes what it is
        // called with for the address of a pointer to this, which lives as long as it is called.
        unsafe { sys::rusteron_context_set_idle(context.as_ptr(), Some(idle), idler) }
            .into_result()?;
        Ok(Some(this))
    }

    /// Has the conductor look for commands at once, and often for a while.
    pub(crate) fn wake(&self) {
        let mut last_command = self.last_command.lock().unwrap_or_else(PoisonError::into_inner);
        *last_command = Some(Instant::now());
        drop(last_command);
        self.commanded.notify_one();
    }

    fn pause(&self) {
        let last_command = self.last_command.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = last_command.map_or(self.longest, |at| pause_after(at.elapsed(), self.longest));
        // A command that was given before the lock was taken has made the pause short. Whatever ends
        // it, a turn is due.
        drop(self.commanded.wait_timeout(last_command, pause));
    }
}

/// How long to wait when the last command was so long ago.
fn pause_after(elapsed: Duration, longest: Duration) -> Duration {
    /// What a sleep takes at the least, on Linux.
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
    fn pauses_grow_with_the_time_since_the_last_command_up_to_the_longest() {
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
