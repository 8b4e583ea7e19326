//! A frame in an image's log, and the fragment or message that it passes on.

use std::slice;

use rusteron_core::error::Position;
use rusteron_core::log_buffer::{self, HEADER_LENGTH, align, protocol};
use rusteron_sys as sys;

use crate::subscription::assembly::Assembly;
use crate::subscription::image::header::Header;

/// The end of a term, as an address and as a position.
#[derive(Clone, Copy)]
pub(crate) struct Term {
    pub(crate) end: *const u8,
    pub(crate) end_position: Position,
}

impl Term {
    /// Returns the cursor of a limit: its distance from the end of the term, which is negative
    /// within the term. For a limit beyond the term, returns the cursor of the term's end, 0.
    #[inline(always)]
    pub(crate) fn cursor_of(self, limit: Position) -> i64 {
        limit.saturating_sub(self.end_position).min(0)
    }
}

/// A published frame: its length is set, and it does not change while it is used.
pub(crate) struct Frame<'a> {
    image: &'a sys::rusteron_image_t,
    start: *const u8,
    payload_length: usize,
}

impl<'a> Frame<'a> {
    /// Returns the frame at a cursor, if it has been published.
    ///
    /// A length that a frame at this cursor cannot have counts as unpublished. If this client's
    /// conductor is held up for too long, the driver times out the client. The driver then lets
    /// publishers overwrite frames that are being read, and a length may have any value.
    ///
    /// # Safety
    /// The image's log buffer is mapped for the lifetime. `end` is the end of a term. The cursor is
    /// aligned to frames, in the term and before its end, and a frame starts or will start there.
    /// The subscriber position does not move past the frame while the frame is used.
    #[inline(always)]
    pub(crate) unsafe fn at(
        image: &'a sys::rusteron_image_t,
        end: *const u8,
        cursor: i64,
    ) -> Option<Self> {
        const HEADER: u32 = HEADER_LENGTH as u32;
        // SAFETY: by the contract.
        let (start, length) = unsafe {
            let start = end.offset(cursor as isize);
            (start, protocol::published_length(log_buffer::frame_length_of(start.cast_mut())))
        };
        // Huge if the length is negative or shorter than a header. So one comparison covers these
        // cases and a frame that goes beyond the term.
        let payload_length = (length as u32).wrapping_sub(HEADER);
        let fits = i64::from(payload_length) + cursor <= -i64::from(HEADER);
        fits.then_some(Self { image, start, payload_length: payload_length as usize })
    }

    /// Passes the fragment to the handler, unless it is padding. Returns whether the fragment was
    /// passed.
    #[inline(always)]
    pub(crate) fn give_fragment<F>(self, handler: &mut F) -> bool
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        if self.is_padding() {
            return false;
        }
        handler(self.payload(), &self.header());
        true
    }

    /// As [`give_fragment`](Self::give_fragment), for whole messages. A message in a single
    /// fragment costs one comparison, which also excludes padding.
    #[inline(always)]
    pub(crate) fn give_message<F>(self, assembly: &mut Assembly, handler: &mut F) -> bool
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        if self.is_message() {
            handler(self.payload(), &self.header());
        } else if self.is_padding() {
            return false;
        } else {
            assembly.give(self.payload(), &self.header(), handler);
        }
        true
    }

    /// Returns whether the frame is a whole message, and no padding.
    #[inline(always)]
    pub(crate) fn is_message(&self) -> bool {
        const BOTH: u8 = log_buffer::BEGIN_FLAG | log_buffer::END_FLAG;
        const MASK: u32 = u32::from_ne_bytes([0, BOTH, 0xff, 0xff]);
        const DATA: [u8; 2] = log_buffer::TYPE_DATA.to_ne_bytes();
        const WHOLE: u32 = u32::from_ne_bytes([0, BOTH, DATA[0], DATA[1]]);
        // SAFETY: version, flags and type, in this order, in one aligned word of the header.
        let word = unsafe { self.start.add(log_buffer::VERSION).cast::<u32>().read() };
        word & MASK == WHOLE
    }

    /// Returns the length of the frame in the log.
    #[inline(always)]
    pub(crate) fn aligned_length(&self) -> usize {
        align(self.payload_length + HEADER_LENGTH)
    }

    #[inline(always)]
    pub(crate) fn is_padding(&self) -> bool {
        // SAFETY: a field of the published header.
        let kind = unsafe { self.start.add(log_buffer::TYPE).cast::<u16>().read() };
        kind == log_buffer::TYPE_PAD
    }

    /// Returns the payload. No caller asks for the payload of padding, which was never written.
    #[inline(always)]
    pub(crate) fn payload(&self) -> &'a [u8] {
        // SAFETY: a published frame is as long as it says, header included.
        unsafe { slice::from_raw_parts(self.start.add(HEADER_LENGTH), self.payload_length) }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> Header<'a> {
        // SAFETY: published and unchanged, by the type's own contract.
        unsafe { Header::new(self.start, self.image) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use rusteron_core::log_buffer::PARTITION_COUNT;

    use super::*;
    use crate::subscription::image::header::tests::image as no_image;

    const TERM_LENGTH: usize = 64 * 1024;

    /// The length of a frame that another publisher overwrites may have any value.
    #[test]
    fn length_beyond_term_is_no_frame() {
        let mut term = vec![0_u64; TERM_LENGTH / 8];
        let term: *mut u8 = term.as_mut_ptr().cast();
        let image = sys::rusteron_image_t {
            term_buffers: [term; PARTITION_COUNT],
            position_bits_to_shift: TERM_LENGTH.trailing_zeros() as usize,
            term_length: TERM_LENGTH as i32,
            ..no_image()
        };
        let end = term.wrapping_add(TERM_LENGTH);
        for left in [32, 64, 4096, TERM_LENGTH] {
            let frame_of = |length: i32| {
                // SAFETY: in the term, aligned, and before its end.
                unsafe {
                    log_buffer::frame_length_of(end.sub(left)).store(length, Ordering::Relaxed);
                    Frame::at(&image, end, -(left as i64)).map(|frame| frame.payload().len())
                }
            };
            let fits = left as i32;
            for length in [i32::MIN, i32::MIN + 31, -fits, -32, -31, -1, 0, 1, 31] {
                assert_eq!(frame_of(length), None, "{length} with {left} left");
            }
            for length in [fits + 1, fits + 31, fits + 32, 1 << 30, i32::MAX - 31, i32::MAX] {
                assert_eq!(frame_of(length), None, "{length} with {left} left");
            }
            for length in [32, fits.min(33), fits - 1, fits].into_iter().filter(|&it| it >= 32) {
                let payload_length = length as usize - HEADER_LENGTH;
                assert_eq!(frame_of(length), Some(payload_length), "{length} with {left} left");
            }
        }
    }
}
