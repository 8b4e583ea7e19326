//! The reason why a client has closed, noted when it closes.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Instant;

use rusteron_core::cnc::{CountersReader, DriverWatch};
use rusteron_core::error::{CloseCause, Error, ErrorKind};
use rusteron_sys as sys;

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
    /// `None` if the operating system cannot tell whether the driver's process has ended.
    watch: OnceLock<DriverWatch>,
    /// The time of the first look at driver and clocks.
    first_look: OnceLock<Instant>,
    /// The time of the last look, in milliseconds after the first.
    last_look: AtomicU64,
}

impl CloseState {
    /// # Safety
    /// The client is live, and this value is not used after the client has been freed.
    pub(crate) unsafe fn set_client(&self, client: *mut sys::aeron_t) {
        self.client.store(client, Ordering::Release);
    }

    /// Watches the driver that the client has mapped.
    pub(crate) fn watch_driver(&self) {
        // SAFETY: live by the contract of `set_client`, which comes first.
        let watch = unsafe { DriverWatch::of_client(self.client.load(Ordering::Acquire)) };
        if let Some(watch) = watch {
            let _ = self.watch.set(watch);
        }
    }

    /// Looks whether the driver's process has ended, and whether the wall clock has stepped, unless
    /// the last look is recent. Returns whether this look has found the driver's end. The next duty
    /// cycle of the conductor then closes the client.
    ///
    /// # Safety
    /// Called between two duty cycles of the conductor, on the thread that runs them.
    pub(crate) unsafe fn look_for_driver(&self, now: Instant) -> bool {
        /// A look is a system call of less than a microsecond.
        const INTERVAL: u64 = 5;
        let first_look = *self.first_look.get_or_init(|| now);
        let millis = u64::try_from(now.duration_since(first_look).as_millis()).unwrap_or(0);
        if millis < self.last_look.load(Ordering::Relaxed) + INTERVAL {
            return false;
        }
        self.last_look.store(millis, Ordering::Relaxed);
        let client = self.client.load(Ordering::Acquire);
        // SAFETY: the client is live by the contract of `set_client`.
        if client.is_null() || unsafe { sys::aeron_is_closed(client) } {
            return false;
        }
        // SAFETY: as above, and the conductor rests.
        unsafe { sys::rusteron_client_follow_clock(client) };
        if !self.watch.get().is_some_and(DriverWatch::is_gone) {
            return false;
        }
        // SAFETY: as above.
        unsafe { sys::rusteron_client_end_driver(client) };
        true
    }

    /// Replaces C's text for a driver whose process has ended: C only knows that it is silent.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match self.cause() {
            Some(cause @ CloseCause::DriverGone { .. })
                if error.kind() == ErrorKind::DriverTimeout =>
            {
                Error::from_code(error.code(), cause.with_advice())
            }
            _ => error,
        }
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
            let is_silent = end.code.unsigned_abs() == sys::AERON_CLIENT_ERROR_DRIVER_TIMEOUT
                && !end.is_driver_shut_down;
            if let Some(watch) = self.watch.get().filter(|watch| is_silent && watch.is_gone()) {
                return CloseCause::DriverGone { pid: watch.pid() };
            }
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
