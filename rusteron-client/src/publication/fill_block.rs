//! Blocks that are written straight into the log buffer.

use std::slice;

use rusteron_core::error::{OfferError, Position};
use rusteron_core::log_buffer::{self, HEADER_LENGTH, align, protocol};

use crate::publication::ExclusivePublication;
use crate::publication::next_frame::NextFrame;

/// The length of a frame's first field, which makes the frame visible.
const LENGTH_FIELD: usize = size_of::<i32>();

impl ExclusivePublication {
    /// Offers frames as [`offer_block`](Self::offer_block) does, but has `fill` write them into the
    /// log buffer, and does not check them. For the archive server, whose replays read files.
    ///
    /// `fill` gets the next `length` bytes of the stream, or the rest of the term if that is
    /// shorter, and the term id and term offset of the first byte. It returns how many bytes are
    /// whole frames, and the frame length of the first one. With 0 bytes, nothing is published. What
    /// `fill` leaves behind the frames is cleared.
    ///
    /// Does not block, does not allocate.
    ///
    /// # Errors
    /// `fill` has not been called, and nothing has been sent; see [`OfferError`].
    ///
    /// # Safety
    /// `fill` leaves the first 4 bytes as they are. With the length it returns in their place, the
    /// bytes that it returns as frames pass all checks of `offer_block`.
    #[doc(hidden)]
    pub unsafe fn fill_block(
        &mut self,
        length: usize,
        fill: impl FnOnce(&mut [u8], i32, i32) -> (usize, i32),
    ) -> Result<Position, OfferError> {
        let next = self.next_block(length)?;
        let remaining = (self.fields.term_buffer_length - next.term_offset) as usize;
        let length = length.min(remaining);
        // SAFETY: `next` is the publication's, and its offset lies within the term.
        let begin = unsafe { self.active_term(next).0.add(next.term_offset as usize) };
        let mut range = Unpublished { begin, length, frames: 0 };
        // SAFETY: the range lies within the active term, behind the tail and the position limit. No
        // process cleans there, and none reads more than the first frame's length. The log buffer
        // stays mapped as long as `self` is borrowed.
        let bytes = unsafe { slice::from_raw_parts_mut(begin, length) };
        let (frames, first_length) = fill(bytes, next.term_id, next.term_offset);
        debug_assert!(frames <= length && frames % log_buffer::FRAME_ALIGNMENT == 0);
        range.frames = frames;
        drop(range);
        let end = next.term_offset + frames as i32;
        if frames > 0 {
            // SAFETY: the frames lie within the term, by the contract. Their first length, stored
            // last, makes the whole block visible.
            unsafe {
                let frame = self.move_tail(next, end);
                protocol::publish_frame(log_buffer::frame_length_of(frame), first_length);
            }
        }
        Ok(next.term_begin_position + i64::from(end))
    }

    /// Returns where the next block of `length` bytes begins, in the next term if this one is full.
    pub(crate) fn next_block(&mut self, length: usize) -> Result<NextFrame, OfferError> {
        let any = usize::MAX;
        let next = self.next_frame(length, any)?;
        if next.term_offset < self.fields.term_buffer_length {
            return Ok(next);
        }
        // Unlike C's function for blocks, this does not rotate beyond the last term.
        let end = next.term_offset as usize + align(HEADER_LENGTH);
        match self.end_of_term(next, end) {
            OfferError::AdminAction => self.next_frame(length, any),
            error => Err(error),
        }
    }
}

/// A range that is being filled. Clears what is not frames on drop, also after a panic: nothing but
/// zeros may follow the last frame of a stream.
struct Unpublished {
    begin: *mut u8,
    length: usize,
    /// Bytes of whole frames at the beginning.
    frames: usize,
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        // The first length has not been written.
        let begin = self.frames.max(LENGTH_FIELD).min(self.length);
        // SAFETY: a part of the range, which still is the caller's alone.
        unsafe { self.begin.add(begin).write_bytes(0, self.length - begin) };
    }
}
