//! Forks: what a handle may do in another process than the one that made it.
//!
//! A forked child inherits handles, but not the threads behind them. There a drop does nothing, and a
//! use is an error. The message path needs no check: a [`ForkGuard`] makes what it reads say that the
//! handle is closed, before the child runs.
//!
//! Zeros replace memory in the child before `fork` returns: the CnC file, the log buffers of publications, the
//! files by which a driver is known to run, and mark files (`pthread_atfork` in `rusteron_fork.c`). The
//! registration ids beside positions are then those of no handle, and the frame of the parent's claim is gone.
//! Whatever the child writes there stays its own. If a poll handler forks, the poll goes on in both processes,
//! and in the child its message can turn into zeros.
//!
//! Locks of static values begin anew in the child, as a thread of the parent may have held them; locks of
//! handles are not taken. A `CncFile` and an unconnected `Context` stay usable. `vfork` and `posix_spawn` are
//! unaffected, and a fork that bypasses libc goes unnoticed. Until it ends or executes another program, the
//! child keeps the sockets of an embedded driver open.

use std::ops::Deref;
use std::process;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusteron_sys as sys;

use crate::error::{CloseCause, Error, Result};

/// The process that made a handle.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    id: u32,
    /// Unlike an id, never that of two processes of which one has forked the other.
    forks: u64,
}

impl Process {
    /// Returns this process.
    pub fn current() -> Self {
        Self { id: process::id(), forks: forks() }
    }

    /// Returns whether this is the current process.
    pub fn is_current(self) -> bool {
        self.forks == forks()
    }

    /// Returns an error in another process.
    ///
    /// # Errors
    /// [`ErrorKind::ClientClosed`](crate::ErrorKind::ClientClosed): the error names both processes.
    pub fn check(self) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        let cause = self.close_cause();
        Err(Error::closed(cause, cause.to_string()))
    }

    /// Returns the reason why a handle that this process made is closed in another one.
    pub fn close_cause(self) -> CloseCause {
        CloseCause::Forked { pid: self.id }
    }
}

fn forks() -> u64 {
    if cfg!(miri) {
        return 0; // there is no C code
    }
    // SAFETY: reads a number that changes in a new process only, before its first thread goes on.
    unsafe { sys::rusteron_fork_count() }
}

/// Keeps a forked child from memory of its parent: see `rusteron_fork_guard_t` in the shim.
pub struct ForkGuard(NonNull<sys::rusteron_fork_guard_t>);

// SAFETY: the structure is the shim's, which changes it under a lock.
unsafe impl Send for ForkGuard {}
// SAFETY: as above; a shared reference allows nothing.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// Replaces a mapping by zeros in a forked child.
    ///
    /// # Safety
    /// `address` and `length` are those of a whole mapping, which lives as long as the guard. Each
    /// access allows that its bytes turn to zero.
    pub unsafe fn of_mapping(address: *mut u8, length: usize) -> Self {
        // SAFETY: the caller guarantees a whole mapping that outlives the guard; there is no flag.
        unsafe { Self::new(address, length, ptr::null_mut()) }
    }

    /// As [`of_mapping`](Self::of_mapping), and sets a flag. A length of 0 stands for no mapping.
    ///
    /// # Safety
    /// As for [`of_mapping`](Self::of_mapping). The flag lives as long as the guard, and is read and
    /// written in atomic steps.
    pub unsafe fn new(address: *mut u8, length: usize, flag: *mut bool) -> Self {
        let (next, previous) = (ptr::null_mut(), ptr::null_mut());
        let guard =
            sys::rusteron_fork_guard_t { next, previous, address: address.cast(), length, flag };
        let guard = Self(NonNull::from(Box::leak(Box::new(guard))));
        // SAFETY: the structure stays where it is until it is removed and freed; for what it
        // describes see the caller.
        unsafe { sys::rusteron_fork_guard_add(guard.0.as_ptr()) };
        guard
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        // SAFETY: added by `new`, and removed once; made of a box there.
        unsafe {
            sys::rusteron_fork_guard_remove(self.0.as_ptr());
            drop(Box::from_raw(self.0.as_ptr()));
        }
    }
}

crate::impl_debug!(ForkGuard);

/// A static value that each process begins anew. So a forked child neither waits for a lock of its
/// parent's threads, nor expects these threads to work for it.
#[derive(Debug)]
pub struct PerProcess<T> {
    current: AtomicPtr<(Process, T)>,
}

impl<T> PerProcess<T> {
    /// Makes a value that begins with its default.
    #[allow(clippy::new_without_default, reason = "for statics")]
    pub const fn new() -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl<T: Default + Send + Sync + 'static> Deref for PerProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let known = self.current.load(Ordering::Acquire);
        // SAFETY: null, or a box that is never freed.
        if let Some((process, value)) = unsafe { known.cast_const().as_ref() } {
            if process.is_current() {
                return value;
            }
        }
        // The value of the parent is leaked: threads that are gone may have left it in any state.
        let made = Box::into_raw(Box::new((Process::current(), T::default())));
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let current = match self.current.compare_exchange(known, made, order.0, order.1) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: made above, and not shared. Another thread was faster.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
        // SAFETY: a box that is never freed.
        unsafe { &(*current).1 }
    }
}

/// Locks the initialization of C contexts. Hold the lock while C makes a context of any kind, and
/// while these static data are read.
///
/// C reads the user's name, a part of the default directory, into a buffer that all threads share
/// (`aeron_fileutil.c`, `username`). C also writes to the driver's static bindings
/// (`aeron_udp_channel_transport_bindings.c`).
pub fn lock_context_init() -> MutexGuard<'static, ()> {
    static LOCK: PerProcess<Mutex<()>> = PerProcess::new();
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_shared_within_a_process() {
        static VALUE: PerProcess<Mutex<u32>> = PerProcess::new();
        let add = || *VALUE.lock().expect("no panic") += 1;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(add);
            }
        });
        assert_eq!(*VALUE.lock().expect("no panic"), 4);
    }

    #[test]
    fn handle_is_usable_where_it_was_made() {
        let process = Process::current();
        assert!(process.is_current());
        assert!(process.check().is_ok());
        let other = Process { forks: process.forks + 1, ..process };
        let error = other.check().unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::ClientClosed);
        let text = error.to_string();
        assert!(text.contains(&format!("made by process {}", process::id())), "{text}");
    }
}
