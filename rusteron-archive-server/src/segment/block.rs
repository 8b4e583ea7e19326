//! A block read from a segment, on its way to a replay's publication.

use rusteron_core::log_buffer::HEADER_LENGTH;

use crate::segment::checksum::Checksum;
use crate::segment::frame::{self, FrameCheck, FrameFault, FrameKind};

/// Checks a replay's blocks, and puts in the ids of its publication.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockCheck {
    /// What the recorded frames have in common. `max_data_length` is the recording's MTU.
    pub(crate) recorded: FrameCheck,
    /// The publication's session id.
    pub(crate) session_id: i32,
    /// The publication's stream id.
    pub(crate) stream_id: i32,
    /// The checksum that stands in the session id of each recorded data frame.
    pub(crate) checksum: Option<Checksum>,
}

/// A block that can be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckedBlock {
    /// Bytes of whole data frames at the start of the block.
    pub(crate) data_length: usize,
    /// The length of the padding frame behind them, header included, if there is one.
    pub(crate) padding_length: Option<usize>,
}

impl BlockCheck {
    /// Checks the frames of a block that begin before `limit`, and puts in the ids. Stops before
    /// padding, before a last frame of which the block has only a part, and before a wrong one,
    /// which is the first of the next block.
    ///
    /// The first frame's length is `first_length`. Its bytes in the block are neither read nor written: where the block
    /// is a part of a log buffer, they make it visible.
    ///
    /// `term_id` and `term_offset` say where the block begins.
    ///
    /// # Errors
    /// The first frame is wrong, or [`Incomplete`](FrameFault::Incomplete): a longer block may hold
    /// it.
    pub(crate) fn check(
        &self,
        first_length: [u8; 4],
        block: &mut [u8],
        limit: usize,
        term_id: i32,
        term_offset: usize,
    ) -> Result<CheckedBlock, FrameFault> {
        let mut offset = 0;
        while offset < limit.min(block.len()) {
            let end = |fault| match offset {
                0 => Err(fault),
                _ => Ok(CheckedBlock { data_length: offset, padding_length: None }),
            };
            let rest = &mut block[offset..];
            if offset > 0 && self.checksum.is_none() {
                if let Some(length) = self.recorded.data_length(rest, term_id, term_offset + offset)
                {
                    frame::set_ids(rest, self.session_id, self.stream_id);
                    offset += length;
                    continue;
                }
            }
            let length = match rest.first_chunk::<HEADER_LENGTH>() {
                Some(header) => {
                    let mut header = *header;
                    if offset == 0 {
                        header[..first_length.len()].copy_from_slice(&first_length);
                    }
                    match self.recorded.check(&header, term_id, term_offset + offset) {
                        Ok(frame) if frame.kind == FrameKind::Padding => {
                            let padding_length = Some(frame.length);
                            return Ok(CheckedBlock { data_length: offset, padding_length });
                        }
                        Ok(frame) => frame.aligned_length(),
                        Err(fault) => return end(fault),
                    }
                }
                None => usize::MAX,
            };
            let Some(bytes) = rest.get_mut(..length) else { return end(FrameFault::Incomplete) };
            if let Some(fault) = self.checksum.and_then(|sum| frame::checksum_fault(bytes, sum)) {
                return end(fault);
            }
            frame::set_ids(bytes, self.session_id, self.stream_id);
            offset += length;
        }
        Ok(CheckedBlock { data_length: offset, padding_length: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::sample;

    const CHECK: BlockCheck = BlockCheck {
        recorded: FrameCheck {
            stream_id: sample::STREAM_ID,
            term_length: 65_536,
            max_data_length: 1_408,
        },
        session_id: 77,
        stream_id: 88,
        checksum: None,
    };

    /// Frames with the payload lengths, from term offset 96 of term 5 on.
    fn block(payloads: &[usize]) -> Vec<u8> {
        let mut block = Vec::new();
        for (number, &length) in payloads.iter().enumerate() {
            let payload = vec![number as u8 + 1; length];
            block.extend(sample::data(&payload, 5, 96 + block.len()));
        }
        block
    }

    fn check(block: &mut [u8], limit: usize) -> Result<CheckedBlock, FrameFault> {
        check_with(CHECK, block, limit)
    }

    /// Checks a block whose first length is elsewhere.
    fn check_with(
        check: BlockCheck,
        block: &mut [u8],
        limit: usize,
    ) -> Result<CheckedBlock, FrameFault> {
        let Some(first_length) = block.first_chunk().copied() else {
            return check.check([0; 4], block, limit, 5, 96);
        };
        block[..4].fill(0xaa);
        let checked = check.check(first_length, block, limit, 5, 96);
        assert_eq!(block[..4], [0xaa; 4]);
        block[..4].copy_from_slice(&first_length);
        checked
    }

    fn data(data_length: usize) -> Result<CheckedBlock, FrameFault> {
        Ok(CheckedBlock { data_length, padding_length: None })
    }

    #[test]
    fn data_frames_get_the_ids() {
        let mut bytes = block(&[0, 1, 32, 1_000]);
        let mut expected = bytes.clone();
        for offset in [0, 32, 96, 160] {
            frame::set_session_id(&mut expected[offset..], 77);
            frame::set_stream_id(&mut expected[offset..], 88);
        }
        assert_eq!(check(&mut bytes, usize::MAX), data(expected.len()));
        assert!(bytes == expected);
    }

    #[test]
    fn padding_ends_the_data() {
        let mut bytes = block(&[10]);
        bytes.extend(sample::padding(4_096, 5, 160));
        let checked = CheckedBlock { data_length: 64, padding_length: Some(4_096) };
        assert_eq!(check(&mut bytes, usize::MAX), Ok(checked));

        let mut bytes = sample::padding(65_440, 5, 96).to_vec();
        let checked = CheckedBlock { data_length: 0, padding_length: Some(65_440) };
        assert_eq!(check(&mut bytes, usize::MAX), Ok(checked));
    }

    #[test]
    fn frame_in_part_is_left_for_the_next_block() {
        let whole = block(&[10, 100]);
        for length in 64..whole.len() {
            assert_eq!(check(&mut whole.clone()[..length], usize::MAX), data(64));
        }
        for length in 1..64 {
            let incomplete = FrameFault::Incomplete;
            assert_eq!(check(&mut whole.clone()[..length], usize::MAX), Err(incomplete));
        }
    }

    #[test]
    fn frame_that_begins_before_the_limit_is_whole() {
        for (limit, length) in [(0, 0), (1, 64), (64, 64), (65, 128), (usize::MAX, 192)] {
            assert_eq!(check(&mut block(&[10, 20, 30]), limit), data(length));
        }
    }

    /// Frames before a wrong one go to the client first.
    #[test]
    fn wrong_frame_is_left_for_the_next_block() {
        let mut missing = block(&[10]);
        missing.extend([0; 64]);
        let mut foreign = block(&[10, 10]);
        frame::set_stream_id(&mut foreign[64..], 3);
        for (mut bytes, fault) in
            [(missing, FrameFault::Missing), (foreign, FrameFault::StreamId(3))]
        {
            assert_eq!(check(&mut bytes, usize::MAX), data(64));
            let (_, rest) = bytes.split_at_mut(64);
            let first_length = *rest.first_chunk().unwrap();
            assert_eq!(CHECK.check(first_length, rest, usize::MAX, 5, 160), Err(fault));
        }
    }

    #[test]
    fn checksums_are_verified() {
        for checksum in [Checksum::Crc32, Checksum::Crc32c] {
            let check = BlockCheck { checksum: Some(checksum), ..CHECK };
            let mut bytes = block(&[33, 10]);
            sample::put_checksum(&mut bytes[..96], checksum);
            sample::put_checksum(&mut bytes[96..], checksum);
            let written = frame::session_id(&bytes);
            assert_eq!(check_with(check, &mut bytes.clone(), usize::MAX), data(bytes.len()));
            let mut second = bytes.clone();
            *second.last_mut().unwrap() ^= 1;
            assert_eq!(check_with(check, &mut second, usize::MAX), data(96));
            // The bytes behind the payload count, too.
            bytes[95] ^= 1;
            let fault = check_with(check, &mut bytes, usize::MAX).unwrap_err();
            let FrameFault::Checksum { recorded, .. } = fault else { panic!("{fault:?}") };
            assert_eq!(recorded, written);
        }
    }
}
