//! Publications and subscriptions of addresses that were just closed.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{ErrorKind, Result};

/// Adds a publication or subscription. Tries again until the deadline while the driver closes a socket of the address:
/// the last session over UDP may have used the same.
pub(crate) fn added<T>(mut add: impl FnMut() -> Result<T>, deadline: Instant) -> Result<T> {
    loop {
        match add() {
            Err(error) if is_closing(error.kind()) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

/// The driver knows the socket, or has forgotten the socket and closes its descriptor.
fn is_closing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ResourceTemporarilyUnavailable | ErrorKind::Io(io::ErrorKind::AddrInUse)
    )
}
