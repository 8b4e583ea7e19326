//! Messages in several fragments, and messages from several parts.

use std::io::IoSlice;
use std::mem;
use std::ops::Range;
use std::slice;
use std::sync::atomic::Ordering;

use rusteron_core::error::{OfferError, Position};
use rusteron_core::log_buffer::{
    self, BEGIN_FLAG, END_FLAG, FLAGS, FrameIds, HEADER_LENGTH, align, protocol,
};

use crate::publication::{ExclusivePublication, Publication};

impl ExclusivePublication {
    /// Sends a message of several fragments; see [`Publication::offer_fragments`].
    #[cold]
    pub(crate) fn offer_fragments(
        &mut self,
        length: usize,
        fill: impl FnMut(Range<usize>, *mut u8),
    ) -> Result<Position, OfferError> {
        let next = self.next_frame(length, self.fields.max_message_length)?;
        let fragment_length = self.fields.max_payload_length;
        let framed_length = framed_length(length, fragment_length);
        let (frame, end_position) = self.claim_range(next, framed_length)?;
        let raw_tail = protocol::raw_tail(next.term_id, next.term_offset);
        // SAFETY: the range was claimed just now, for this call alone.
        let fragments = unsafe { Fragments::new(frame, framed_length, raw_tail, self.ids) };
        fragments.write(length, fragment_length, fill)?;
        Ok(end_position)
    }
}

impl Publication {
    /// Sends a message in as many fragments as needed, and returns the position after it.
    ///
    /// Works as C does. The tail moves past all fragments first. Each fragment is published as soon
    /// as it is written, so that subscribers need not wait for the last fragment. `fill` gets a part
    /// of the message and the address of a frame, and writes that part behind the frame's header. It
    /// may write the reserved value as well. If it panics, the remaining range becomes padding.
    #[cold]
    pub(crate) fn offer_fragments(
        &self,
        length: usize,
        fill: impl FnMut(Range<usize>, *mut u8),
    ) -> Result<Position, OfferError> {
        let max_message_length = self.fields.max_message_length;
        if self.is_closed() {
            return Err(self.closed());
        }
        if length > max_message_length {
            return Err(OfferError::MessageTooLong { length, max_message_length });
        }
        let fragment_length = self.fields.max_payload_length;
        let framed_length = framed_length(length, fragment_length);
        let range = self.claim_range(length, |_| framed_length)?;
        // SAFETY: the range was claimed just now, for this call alone.
        let fragments =
            unsafe { Fragments::new(range.frame, framed_length, range.raw_tail, self.ids) };
        fragments.write(length, fragment_length, fill)?;
        Ok(range.end_position)
    }
}

/// The part of a claimed range that has not been published.
struct Fragments {
    frame: *mut u8,
    raw_tail: i64,
    ids: FrameIds,
    remaining: usize,
    /// Length of the frame that has been begun, or 0.
    begun: i32,
}

impl Fragments {
    /// # Safety
    /// `frame` is the address of a range of `length` bytes, a multiple of 32. The range is the
    /// caller's alone, mapped as long as the result is used, and in a term. `raw_tail` is the same
    /// position as a tail.
    unsafe fn new(frame: *mut u8, length: usize, raw_tail: i64, ids: FrameIds) -> Self {
        Self { frame, raw_tail, ids, remaining: length, begun: 0 }
    }

    /// Writes a message of `length` bytes, whose [`framed_length`] is that of the range.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`] if the driver has made padding of the range because this call took
    /// too long. Fragments before that have been sent, and assemblers drop them.
    fn write(
        mut self,
        length: usize,
        fragment_length: usize,
        mut fill: impl FnMut(Range<usize>, *mut u8),
    ) -> Result<(), OfferError> {
        let mut flags = BEGIN_FLAG;
        for start in (0..length).step_by(fragment_length) {
            let end = length.min(start + fragment_length);
            if end == length {
                flags |= END_FLAG;
            }
            let frame_length = end - start + HEADER_LENGTH;
            let aligned = align(frame_length);
            self.begun = frame_length as i32;
            // SAFETY: the frames follow each other within the range, whose length is their sum. The
            // range lies behind the position limit, where no process reads or cleans, until the
            // frames' lengths turn positive.
            unsafe {
                log_buffer::begin_frame(self.frame, self.begun, self.raw_tail, self.ids);
                self.frame.add(FLAGS).write(flags);
                fill(start..end, self.frame);
                if !self.is_unfinished() {
                    mem::forget(self);
                    return Err(OfferError::Unblocked);
                }
                protocol::publish_frame(log_buffer::frame_length_of(self.frame), self.begun);
                self.frame = self.frame.add(aligned);
            }
            self.begun = 0;
            self.raw_tail += aligned as i64;
            self.remaining -= aligned;
            flags = 0;
        }
        Ok(())
    }

