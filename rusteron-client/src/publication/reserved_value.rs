//! Reserved values of a message in several fragments.

use std::ops::Range;

use rusteron_core::log_buffer;

/// Returns a function that fills fragments: it writes the payload, and then the reserved value that
/// the supplier returns for it. A panic of the supplier goes through.
pub(crate) fn filler(
    message: &[u8],
    mut supplier: impl FnMut(&[u8]) -> i64,
) -> impl FnMut(Range<usize>, *mut u8) {
    move |part, frame| {
        let payload = &message[part];
        // SAFETY: the publication has begun the frame for this part of the message. The frame is
        // aligned to 32 bytes, and its field lies at 24.
        unsafe { log_buffer::copy_payload(payload, frame) };
        let value = supplier(payload);
        // SAFETY: as above.
        unsafe { frame.add(log_buffer::RESERVED_VALUE).cast::<i64>().write(value) };
    }
}
