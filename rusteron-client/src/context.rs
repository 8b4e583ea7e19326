//! The configuration of a client.

use std::fmt;
use std::ptr::{self, NonNull};

use rusteron_sys as sys;

use crate::error::{Error, Result};
use crate::events::{self, Handlers};
use crate::ffi::{self, Fallible};

/// The configuration of a client: the directory of the media driver, timeouts, handlers.
///
/// A new context holds Aeron's defaults, changed by the `AERON_*` environment variables. It is
/// changed by its setters and then given to [`Aeron::connect`](crate::Aeron::connect), after which
/// nothing can change any more.
///
/// ```
/// use std::time::Duration;
/// use rusteron_client::Context;
///
/// # fn main() -> Result<(), rusteron_client::Error> {
/// let mut context = Context::new()?;
/// context.set_dir("/dev/shm/my-driver")?.set_driver_timeout(Duration::from_secs(2))?;
/// assert_eq!(context.driver_timeout(), Duration::from_secs(2));
/// # Ok(())
/// # }
/// ```
pub struct Context {
    raw: NonNull<sys::aeron_context_t>,
    /// What C holds pointers to.
    pub(crate) handlers: Handlers,
}

// SAFETY: the C structure is plain memory without ties to a thread, and the handlers, to which it
// has pointers, are `Send`.
unsafe impl Send for Context {}
// SAFETY: through a shared reference the structure is only read, by the getters, and the handlers
// are not reached at all.
unsafe impl Sync for Context {}

impl Context {
    /// A context with Aeron's defaults and what the `AERON_*` environment variables say.
    ///
    /// Errors that happen in the background are logged, with the crate `log`, until
    /// [`set_error_handler`](Self::set_error_handler) is called.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an environment variable
    /// that cannot be parsed; the text names it.
    ///
    /// Corresponds to `aeron_context_init`.
    pub fn new() -> Result<Self> {
        let mut raw = ptr::null_mut();
        let lock = ffi::lock_context_init();
        // SAFETY: C writes the new structure's address to `raw`, or fails; the lock keeps others
        // from the buffer that it uses.
        unsafe { sys::aeron_context_init(&mut raw) }.into_result()?;
        drop(lock);
        let raw = NonNull::new(raw).ok_or_else(Error::last)?;
        let mut context = Self { raw, handlers: Handlers::default() };
        // C's own default handler ends the process.
        context.set_error_handler(events::log_error)?;
        Ok(context)
    }

    /// The C structure, which lives as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_context_t {
        self.raw.as_ptr()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the structure is live and nobody else's: a client that uses it owns this context
        // and has been closed before. C frees it whatever it returns.
        unsafe { sys::aeron_context_close(self.as_ptr()) };
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("dir", &self.dir())
            .field("client_name", &self.client_name())
            .field("driver_timeout", &self.driver_timeout())
            .finish_non_exhaustive()
    }
}
