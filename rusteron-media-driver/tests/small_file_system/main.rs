//! Drivers and clients on small file systems of their own.
//!
//! These tests need a binary of their own: C opens files without `O_CLOEXEC`. A process that another
//! test starts meanwhile would keep the files open, and with them their space.

#![cfg(target_os = "linux")]

use std::sync::{Mutex, MutexGuard, PoisonError};

mod clients;
mod launch;

/// Runs these tests one at a time, because some of them start a process.
fn lock() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
