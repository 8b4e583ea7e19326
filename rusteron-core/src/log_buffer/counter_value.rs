//! The value of a counter that the driver has allocated for a handle of this client.

use std::sync::atomic::{AtomicI64, Ordering};

use rusteron_sys as sys;

use crate::log_buffer::protocol;

/// A counter's value, and the registration id that the counter has while it belongs to the handle.
///
/// The driver frees the counters of a client that it regards as dead. After the reuse timeout, 1 s
/// by default, the driver gives these counters to other resources. A client that was stopped for so
/// long learns this when its conductor runs again. Until then, its handles find another
/// registration id beside the value. Nothing orders that comparison and a store after it: a thread
/// that is stopped between the two still stores.
#[derive(Debug, Clone, Copy)]
pub struct CounterValue {
    record: *mut sys::rusteron_counter_value_t,
    registration_id: i64,
}

// SAFETY: the record is mapped as long as this is used, by the contract of `new`, and accessed in atomic steps only,
// on any thread.
unsafe impl Send for CounterValue {}
// SAFETY: as above.
unsafe impl Sync for CounterValue {}

impl CounterValue {
    /// # Safety
    /// `record` is aligned, and mapped as long as this is used; it is written in atomic steps only.
    pub unsafe fn new(record: *mut sys::rusteron_counter_value_t, registration_id: i64) -> Self {
        Self { record, registration_id }
    }

    /// Returns the value, whichever resource owns the counter.
    #[inline(always)]
    pub fn value<'a>(self) -> &'a AtomicI64 {
        // SAFETY: by the contract of `new`.
        unsafe { AtomicI64::from_ptr(&raw mut (*self.record).value) }
    }

    /// Returns whether the counter belongs to the handle.
    #[inline(always)]
    pub fn is_owned(self) -> bool {
        self.registration_id_field().load(Ordering::Relaxed) == self.registration_id
    }

    /// Returns the position in the counter if the counter belongs to the handle.
    #[inline(always)]
    pub fn position(self) -> Option<i64> {
        protocol::owned_position(self.value(), self.registration_id_field(), self.registration_id)
    }

    /// Returns the counter's reference id, such as the correlation id of an image. The id is 0 if
    /// the driver sets none.
    #[inline(always)]
    pub fn reference_id(self) -> i64 {
        // SAFETY: by the contract of `new`. Relaxed: compared only.
        unsafe { AtomicI64::from_ptr(&raw mut (*self.record).reference_id).load(Ordering::Relaxed) }
    }

    /// Sets the counter's reference id with release, whichever resource owns the counter.
    pub fn set_reference_id(self, reference_id: i64) {
        // SAFETY: by the contract of `new`.
        unsafe {
            AtomicI64::from_ptr(&raw mut (*self.record).reference_id)
                .store(reference_id, Ordering::Release);
        }
    }

    #[inline(always)]
    fn registration_id_field<'a>(self) -> &'a AtomicI64 {
        // SAFETY: by the contract of `new`.
        unsafe { AtomicI64::from_ptr(&raw mut (*self.record).registration_id) }
    }
}
