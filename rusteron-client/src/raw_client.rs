//! The C client behind a handle, for crates that call further C functions with it, such as an archive's client.

use rusteron_core::cnc::ClientIdentity;
#[cfg(doc)]
use rusteron_core::error::ErrorKind;
use rusteron_core::error::Result;
use rusteron_core::ffi::callback;
use rusteron_core::ffi::handlers::Handler;
use rusteron_sys as sys;

use crate::aeron::Aeron;
use crate::client::{Counter, registration};
use crate::context::PublicationError;

/// The C client behind a handle, and the rules for calling it.
///
/// C's archive client itself calls C's command functions. For a client without a conductor thread
/// it also calls the functions for the conductor's work. The archive client's functions are
/// therefore called in [`command`](Self::command) or, where nothing may wait, in
/// [`release`](Self::release).
#[derive(Clone, Copy, Debug)]
pub struct RawClient<'a>(&'a Aeron);

impl<'a> RawClient<'a> {
    /// Returns the C client of `aeron`.
    pub fn new(aeron: &'a Aeron) -> Self {
        Self(aeron)
    }

    /// Returns the C client, which is live as long as a handle to it exists.
    pub fn as_ptr(self) -> *mut sys::aeron_t {
        self.0.client().as_ptr()
    }

    /// Returns a name of the client by which later processes find it.
    pub fn identity(self) -> ClientIdentity {
        // SAFETY: the handle keeps the client live.
        unsafe { ClientIdentity::of_client(self.as_ptr()) }
    }

    /// Asks the driver to [close](ClientIdentity::close) a client whose process has ended. Returns whether the command is
    /// on its way.
    pub fn close_ended(self, client: &ClientIdentity) -> bool {
        // SAFETY: as in `identity`.
        unsafe { client.close(self.as_ptr()) }
    }

    /// Returns whether the client has no conductor thread. A waiting caller then has to do the
    /// conductor's work.
    pub fn has_invoker(self) -> bool {
        self.0.client().has_invoker()
    }

    /// Returns whether this process has made the client. Otherwise, it has inherited the client in a
    /// fork, and everything of the client is the parent's.
    pub fn is_of_this_process(self) -> bool {
        !self.0.client().is_inherited()
    }

    /// Adds a handler of the errors that receivers report against the client's publications.
    pub fn add_publication_error_handler(
        self,
        handler: impl FnMut(&PublicationError) + Send + 'static,
    ) -> Handler {
        self.0.add_handler(&self.0.context().publication_error_handlers, Box::new(handler))
    }

    /// Refuses what [`command`](Self::command) would, before a caller waits for a lock. `instead`
    /// names a function that does not wait, if there is one.
    ///
    /// # Errors
    /// - [`ErrorKind::CalledFromConductor`] in a callback of a conductor;
    /// - [`ErrorKind::ClientClosed`] in a forked child.
    pub fn forbid_blocking(self, operation: &str, instead: Option<&str>) -> Result<()> {
        self.0.client().check_process()?;
        callback::forbid_blocking(operation, instead)
    }

    /// Runs a C function that may wait, or send commands to the conductor; `operation` names the
    /// function. If the function has sent commands, the conductor is woken when the function
    /// returns.
    ///
    /// # Errors
    /// [`ErrorKind::CalledFromConductor`] in a callback of a conductor.
    pub fn command<T>(self, operation: &str, call: impl FnOnce() -> T) -> Result<T> {
        callback::forbid_blocking(operation, None)?;
        self.0.client().command(call)
    }

    /// Runs a C function that releases a resource. In a callback of a client without a conductor
    /// thread, the function runs after the callback has ended; otherwise it runs at once. `call`
    /// needs nothing but the C client.
    pub fn release(self, call: impl FnOnce() + Send + 'static) {
        self.0.client().release(call);
    }

    /// Polls until there is an outcome, and yields the processor between polls. For a client
    /// without a conductor thread, does the conductor's work meanwhile.
    ///
    /// # Errors
    /// The errors of `poll`.
    pub fn wait_for<T, E>(self, poll: impl FnMut() -> Result<Option<T>, E>) -> Result<T, E> {
        registration::wait_for(self.0.client(), poll)
    }
}

/// Passes a counter to C. The caller then has to call C's function that closes the counter.
pub fn counter_into_raw(counter: Counter) -> *mut sys::aeron_counter_t {
    counter.into_raw()
}
