//! The configuration of a client.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

use rusteron_sys as sys;

use crate::callback;
use crate::counter_handlers::CounterHandlers;
use crate::counters_reader::CountersReader;
use crate::error::{Error, Result};
use crate::ffi::{self, Fallible};
use crate::handlers::Handler;

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
    /// What C holds a pointer to. Boxed twice, so that the pointer is thin and does not move.
    error_handler: Box<ErrorHandler>,
    /// What C holds a pointer to.
    counter_handlers: Box<CounterHandlers>,
    on_available_counter: Option<Handler>,
    on_unavailable_counter: Option<Handler>,
}

type ErrorHandler = Box<dyn Fn(&Error) + Send + Sync>;

// SAFETY: the C structure is plain memory without ties to a thread, and all that is stored in it
// from here, the handlers, is `Send` by its bound.
unsafe impl Send for Context {}
// SAFETY: through a shared reference the structure is only read, by the getters, and the lists of
// handlers have locks.
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
        // SAFETY: C writes the new structure's address to `raw`, or fails.
        unsafe { sys::aeron_context_init(&mut raw) }.into_result()?;
        let raw = NonNull::new(raw).ok_or_else(Error::last)?;
        let mut context = Self {
            raw,
            error_handler: Box::new(Box::new(log_error)),
            counter_handlers: Box::new(CounterHandlers::new()),
            on_available_counter: None,
            on_unavailable_counter: None,
        };
        // C's own default handler ends the process.
        context.install_error_handler()?;
        // SAFETY: the context is new, and owns the box, which goes after the client.
        unsafe { context.counter_handlers.install(raw.as_ptr()) }?;
        Ok(context)
    }

    /// Sets what is called for an error that happens in the background, where no caller could get
    /// it: a driver that dies, a client that is timed out, a command that cannot be sent.
    ///
    /// The handler runs on the client's conductor thread and keeps it from its work meanwhile; calls
    /// in it that would wait for that thread return
    /// [`ErrorKind::CalledFromConductor`](crate::ErrorKind::CalledFromConductor). It can be called
    /// from two threads at once. A panic in it is logged. It lives as long as the client.
    ///
    /// # Errors
    /// None that a valid context can cause; they are C's.
    ///
    /// Corresponds to `aeron_context_set_error_handler`.
    pub fn set_error_handler(
        &mut self,
        handler: impl Fn(&Error) + Send + Sync + 'static,
    ) -> Result<&mut Self> {
        let previous = std::mem::replace(&mut self.error_handler, Box::new(Box::new(handler)));
        self.install_error_handler()?;
        // Not before C has forgotten it.
        drop(previous);
        Ok(self)
    }

    /// Sets what is called when a client of the driver, this one or another, has added a counter that
    /// is not static; in place of what was set before.
    ///
    /// The handler gets a reader, the registration id and the counter id. Drivers announce the
    /// heartbeat counter of each client in this way as well, with the client id as registration id.
    ///
    /// It runs on the client's conductor thread and keeps it from its work meanwhile; calls in it that
    /// would wait for that thread return
    /// [`ErrorKind::CalledFromConductor`](crate::ErrorKind::CalledFromConductor). A panic in it is
    /// logged. It lives as long as the client;
    /// [`Aeron::add_available_counter_handler`](crate::Aeron::add_available_counter_handler) adds
    /// handlers that can be removed.
    ///
    /// Corresponds to `aeron_context_set_on_available_counter`.
    pub fn set_on_available_counter(
        &mut self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> &mut Self {
        self.on_available_counter = None;
        self.on_available_counter = Some(self.counter_handlers.available.add(Box::new(handler)));
        self
    }

    /// Sets what is called when a counter goes that is not static, because its client has dropped it or
    /// is gone; in place of what was set before.
    ///
    /// The handler gets a reader, the registration id and the counter id. By then the counter can be
    /// freed already. In everything else, it is as with
    /// [`set_on_available_counter`](Self::set_on_available_counter).
    ///
    /// Corresponds to `aeron_context_set_on_unavailable_counter`.
    pub fn set_on_unavailable_counter(
        &mut self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> &mut Self {
        self.on_unavailable_counter = None;
        self.on_unavailable_counter =
            Some(self.counter_handlers.unavailable.add(Box::new(handler)));
        self
    }

    /// The handlers of counters that come and go.
    pub(crate) fn counter_handlers(&self) -> &CounterHandlers {
        &self.counter_handlers
    }

    fn install_error_handler(&mut self) -> Result<()> {
        let clientd = ptr::from_ref(&*self.error_handler).cast_mut().cast::<c_void>();
        // SAFETY: the context is live, and `clientd` points to what `self` owns: the handler stays
        // where it is until it is replaced through this function or dropped with the context, which
        // happens after the client that could call it is gone.
        unsafe { sys::aeron_context_set_error_handler(self.as_ptr(), Some(on_error), clientd) }
            .into_result()?;
        Ok(())
    }

    /// The C structure, which lives as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_context_t {
        self.raw.as_ptr()
    }
}

fn log_error(error: &Error) {
    log::error!("Aeron client: {error}");
}

unsafe extern "C" fn on_error(clientd: *mut c_void, code: c_int, message: *const c_char) {
    // SAFETY: `clientd` is the address that `install_error_handler` gave to C, of a handler that
    // outlives the client, and only shared references to it are ever made while C may call.
    let handler = unsafe { &*clientd.cast::<ErrorHandler>() };
    // SAFETY: C passes a terminated text that lives for the call.
    let message = unsafe { ffi::lossy(message) }.trim_end().to_owned();
    callback::run("error handler", || handler(&Error::from_callback(code, message)));
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
