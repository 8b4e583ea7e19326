//! Callbacks that C calls when a counter comes or goes.

use std::ffi::c_void;
use std::sync::Arc;

use rusteron_sys as sys;

use crate::context::Context;
use rusteron_core::cnc::CountersReader;
use rusteron_core::error::Result;
use rusteron_core::ffi::Fallible;
use rusteron_core::ffi::handlers::Handlers;

/// A handler of counters that come or go. It gets the registration id and the counter id.
pub(crate) type CounterHandler = dyn FnMut(&CountersReader<'_>, i64, i32) + Send;

/// The handlers of a client for counters of all clients of its driver.
pub(crate) struct CounterHandlers {
    pub(crate) available: Handlers<CounterHandler>,
    pub(crate) unavailable: Handlers<CounterHandler>,
}

impl CounterHandlers {
    pub(crate) fn new() -> Self {
        Self {
            available: Handlers::new("available counter handler"),
            unavailable: Handlers::new("unavailable counter handler"),
        }
    }

    /// Installs these handlers in a context. The client that will be made with the context calls
    /// them.
    ///
    /// # Safety
    /// The context is live, no client uses it yet, and `self` lives until both are gone.
    pub(crate) unsafe fn install(
        self: &Arc<Self>,
        context: *mut sys::aeron_context_t,
    ) -> Result<()> {
        let clientd = Arc::as_ptr(self).cast_mut().cast::<c_void>();
        // SAFETY: the caller guarantees that `self` outlives the context and its client, in which C stores
        // the address.
        unsafe {
            sys::aeron_context_set_on_available_counter(context, Some(on_available), clientd)
        }
        .into_result()?;
        // SAFETY: as above.
        let set = unsafe {
            sys::aeron_context_set_on_unavailable_counter(context, Some(on_unavailable), clientd)
        };
        set.into_result().map(drop)
    }
}

impl Context {
    /// Sets the handler that is called when any client of the driver, also this one, has added a
    /// counter. Static counters are excluded. The handler replaces the previous one.
    ///
    /// The handler gets a reader, the registration id and the counter id. Drivers also announce the
    /// heartbeat counter of each client in this way, with the client id as registration id.
    ///
    /// The handler runs on the conductor thread, as described at
    /// [`set_error_handler`](Self::set_error_handler). It runs on one thread at a time, and lives
    /// as long as the client.
    /// [`Aeron::add_available_counter_handler`](crate::Aeron::add_available_counter_handler) adds
    /// handlers that can be removed.
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_on_available_counter`.
    #[doc(alias = "aeron_context_set_on_available_counter")]
    pub fn set_on_available_counter(
        &mut self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> Result<&mut Self> {
        self.on_available_counter = None;
        self.on_available_counter = Some(self.counter_handlers.available.add(Box::new(handler)));
        Ok(self)
    }

    /// Sets the handler that is called when a counter goes, because its client has dropped it or is
    /// gone. Static counters are excluded. The handler replaces the previous one.
    ///
    /// The handler gets a reader, the registration id and the counter id. The counter can already
    /// be freed. Everything else is as with
    /// [`set_on_available_counter`](Self::set_on_available_counter).
    ///
    /// # Errors
    /// As for [`set_error_handler`](Self::set_error_handler).
    ///
    /// Corresponds to `aeron_context_set_on_unavailable_counter`.
    #[doc(alias = "aeron_context_set_on_unavailable_counter")]
    pub fn set_on_unavailable_counter(
        &mut self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> Result<&mut Self> {
        self.on_unavailable_counter = None;
        self.on_unavailable_counter =
            Some(self.counter_handlers.unavailable.add(Box::new(handler)));
        Ok(self)
    }
}

unsafe extern "C" fn on_available(
    clientd: *mut c_void,
    reader: *mut sys::aeron_counters_reader_t,
    registration_id: i64,
    counter_id: i32,
) {
    // SAFETY: `clientd` is what `install` gave to C, and outlives the client that calls.
    let handlers = unsafe { &*clientd.cast::<CounterHandlers>() };
    // SAFETY: C passes the reader of the client that calls, which is live meanwhile.
    let reader = unsafe { CountersReader::from_raw(reader) };
    handlers.available.call(|handler| handler(&reader, registration_id, counter_id));
}

unsafe extern "C" fn on_unavailable(
    clientd: *mut c_void,
    reader: *mut sys::aeron_counters_reader_t,
    registration_id: i64,
    counter_id: i32,
) {
    // SAFETY: as in `on_available`.
    let handlers = unsafe { &*clientd.cast::<CounterHandlers>() };
    // SAFETY: as in `on_available`.
    let reader = unsafe { CountersReader::from_raw(reader) };
    handlers.unavailable.call(|handler| handler(&reader, registration_id, counter_id));
}
