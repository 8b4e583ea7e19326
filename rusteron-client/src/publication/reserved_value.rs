//! Calls a closure for reserved values from within C's offer.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::slice;

use rusteron_sys as sys;

use crate::log_buffer::{self, HEADER_LENGTH};

/// A supplier during one call of C's `offerv`.
///
/// The call must be `offerv`, with one part. C's `offer` passes the address of a message's first
/// frame with the length of every further frame.
pub(crate) struct Supplier<F> {
    supplier: F,
    panic: Option<Box<dyn Any + Send>>,
}

impl<F: FnMut(&[u8]) -> i64> Supplier<F> {
    /// Passes a supplier to `offer`, which passes it to C. Returns the result of `offer`.
    ///
    /// A panic of the supplier goes through to the caller after C has returned. C finishes every
    /// frame of the message first, so that the stream can go on. From the fragment that caused the
    /// panic on, the frames are padding.
    pub(crate) fn call<R>(
        supplier: F,
        offer: impl FnOnce(sys::aeron_reserved_value_supplier_t, *mut c_void) -> R,
    ) -> R {
        let mut this = Self { supplier, panic: None };
        let returned = offer(Some(Self::supply), ptr::from_mut(&mut this).cast());
        if let Some(payload) = this.panic {
            resume_unwind(payload);
        }
        returned
    }

    unsafe extern "C" fn supply(clientd: *mut c_void, frame: *mut u8, length: usize) -> i64 {
        // SAFETY: the address that `call` passed to C, which calls from there only, one call at a
        // time.
        let this = unsafe { &mut *clientd.cast::<Self>() };
        if this.panic.is_none() {
            // SAFETY: C passes a frame with its length. C has just written the frame's payload, and
            // no other thread writes it.
            let payload =
                unsafe { slice::from_raw_parts(frame.add(HEADER_LENGTH), length - HEADER_LENGTH) };
            // The panic reaches the caller, who knows what the supplier captured.
            match catch_unwind(AssertUnwindSafe(|| (this.supplier)(payload))) {
                Ok(value) => return value,
                Err(panic) => this.panic = Some(panic),
            }
        }
        // SAFETY: a field of the frame, which is not published before this returns. C sets the
        // field before this call and not after.
        unsafe { frame.add(log_buffer::TYPE).cast::<u16>().write(log_buffer::TYPE_PAD) };
        0
    }
}
