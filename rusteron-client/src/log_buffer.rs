//! The layout of frames in a log buffer, and access to memory that processes share.
//!
//! Everything here mirrors `aeron_udp_protocol.h` and `aeron_logbuffer_descriptor.h`; the layout is
//! also Aeron's wire format and does not change within a major version.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64};

/// How many term buffers a log has.
pub(crate) const PARTITION_COUNT: usize = 3;
/// The length of a data frame's header, in bytes.
pub(crate) const HEADER_LENGTH: usize = 32;
/// Frames start at multiples of this many bytes.
pub(crate) const FRAME_ALIGNMENT: usize = 32;

pub(crate) const FRAME_LENGTH: usize = 0;
pub(crate) const VERSION: usize = 4;
pub(crate) const FLAGS: usize = 5;
pub(crate) const TYPE: usize = 6;
pub(crate) const TERM_OFFSET: usize = 8;
pub(crate) const SESSION_ID: usize = 12;
pub(crate) const STREAM_ID: usize = 16;
pub(crate) const TERM_ID: usize = 20;
pub(crate) const RESERVED_VALUE: usize = 24;

pub(crate) const CURRENT_VERSION: u8 = 0;
pub(crate) const BEGIN_FLAG: u8 = 0x80;
pub(crate) const END_FLAG: u8 = 0x40;
pub(crate) const TYPE_PAD: u16 = 0x00;
pub(crate) const TYPE_DATA: u16 = 0x01;

/// The length that a frame of `length` bytes, header included, takes up in the log.
#[inline(always)]
pub(crate) const fn align(length: usize) -> usize {
    (length + (FRAME_ALIGNMENT - 1)) & !(FRAME_ALIGNMENT - 1)
}

/// The atomic at an address that C handed out.
///
/// # Safety
/// For `'a`, `address` is aligned, mapped, and written to by others in atomic steps only.
#[inline(always)]
pub(crate) unsafe fn atomic_i64<'a>(address: *mut i64) -> &'a AtomicI64 {
    // SAFETY: handed on to the caller.
    unsafe { AtomicI64::from_ptr(address) }
}

/// As [`atomic_i64`].
///
/// # Safety
/// As for [`atomic_i64`].
#[inline(always)]
pub(crate) unsafe fn atomic_i32<'a>(address: *mut i32) -> &'a AtomicI32 {
    // SAFETY: handed on to the caller.
    unsafe { AtomicI32::from_ptr(address) }
}

/// As [`atomic_i64`].
///
/// # Safety
/// As for [`atomic_i64`]; and the value is 0 or 1, as that of a C `bool` is.
#[inline(always)]
pub(crate) unsafe fn atomic_bool<'a>(address: *mut bool) -> &'a AtomicBool {
    // SAFETY: handed on to the caller.
    unsafe { AtomicBool::from_ptr(address) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusteron_sys::aeron_header_values_frame_t as Frame;
    use std::mem::offset_of;

    #[test]
    fn the_layout_is_the_one_of_the_c_headers() {
        assert_eq!(HEADER_LENGTH, size_of::<Frame>());
        assert_eq!(FRAME_LENGTH, offset_of!(Frame, frame_length));
        assert_eq!(VERSION, offset_of!(Frame, version));
        assert_eq!(FLAGS, offset_of!(Frame, flags));
        assert_eq!(TYPE, offset_of!(Frame, type_));
        assert_eq!(TERM_OFFSET, offset_of!(Frame, term_offset));
        assert_eq!(SESSION_ID, offset_of!(Frame, session_id));
        assert_eq!(STREAM_ID, offset_of!(Frame, stream_id));
        assert_eq!(TERM_ID, offset_of!(Frame, term_id));
        assert_eq!(RESERVED_VALUE, offset_of!(Frame, reserved_value));
    }

    #[test]
    fn frames_are_aligned_upwards() {
        assert_eq!([0, 1, 32, 33, 64].map(align), [0, 32, 32, 64, 64]);
    }
}
