//! The publication of a replay.

use rusteron_client::{ExclusivePublication, OfferError, Position};
use rusteron_core::log_buffer::HEADER_LENGTH;

/// Writes frames to bytes that begin at a term id and a term offset. Returns how many bytes they take, and the frame
/// length of the first.
pub(crate) type Fill<'a> = dyn FnMut(&mut [u8], i32, usize) -> (usize, i32) + 'a;

/// Where a replay goes.
pub(crate) trait BlockSink {
    fn session_id(&self) -> i32;
    fn stream_id(&self) -> i32;
    fn channel(&self) -> &str;
    fn is_connected(&self) -> bool;

    /// Tells whether subscribers are ready for more.
    fn has_window(&self) -> bool;

    /// The greatest length of a data frame, header included.
    fn max_data_length(&self) -> usize;

    /// The greatest length of padding, without its header.
    fn max_message_length(&self) -> usize;

    /// Publishes the data frames that `fill` writes to the next `length` bytes, or to the rest of the term.
    ///
    /// # Safety
    /// `fill` leaves the first 4 bytes as they are. With the first length that it returns, the bytes that it returns are
    /// data frames of this sink, and lie where their headers say.
    unsafe fn fill_block(
        &mut self,
        length: usize,
        fill: &mut Fill<'_>,
    ) -> Result<Position, OfferError>;

    /// Publishes padding of `length` bytes, without its header.
    fn append_padding(&mut self, length: usize) -> Result<Position, OfferError>;
}

impl BlockSink for ExclusivePublication {
    fn session_id(&self) -> i32 {
        (**self).session_id()
    }

    fn stream_id(&self) -> i32 {
        (**self).stream_id()
    }

    fn channel(&self) -> &str {
        (**self).channel()
    }

    fn is_connected(&self) -> bool {
        (**self).is_connected()
    }

    fn has_window(&self) -> bool {
        self.available_window().is_ok_and(|window| window > 0)
    }

    fn max_data_length(&self) -> usize {
        self.max_payload_length() + HEADER_LENGTH
    }

    fn max_message_length(&self) -> usize {
        (**self).max_message_length()
    }

    unsafe fn fill_block(
        &mut self,
        length: usize,
        fill: &mut Fill<'_>,
    ) -> Result<Position, OfferError> {
        let fill = |bytes: &mut [u8], term_id, offset: i32| fill(bytes, term_id, offset as usize);
        // SAFETY: the caller guarantees it.
        unsafe { ExclusivePublication::fill_block(self, length, fill) }
    }

    fn append_padding(&mut self, length: usize) -> Result<Position, OfferError> {
        ExclusivePublication::append_padding(self, length)
    }
}
