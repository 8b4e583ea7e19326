//! Publications and subscriptions of addresses that were just closed.

use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{ErrorKind, Result};

/// Adds a publication or subscription. Tries again until the deadline while the driver closes a socket of the address:
/// the last session over UDP may have used the same.
pub(crate) fn added<T>(mut add: impl FnMut() -> Result<T>, deadline: Instant) -> Result<T> {
    loop {
        match add() {
            Err(error)
                if error.kind() == ErrorKind::ResourceTemporarilyUnavailable
                    && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}
