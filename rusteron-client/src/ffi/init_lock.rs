//! The lock around the making of contexts.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// To be held while C makes a context, whoever's: it reads the user's name, a part of the default
/// directory, into a buffer that all threads share (`aeron_fileutil.c`, `username`), and writes to the
/// driver's static bindings (`aeron_udp_channel_transport_bindings.c`); and while those are read.
pub fn lock_context_init() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
