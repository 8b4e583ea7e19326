//! Blocks of frames that are offered as they are.

use rusteron_core::error::{BlockFault, OfferError};
use rusteron_core::log_buffer::{self, HEADER_LENGTH, align};

/// Header values that the frames of an accepted block must have.
pub(crate) struct Expected {
    pub(crate) term_offset: i32,
    pub(crate) term_id: i32,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) max_payload_length: usize,
    pub(crate) term_buffer_length: i32,
}

impl Expected {
    /// Checks that a block consists of whole frames, and that all of them belong at the stream's
    /// current position.
    ///
    /// C checks only the first frame, and reads it even if the block is too short to hold a frame.
    /// This checks all frames, because subscribers, senders and recorders walk from frame to frame
    /// by the lengths. A wrong length would lead them into bytes that are no frame, or make a
    /// sender wait for ever for a frame that it cannot send.
    pub(crate) fn check(&self, block: &[u8]) -> Result<(), OfferError> {
        let remaining = (self.term_buffer_length - self.term_offset) as usize;
        if block.len() > remaining {
            return Err(OfferError::InvalidBlock { offset: 0, fault: BlockFault::BeyondTerm });
        }
        let mut offset = 0;
        loop {
            // Below the term length, by the check above.
            let term_offset = self.term_offset + offset as i32;
            offset += self
                .check_frame(&block[offset..], term_offset, offset == 0)
                .map_err(|fault| OfferError::InvalidBlock { offset, fault })?;
            if offset == block.len() {
                return Ok(());
            }
        }
    }

    /// Returns the aligned length of the frame at the beginning of `bytes`.
    fn check_frame(
        &self,
        bytes: &[u8],
        term_offset: i32,
        is_first: bool,
    ) -> Result<usize, BlockFault> {
        let header: &[u8; HEADER_LENGTH] = bytes.first_chunk().ok_or(BlockFault::Truncated)?;
        let number = |at: usize| {
            i32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let max = match u16::from_ne_bytes([header[log_buffer::TYPE], header[log_buffer::TYPE + 1]])
        {
            log_buffer::TYPE_DATA => self.max_payload_length + HEADER_LENGTH,
            // The sender sends only the header of padding. As in C, a block must not begin with
            // padding.
            log_buffer::TYPE_PAD if !is_first => self.term_buffer_length as usize,
            _ => return Err(BlockFault::Type),
        };
        let length = usize::try_from(number(log_buffer::FRAME_LENGTH)).unwrap_or(0);
        require((HEADER_LENGTH..=max).contains(&length), BlockFault::FrameLength)?;
        require(header[log_buffer::VERSION] == log_buffer::CURRENT_VERSION, BlockFault::Version)?;
        require(number(log_buffer::TERM_OFFSET) == term_offset, BlockFault::TermOffset)?;
        require(number(log_buffer::SESSION_ID) == self.session_id, BlockFault::SessionId)?;
        require(number(log_buffer::STREAM_ID) == self.stream_id, BlockFault::StreamId)?;
        require(number(log_buffer::TERM_ID) == self.term_id, BlockFault::TermId)?;
        require(align(length) <= bytes.len(), BlockFault::Truncated)?;
        Ok(align(length))
    }
}

fn require(is_right: bool, fault: BlockFault) -> Result<(), BlockFault> {
    if is_right { Ok(()) } else { Err(fault) }
}
