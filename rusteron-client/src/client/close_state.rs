//! The reason why a client has closed, noted when it closes.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusteron_sys as sys;

use crate::cnc::CountersReader;
use crate::error::CloseCause;

/// A client's cause of closing.
///
/// C's conductor first closes the client and its resources, and then calls the error handler. The
/// first thread that asks after that notes the cause: the error handler, or another thread that has
/// found a closed handle before.
#[derive(Default)]
pub(crate) struct CloseState {
    /// The C client, from its start on.
    client: AtomicPtr<sys::aeron_t>,
    cause: OnceLock<CloseCause>,
}

impl CloseState {
    /// # Safety
    /// The client is live, and this value is not used after the client has been freed.
    pub(crate) unsafe fn set_client(&self, client: *mut sys::aeron_t) {
        self.client.store(client, Ordering::Release);
    }

    /// Returns the cause if the client is closed.
    pub(crate) fn cause(&self) -> Option<CloseCause> {
        if let Some(cause) = self.cause.get() {
            return Some(*cause);
        }
        let client = self.client.load(Ordering::Acquire);
        // SAFETY: live by the contract of `set_client`; the function reads an atomic flag.
        if client.is_null() || !unsafe { sys::aeron_is_closed(client) } {
            return None;
        }
        Some(*self.cause.get_or_init(|| {
            let mut end = sys::rusteron_client_end_t {
                code: 0,
                is_driver_shut_down: false,
                elapsed_ms: 0,
                timeout_ms: 0,
            };
            // SAFETY: live and closed, see above.
            unsafe { sys::rusteron_client_end(client, ptr::from_mut(&mut end)) };
            // SAFETY: live, see above.
            CloseCause::from_c(&end, || unsafe { is_timed_out(client) })
        }))
    }
}

/// Returns whether the driver has timed out a client. The conductor may not have noticed this yet.
/// Walks the counters.
///
/// # Safety
/// The client is live.
pub(crate) unsafe fn is_timed_out(client: *mut sys::aeron_t) -> bool {
    let type_id = sys::AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID as i32;
    // SAFETY: the client is live, and with it the counters that it has mapped; its id is a constant.
    let (counters, id) = unsafe {
        let counters = CountersReader::from_raw(sys::aeron_counters_reader(client));
        (counters, sys::aeron_client_id(client))
    };
    counters.find_by_type_id_and_registration_id(type_id, id).is_none()
}
