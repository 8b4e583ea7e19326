//! The publication of a replay.

use rusteron_client::{ExclusivePublication, OfferError, Position};

/// Where a replay goes.
pub(crate) trait BlockSink {
    fn session_id(&self) -> i32;
    fn stream_id(&self) -> i32;
    fn channel(&self) -> &str;
    fn is_connected(&self) -> bool;

    /// Tells whether subscribers are ready for more.
    fn has_window(&self) -> bool;

    /// The greatest length of padding, without its header.
    fn max_message_length(&self) -> usize;

    /// Publishes data frames, which lie at the position of the sink.
    fn offer_block(&mut self, block: &[u8]) -> Result<Position, OfferError>;

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

    fn max_message_length(&self) -> usize {
        (**self).max_message_length()
    }

    fn offer_block(&mut self, block: &[u8]) -> Result<Position, OfferError> {
        ExclusivePublication::offer_block(self, block)
    }

    fn append_padding(&mut self, length: usize) -> Result<Position, OfferError> {
        ExclusivePublication::append_padding(self, length)
    }
}
