//! The messages. Each names its sender and its number, with a checksum over all of it.

use rusteron_test_support::mix;

/// The length of the fields before the filling.
pub(crate) const HEADER_LENGTH: usize = 48;

/// The longest message: the most that a publication with terms of 64 KiB takes.
pub(crate) const MAX_LENGTH: usize = 8 * 1024;

/// Marks messages of the campaign.
const MAGIC: u32 = 0x7375_7276;

/// The fields of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
    /// The incarnation of the publisher: no other publication of the campaign has this number.
    pub(crate) publication: u64,
    /// Counts the messages of the publication, from 0.
    pub(crate) sequence: u64,
    /// The number of the checkpoint at which it is sent, or 0 between checkpoints.
    pub(crate) checkpoint: u64,
}

impl Message {
    /// Its length follows from its numbers. Some messages need several fragments.
    pub(crate) fn length(&self) -> usize {
        let number = mix(self.publication ^ mix(self.sequence)) as usize;
        let most = match number % 100 {
            0..70 => 200,
            70..95 => 1_300,
            _ => MAX_LENGTH - HEADER_LENGTH,
        };
        HEADER_LENGTH + (number >> 8) % most
    }

    /// Writes the message.
    ///
    /// # Panics
    /// If the buffer is not as long as [`length`](Self::length).
    pub(crate) fn encode(&self, buffer: &mut [u8]) {
        let length = buffer.len() as u32;
        assert_eq!(length as usize, self.length(), "the length of the buffer");
        buffer[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        buffer[4..8].copy_from_slice(&length.to_le_bytes());
        buffer[8..12].copy_from_slice(&self.stream_id.to_le_bytes());
        buffer[12..16].copy_from_slice(&self.session_id.to_le_bytes());
        buffer[16..24].copy_from_slice(&self.publication.to_le_bytes());
        buffer[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        buffer[32..40].copy_from_slice(&self.checkpoint.to_le_bytes());
        let mut filling = mix(self.publication.wrapping_add(self.sequence));
        for bytes in buffer[HEADER_LENGTH..].chunks_mut(8) {
            filling = filling.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            bytes.copy_from_slice(&filling.to_le_bytes()[..bytes.len()]);
        }
        let sum = checksum(buffer);
        buffer[40..48].copy_from_slice(&sum.to_le_bytes());
    }

    /// The message as a buffer of its own.
    pub(crate) fn to_vec(self) -> Vec<u8> {
        let mut buffer = vec![0; self.length()];
        self.encode(&mut buffer);
        buffer
    }

    /// Reads a message. An error names the fault.
    pub(crate) fn decode(buffer: &[u8]) -> Result<Self, String> {
        if buffer.len() < HEADER_LENGTH {
            return Err(format!("a message of {} bytes", buffer.len()));
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| buffer[at + index]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| buffer[at + index]));
        let (magic, length) = (half(0), half(4));
        if magic != MAGIC || length as usize != buffer.len() {
            return Err(format!("a message of {} bytes: {magic:#x}, {length}", buffer.len()));
        }
        let (stated, sum) = (word(40), checksum(buffer));
        let message = Self {
            stream_id: half(8) as i32,
            session_id: half(12) as i32,
            publication: word(16),
            sequence: word(24),
            checkpoint: word(32),
        };
        if stated != sum {
            return Err(format!("{message:?}: checksum {sum:#x}, not {stated:#x}"));
        }
        Ok(message)
    }
}

/// Over everything but the checksum itself.
fn checksum(buffer: &[u8]) -> u64 {
    let mut sum = 0x6a09_e667_f3bc_c908_u64 ^ buffer.len() as u64;
    let parts = [&buffer[..HEADER_LENGTH - 8], &buffer[HEADER_LENGTH..]];
    for bytes in parts.into_iter().flat_map(|part| part.chunks(8)) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        sum = (sum ^ u64::from_le_bytes(word)).rotate_left(29).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }
    mix(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u64) -> Message {
        let publication = 0x0123_4567_89ab_cdef;
        Message { stream_id: 1001, session_id: -7, publication, sequence, checkpoint: 3 }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for sequence in 0..500 {
            let message = message(sequence);
            assert_eq!(Message::decode(&message.to_vec()), Ok(message));
        }
    }

    #[test]
    fn lengths_vary_up_to_several_fragments() {
        let lengths: Vec<_> = (0..5_000).map(|sequence| message(sequence).length()).collect();
        assert!(lengths.iter().all(|length| (HEADER_LENGTH..=MAX_LENGTH).contains(length)));
        assert!(lengths.iter().any(|&length| length < 100));
        assert!(lengths.iter().any(|&length| length > 4 * 1408));
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let whole = message(3).to_vec();
        for index in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[index] ^= 1 << (index % 8);
            assert!(Message::decode(&flipped).is_err(), "byte {index}");
        }
    }

    #[test]
    fn a_cut_message_is_found() {
        let whole = message(4).to_vec();
        for length in 0..whole.len() {
            assert!(Message::decode(&whole[..length]).is_err(), "{length} bytes");
        }
    }
}
