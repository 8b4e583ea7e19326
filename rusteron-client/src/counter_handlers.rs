//! What C calls when a counter comes or goes.

use std::ffi::c_void;
use std::ptr;

use rusteron_sys as sys;

use crate::counters_reader::CountersReader;
use crate::error::Result;
use crate::ffi::Fallible;
use crate::handlers::Handlers;

/// A handler of counters that come or go, given the registration id and the counter id.
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

    /// Has these called by the client that will be made with the context.
    ///
    /// # Safety
    /// The context is live, no client uses it yet, and `self` stays where it is until both are gone.
    pub(crate) unsafe fn install(&self, context: *mut sys::aeron_context_t) -> Result<()> {
        let clientd = ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: handed on to the caller; C stores both addresses.
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
