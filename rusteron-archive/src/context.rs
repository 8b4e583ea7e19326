//! The configuration of an archive client.

use std::fmt;
use std::ptr::{self, NonNull};

use rusteron_client::ffi::{self, Fallible};
use rusteron_client::{Error, Result};
use rusteron_sys::archive as sys;

/// The configuration of an archive client: control channels, streams, timeouts.
///
/// A new context holds Aeron's defaults, changed by the `AERON_ARCHIVE_*` environment variables.
///
/// ```
/// use std::time::Duration;
/// use rusteron_archive::Context;
///
/// # fn main() -> Result<(), rusteron_archive::Error> {
/// let mut context = Context::new()?;
/// context
///     .set_control_request_channel("aeron:udp?endpoint=localhost:8010")?
///     .set_message_timeout(Duration::from_secs(5))?;
/// assert_eq!(context.control_request_channel(), "aeron:udp?endpoint=localhost:8010");
/// # Ok(())
/// # }
/// ```
pub struct Context {
    raw: NonNull<sys::aeron_archive_context_t>,
}

// SAFETY: the C structure is plain memory without ties to a thread.
unsafe impl Send for Context {}
// SAFETY: through a shared reference the structure is only read, by the getters.
unsafe impl Sync for Context {}

impl Context {
    /// A context with Aeron's defaults and what the environment variables say.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an environment variable
    /// that cannot be parsed.
    ///
    /// Corresponds to `aeron_archive_context_init`.
    pub fn new() -> Result<Self> {
        let mut raw = ptr::null_mut();
        let lock = ffi::lock_context_init();
        // SAFETY: C writes the new structure's address to `raw`, or fails; the lock keeps others
        // from the buffer that it uses.
        unsafe { sys::aeron_archive_context_init(&mut raw) }.into_result()?;
        drop(lock);
        Ok(Self { raw: NonNull::new(raw).ok_or_else(Error::last)? })
    }

    /// The C structure, which lives as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_archive_context_t {
        self.raw.as_ptr()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the structure is live and not used again; no archive client was made with it.
        unsafe { sys::aeron_archive_context_close(self.as_ptr()) };
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("aeron_directory_name", &self.aeron_directory_name())
            .field("control_request_channel", &self.control_request_channel())
            .finish_non_exhaustive()
    }
}