    /// As `BufferClaim::is_unfinished`.
    fn is_unfinished(&self) -> bool {
        // SAFETY: the frame is mapped, by the contract of `new`.
        let length = unsafe { log_buffer::frame_length_of(self.frame) };
        length.load(Ordering::Relaxed) == -self.begun
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        // Nothing remains unless `fill` has panicked.
        if self.remaining > 0 && self.is_unfinished() {
            let length = self.remaining as i32;
            // SAFETY: the remaining range is this call's, by the contract of `new`.
            unsafe { log_buffer::write_padding(self.frame, length, self.raw_tail, self.ids) };
        }
    }
}

/// Returns a function that fills fragments: it writes the payload, and then the reserved value that
/// the supplier returns for it. A panic of the supplier goes through.
pub(crate) fn with_reserved_values(
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

/// Returns the length of the message in bytes. Returns `usize::MAX` if the sum overflows, which it
/// can because slices can overlap.
#[inline]
pub(crate) fn total_length(parts: &[IoSlice<'_>]) -> usize {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.len()))
}

/// Copies the parts one after the other into a target of their [`total_length`].
#[inline]
pub(crate) fn copy_parts(parts: &[IoSlice<'_>], mut target: &mut [u8]) {
    for part in parts {
        let (range, rest) = target.split_at_mut(part.len());
        range.copy_from_slice(part);
        target = rest;
    }
}

/// Returns a function that fills fragments with the parts, from the first fragment to the last.
pub(crate) fn with_parts(parts: &[IoSlice<'_>]) -> impl FnMut(Range<usize>, *mut u8) {
    let mut pieces = Pieces::new(parts);
    move |part, frame| {
        // SAFETY: the publication has begun the frame for a payload of this length, for this call
        // alone. The memory is initialised: it is mapped from a file.
        let payload = unsafe { slice::from_raw_parts_mut(frame.add(HEADER_LENGTH), part.len()) };
        pieces.copy_next(payload);
    }
}

/// The parts of a message, which are copied one piece after the other.
struct Pieces<'a> {
    parts: &'a [IoSlice<'a>],
    /// Number of bytes of the first part that have been copied.
    copied: usize,
}

impl<'a> Pieces<'a> {
    fn new(parts: &'a [IoSlice<'a>]) -> Self {
        Self { parts, copied: 0 }
    }

    /// Copies the next bytes, as many as fit or remain.
    fn copy_next(&mut self, mut target: &mut [u8]) {
        while let Some((part, others)) = self.parts.split_first() {
            let piece = &part[self.copied..];
            let length = piece.len().min(target.len());
            let (range, rest) = target.split_at_mut(length);
            range.copy_from_slice(&piece[..length]);
            target = rest;
            if length < piece.len() {
                self.copied += length;
                return;
            }
            (self.parts, self.copied) = (others, 0);
        }
    }
}

/// Returns the length of all fragments in the term in bytes, headers and alignment included.
fn framed_length(length: usize, fragment_length: usize) -> usize {
    let (full, rest) = (length / fragment_length, length % fragment_length);
    let last = if rest > 0 { align(rest + HEADER_LENGTH) } else { 0 };
    full * align(fragment_length + HEADER_LENGTH) + last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_take_headers_and_alignment_each() {
        assert_eq!(framed_length(1376, 1376), 1408);
        assert_eq!(framed_length(1377, 1376), 1408 + 64);
        assert_eq!(framed_length(2 * 1376, 1376), 2 * 1408);
        assert_eq!(framed_length(2 * 1376 + 32, 1376), 2 * 1408 + 64);
        assert_eq!(framed_length(2 * 1376 + 33, 1376), 2 * 1408 + 96);
    }

    #[test]
    fn pieces_cross_parts() {
        let parts = [&[1, 2, 3][..], &[], &[4], &[5, 6]].map(IoSlice::new);
        let mut pieces = Pieces::new(&parts);
        let mut target = [0; 2];
        for expected in [[1, 2], [3, 4], [5, 6]] {
            pieces.copy_next(&mut target);
            assert_eq!(target, expected);
        }
        pieces.copy_next(&mut target);
        assert_eq!(target, [5, 6]);
    }

    #[test]
    fn length_is_the_sum_of_the_parts() {
        assert_eq!(total_length(&[]), 0);
        let parts = [&[1, 2, 3][..], &[], &[4]].map(IoSlice::new);
        assert_eq!(total_length(&parts), 4);
    }
}
