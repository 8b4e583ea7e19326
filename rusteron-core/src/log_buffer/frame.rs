//! The layout of frames in a log buffer, and their writing.
//!
//! This module mirrors `aeron_udp_protocol.h` and `aeron_logbuffer_descriptor.h`. The layout is
//! also Aeron's wire format and does not change within a major version.

#[cfg(target_arch = "x86_64")]
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::log_buffer::protocol;

/// The length of a data frame's header, in bytes.
pub const HEADER_LENGTH: usize = 32;
/// Frames start at multiples of this many bytes.
pub const FRAME_ALIGNMENT: usize = 32;

/// The offset in a header of the frame's length.
pub const FRAME_LENGTH: usize = 0;
/// The offset of the version.
pub const VERSION: usize = 4;
/// The offset of the flags.
pub const FLAGS: usize = 5;
/// The offset of the frame's type.
pub const TYPE: usize = 6;
/// The offset of the frame's own offset in its term.
pub const TERM_OFFSET: usize = 8;
/// The offset of the session id.
pub const SESSION_ID: usize = 12;
/// The offset of the stream id.
pub const STREAM_ID: usize = 16;
/// The offset of the term id.
pub const TERM_ID: usize = 20;
/// The offset of the reserved value.
pub const RESERVED_VALUE: usize = 24;

/// The version of frames that Aeron writes.
pub const CURRENT_VERSION: u8 = 0;
/// The flag of a message's first frame.
pub const BEGIN_FLAG: u8 = 0x80;
/// The flag of a message's last frame.
pub const END_FLAG: u8 = 0x40;
/// The type of padding.
pub const TYPE_PAD: u16 = 0x00;
/// The type of frames with data.
pub const TYPE_DATA: u16 = 0x01;

/// Returns the aligned length that a frame of `length` bytes, header included, occupies in the log.
#[inline(always)]
pub const fn align(length: usize) -> usize {
    (length + (FRAME_ALIGNMENT - 1)) & !(FRAME_ALIGNMENT - 1)
}

/// The header fields that all frames of a publication share, in the words that are written.
#[derive(Debug, Clone, Copy)]
pub struct FrameIds {
    /// The session id, in the half of the word where it is written: behind the term offset.
    session: i64,
    stream: i64,
}

impl FrameIds {
    /// Puts the ids into the words of a header.
    pub fn new(session_id: i32, stream_id: i32) -> Self {
        const _: () = assert!(SESSION_ID == TERM_OFFSET + 4 && TERM_ID == STREAM_ID + 4);
        Self {
            session: low_half_first(i64::from(session_id) << 32),
            stream: i64::from(stream_id as u32),
        }
    }
}

/// Arranges a word so that its lower half comes first in memory.
#[inline(always)]
pub fn low_half_first(word: i64) -> i64 {
    if cfg!(target_endian = "big") { word.rotate_left(32) } else { word }
}

/// Begins a data frame that is a whole message: writes everything but the payload and the positive
/// length.
///
/// # Safety
/// The `frame_length` bytes from `frame`, header included, are mapped, aligned to 32 bytes, and
/// this publisher's. Nothing else reads the frame before its length turns positive.
/// `raw_tail` is the tail of a term that would end here.
#[inline(always)]
pub unsafe fn begin_frame(frame: *mut u8, frame_length: i32, raw_tail: i64, ids: FrameIds) {
    // SAFETY: by the contract.
    unsafe {
        protocol::begin_frame(frame_length_of(frame), frame_length);
        write_header(frame, raw_tail, ids);
    }
}

/// Writes the header of a frame that is a whole message, without the frame's length. The reserved
/// value stays 0, as the driver's cleaning made it.
///
/// The header takes as few stores as possible. If a subscriber on another processor reads the
/// frame, stores that are still pending have to wait until the cache line is back.
///
/// # Safety
/// As for [`begin_frame`].
#[inline(always)]
pub unsafe fn write_header(frame: *mut u8, raw_tail: i64, ids: FrameIds) {
    let offset = raw_tail & 0xffff_ffff;
    // The stream id replaces the offset.
    let stream_and_term_id = low_half_first(raw_tail + (ids.stream - offset));
    // SAFETY: by the contract.
    unsafe {
        frame.add(VERSION).write(CURRENT_VERSION);
        frame.add(FLAGS).write(BEGIN_FLAG | END_FLAG);
        frame.add(TYPE).cast::<u16>().write(TYPE_DATA);
        frame.add(TERM_OFFSET).cast::<i64>().write(low_half_first(offset) | ids.session);
        frame.add(STREAM_ID).cast::<i64>().write(stream_and_term_id);
    }
}

/// Writes a whole padding frame, which subscribers skip.
///
/// # Safety
/// As for [`begin_frame`].
#[cold]
pub unsafe fn write_padding(frame: *mut u8, frame_length: i32, raw_tail: i64, ids: FrameIds) {
    // SAFETY: by the contract.
    unsafe {
        begin_frame(frame, frame_length, raw_tail, ids);
        frame.add(TYPE).cast::<u16>().write(TYPE_PAD);
        protocol::publish_frame(frame_length_of(frame), frame_length);
    }
}

