//! Asking a media driver to end.

use std::path::Path;

use rusteron_sys as sys;

use crate::cnc::refusal::{Access, Refusal};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::{Fallible, c_path};

/// Asks the media driver in `dir` to end. The driver's termination validator receives `token` and
/// decides. By default it refuses.
///
/// Needs no client. Does not block: the request is in the driver's command buffer when this
/// returns. The driver's decision is not reported.
///
/// # Errors
/// - [`ErrorKind::DriverTimeout`]: there is no CnC file of a driver in the directory;
/// - [`ErrorKind::InvalidArgument`]: the token is longer than 4,096 bytes or than the driver's
///   command buffer accepts, or the file does not belong to a driver that this client can talk to;
/// - [`ErrorKind::BufferFull`]: the driver's command buffer is full; try again;
/// - [`ErrorKind::Io`]: this process may not read and write the file.
///
/// ```
/// use rusteron_client::request_driver_termination;
/// use rusteron_media_driver::MediaDriver;
///
/// # fn main() -> Result<(), rusteron_client::Error> {
/// let driver = MediaDriver::launch_embedded()?;
/// request_driver_termination(driver.aeron_dir(), b"please")?;
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_context_request_driver_termination`.
#[doc(alias = "aeron_context_request_driver_termination")]
pub fn request_driver_termination(dir: impl AsRef<Path>, token: &[u8]) -> Result<()> {
    let dir = dir.as_ref();
    let name = c_path("dir", dir)?;
    let absent = || {
        let text = format!("no media driver's CnC file in {}", dir.display());
        Error::new(ErrorKind::DriverTimeout, text)
    };
    if let Some(refusal) = Refusal::find(dir, Access::ReadWrite) {
        return Err(refusal.to_error());
    }
    if !dir.join("cnc.dat").is_file() {
        return Err(absent());
    }
    // SAFETY: the directory is a terminated string, and the token is readable for its length; C
    // maps the file for the duration of the call and checks all lengths in it.
    let sent = unsafe {
        sys::aeron_context_request_driver_termination(name.as_ptr(), token.as_ptr(), token.len())
    };
    match sent.into_result()? {
        // The file exists, but is not initialised yet.
        0 => Err(absent()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_to_nobody_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let error = request_driver_termination(dir.path(), b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DriverTimeout);
        assert!(error.to_string().contains(&dir.path().display().to_string()), "{error}");

        std::fs::write(dir.path().join("cnc.dat"), [0; 64]).expect("a file");
        let error = request_driver_termination(dir.path(), b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DriverTimeout);

        std::fs::write(dir.path().join("cnc.dat"), [0; 4096]).expect("a file");
        let error = request_driver_termination(dir.path(), b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("not initialised"), "{error:?}");
    }

    #[test]
    fn a_token_longer_than_aeron_takes_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("cnc.dat"), [0; 4096]).expect("a file");
        let error = request_driver_termination(dir.path(), &[0; 4097]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("Token too long"), "{error:?}");
    }
}
