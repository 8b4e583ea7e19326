//! Checks a directory for a running driver.

use std::path::Path;
use std::time::Duration;

use rusteron_core::cnc::CncFile;
use rusteron_core::{ErrorKind, Result};

/// Returns whether a media driver is using a directory: its files are there, and its last heartbeat
/// is within the timeout. The timeout is usually the [driver
/// timeout](crate::Context::driver_timeout), 10 s.
///
/// A driver that was closed is not active. A driver that was killed stays active until the timeout
/// is over, unless its process has [provably ended](rusteron_core::cnc::CncFile::has_died). Files of
/// another program, or of another version of the protocol, do not count.
///
/// If a driver is creating its files, waits for it up to the timeout.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a path that is empty or too
/// long.
///
/// ```
/// use std::time::Duration;
/// use rusteron_media_driver::{MediaDriver, is_driver_active};
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let driver = MediaDriver::launch_embedded()?;
/// let dir = driver.aeron_dir().to_owned();
/// assert!(is_driver_active(&dir, Duration::from_secs(10))?);
///
/// drop(driver);
/// assert!(!is_driver_active(&dir, Duration::from_secs(10))?);
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_is_driver_active`, which believes the lengths that it finds in the file.
#[doc(alias = "aeron_is_driver_active")]
pub fn is_driver_active(dir: impl AsRef<Path>, timeout: Duration) -> Result<bool> {
    let dir = dir.as_ref();
    let is_there = dir.join("cnc.dat").is_file();
    match CncFile::open(dir, if is_there { timeout } else { Duration::ZERO }) {
        Ok(cnc) => Ok(cnc.is_active(timeout)),
        Err(error) if error.kind() == ErrorKind::InvalidArgument => Err(error),
        Err(_) => Ok(false),
    }
}