/// Fetches the cache line `DISTANCE` bytes from the address for a store that comes soon. Otherwise, a load that comes first
/// would fetch the line shared, and the store would ask the other cores again. The line need not be mapped.
#[inline(always)]
pub fn prefetch_for_write<const DISTANCE: usize>(address: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint, which cannot fault and changes neither memory nor registers. Processors without it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{} + {}]", in(reg) address, const DISTANCE, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Returns the length field of the frame at an address.
///
/// # Safety
/// For `'a`, the frame is mapped and aligned to 32 bytes.
#[inline(always)]
pub unsafe fn frame_length_of<'a>(frame: *mut u8) -> &'a AtomicI32 {
    // SAFETY: by the contract, and all parties access this field atomically.
    unsafe { AtomicI32::from_ptr(frame.add(FRAME_LENGTH).cast()) }
}

/// Returns whether the claimed range is still as it was cleaned: the media driver has not unblocked
/// it while its publisher was held up.
///
/// # Safety
/// As for [`frame_length_of`].
#[inline(always)]
pub unsafe fn is_vacant(frame: *mut u8) -> bool {
    // SAFETY: by the contract. Relaxed: nothing is read on the strength of it.
    unsafe { frame_length_of(frame).load(Ordering::Relaxed) == 0 }
}

/// Copies the payload into a frame. Most payloads are short and are copied without a call.
///
/// # Safety
/// The frame at `frame` is aligned to 32 bytes, and writable for a header and `payload.len()` bytes, which
/// are no part of `payload`.
#[inline(always)]
pub unsafe fn copy_payload(payload: &[u8], frame: *mut u8) {
    let length = payload.len();
    // SAFETY: by the contract; the lengths are those that the function asks for.
    unsafe {
        let (source, target) = (payload.as_ptr(), frame.add(HEADER_LENGTH));
        if length.wrapping_sub(16) <= 16 {
            copy_ends::<16>(source, target, length);
        } else if length > 64 {
            copy_by_call(payload, frame);
        } else if length > 32 {
            copy_ends::<32>(source, target, length);
        } else if length >= 8 {
            copy_ends::<8>(source, target, length);
        } else if length >= 4 {
            copy_ends::<4>(source, target, length);
        } else {
            copy_by_call(payload, frame);
        }
    }
}

/// Copies `N` to `2 * N` bytes: the first and the last `N`, which may overlap.
///
/// # Safety
/// `length` bytes, from `N` to `2 * N`, can be read at `source` and written at `target`.
#[inline(always)]
unsafe fn copy_ends<const N: usize>(source: *const u8, target: *mut u8, length: usize) {
    // SAFETY: by the contract.
    unsafe {
        let last = length - N;
        ptr::copy_nonoverlapping(source, target, N);
        ptr::copy_nonoverlapping(source.add(last), target.add(last), N);
    }
}

/// Copies a payload by an outlined call. Inlining this code makes short payloads slower.
///
/// # Safety
/// As for [`copy_payload`].
#[cold]
#[inline(never)]
unsafe fn copy_by_call(payload: &[u8], frame: *mut u8) {
    // SAFETY: by the contract; the header's length keeps the alignment.
    unsafe {
        let target = frame.add(HEADER_LENGTH);
        #[cfg(target_arch = "x86_64")]
        let copied = copy_forward(payload, target);
        #[cfg(not(target_arch = "x86_64"))]
        let copied = 0;
        let rest = &payload[copied..];
        ptr::copy_nonoverlapping(rest.as_ptr(), target.add(copied), rest.len());
    }
}

/// Copies most of a long payload, one cache line at a time, and returns the number of copied bytes.
///
/// Log buffers are usually larger than caches. Outside the cache, this takes a tenth to a fifth
/// less time than the C library's function, which stores more at a time. For frames of a page it
/// takes a tenth more, so the C library copies those. Within a cache it takes a third to a half
/// more. That is still much less than the time in which a message gets to a subscriber.
///
/// # Safety
/// `target` is aligned to 32 bytes, and writable for `payload.len()` bytes, which are no part of `payload`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn copy_forward(payload: &[u8], target: *mut u8) -> usize {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_store_si128};
    const LENGTHS: RangeInclusive<usize> = 256..=3072;
    type Line = [__m128i; 4];
    if !LENGTHS.contains(&payload.len()) {
        return 0;
    }
    let lines = payload.chunks_exact(size_of::<Line>());
    let copied = payload.len() - lines.remainder().len();
    for (number, line) in lines.enumerate() {
        // SAFETY: each line lies within the payload and, by the contract, the target. Stores need 16-byte
        // alignment, which each multiple of 16 bytes from the target has. Every x86-64 processor has these
        // instructions.
        unsafe {
            let source = line.as_ptr().cast::<__m128i>();
            let target = target.cast::<Line>().add(number).cast::<__m128i>();
            let pieces = [0, 1, 2, 3].map(|piece| _mm_loadu_si128(source.add(piece)));
            for (piece, value) in pieces.into_iter().enumerate() {
                _mm_store_si128(target.add(piece), value);
            }
        }
    }
    copied
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
