//! Taking over the directory of a driver that has died.
//!
//! Once the kernel has proved that the dead driver's process has ended (`rusteron_core::cnc`), the start of a
//! driver writes an old heartbeat into the dead driver's `cnc.dat`, so that Aeron's own check passes.

use std::ffi::c_int;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_core::Result;
use rusteron_core::cnc::gone_driver;
use rusteron_core::ffi;
use rusteron_sys as sys;

/// A lock on the parent of a driver's directory. While it is held, no other driver of this project
/// starts in a directory beside it: Aeron's start deletes a directory, and makes it anew.
#[derive(Debug)]
pub(crate) struct Takeover(Option<c_int>);

impl Takeover {
    /// Waits for the lock. A directory that cannot be locked, or not in time, is used without one,
    /// as Aeron does: other users may lock a parent such as `/dev/shm`.
    ///
    /// If the process of the driver that was there has provably ended, writes so into its file.
    /// Aeron then takes its heartbeat for old.
    pub(crate) fn begin(dir: &Path, timeout: Duration) -> Result<Self> {
        const PAUSE: Duration = Duration::from_millis(1);
        let parent = ffi::c_path("dir", dir.parent().unwrap_or(dir))?;
        let start = Instant::now();
        let lock = loop {
            // SAFETY: a terminated string.
            match unsafe { sys::rusteron_lock_dir(parent.as_ptr()) } {
                sys::RUSTERON_LOCK_BUSY if start.elapsed() < timeout => thread::sleep(PAUSE),
                lock => break (lock >= 0).then_some(lock),
            }
        };
        let takeover = Self(lock);
        let name = ffi::c_path("dir", dir)?;
        if let Some((start_timestamp, pid)) = gone_driver(&name) {
            // SAFETY: a terminated string.
            unsafe { sys::rusteron_driver_mark_gone(name.as_ptr(), start_timestamp, pid) };
        }
        Ok(takeover)
    }
}

impl Drop for Takeover {
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            // SAFETY: opened by the shim, and closed once.
            unsafe { sys::rusteron_unlock_dir(lock) }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::env;
    use std::fs;
    use std::os::fd::BorrowedFd;
    use std::process;

    #[test]
    fn child_that_inherited_the_lock_does_not_keep_it() {
        let parent = env::temp_dir().join(format!("rusteron-takeover-{}", process::id()));
        fs::create_dir(&parent).expect("a directory of its own");
        let dir = parent.join("driver");
        let takeover = Takeover::begin(&dir, Duration::ZERO).expect("a usable path");
        let lock = takeover.0.expect("the directory is free");
        // A forked child has such a descriptor of the same lock.
        // SAFETY: open until `takeover` is dropped.
        let inherited = unsafe { BorrowedFd::borrow_raw(lock) }.try_clone_to_owned();
        let contender = Takeover::begin(&dir, Duration::ZERO).expect("a usable path");
        assert!(contender.0.is_none(), "the lock is held");
        drop(takeover);
        let next = Takeover::begin(&dir, Duration::ZERO).expect("a usable path");
        assert!(next.0.is_some(), "the lock was left to {inherited:?}");
        drop(next);
        fs::remove_dir(&parent).expect("an empty directory");
    }
}
