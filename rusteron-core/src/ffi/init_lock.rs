//! The lock for the initialization of contexts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ffi::PerProcess;

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
