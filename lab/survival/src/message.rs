//! The messages of clients and of recorded streams. Everything in a message follows from its
//! numbers, and a checksum covers all of it.

use rusteron_test_support::mix;

/// The length of the fields before the filling.
const HEADER_LENGTH: usize = 48;
/// Marks messages of a campaign.
const MAGIC: u32 = 0x7375_7276;

/// The fields of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
    /// The incarnation of the publisher, or the recording.
    pub(crate) publication: u64,
    /// Counts the messages of the publication or the recording, from 0.
    pub(crate) sequence: u64,
    /// The number of the checkpoint at which it is sent, or 0 between checkpoints; the archive
    /// server's life in which it is sent. What a killed server did not record is sent again in
    /// another life, so that remains of the old message show.
    pub(crate) phase: u64,
}

impl Message {
    fn random(&self) -> u64 {
        let ids = (self.stream_id as u64) << 32 | u64::from(self.session_id as u32);
        [ids, self.publication, self.sequence, self.phase].iter().fold(0, |sum, it| mix(sum ^ it))
    }

    /// Returns the message, which has at most `max_length` bytes. Some messages need several
    /// fragments. On demand, half of all messages are filled with zeros: pages that were written
    /// with zeros look like pages that were not written.
    pub(crate) fn to_vec(self, max_length: usize, with_zeros: bool) -> Vec<u8> {
        let random = self.random();
        let most = match random % 100 {
            0..65 => 200,
            65..85 => 1_300,
            _ => max_length - HEADER_LENGTH,
        };
        let length = HEADER_LENGTH + (random >> 8) as usize % most;
        let mut buffer = Vec::with_capacity(length);
        buffer.extend(MAGIC.to_le_bytes());
        buffer.extend((length as u32).to_le_bytes());
        buffer.extend(self.stream_id.to_le_bytes());
        buffer.extend(self.session_id.to_le_bytes());
        let numbers = [self.publication, self.sequence, self.phase, 0].map(u64::to_le_bytes);
        buffer.extend_from_slice(numbers.as_flattened());
        let mut filling = if with_zeros && random >> 63 == 0 { 0 } else { random };
        while buffer.len() < length {
            buffer.extend(filling.to_le_bytes());
            filling = filling.wrapping_mul(0x5851_f42d_4c95_7f2d);
        }
        buffer.truncate(length);
        let sum = checksum(&buffer);
        buffer[40..48].copy_from_slice(&sum.to_le_bytes());
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
            phase: word(32),
        };
        if stated != sum {
            return Err(format!("{message:?}: checksum {sum:#x}, not {stated:#x}"));
        }
        Ok(message)
    }
}

/// Returns the checksum of everything except for the checksum itself.
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

    const MAX_LENGTH: usize = 8 * 1024;

    fn message(sequence: u64) -> Message {
        let publication = 0x0123_4567_89ab_cdef;
        Message { stream_id: 1001, session_id: -7, publication, sequence, phase: 3 }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for message in (0..500).map(message) {
            for with_zeros in [false, true] {
                let bytes = message.to_vec(MAX_LENGTH, with_zeros);
                assert_eq!(Message::decode(&bytes), Ok(message));
            }
        }
    }

    #[test]
    fn lengths_vary_and_some_have_a_page_of_zeros() {
        let messages = |with_zeros| -> Vec<_> {
            (0..2_000).map(|it| message(it).to_vec(MAX_LENGTH, with_zeros)).collect()
        };
        let (without, messages) = (messages(false), messages(true));
        assert!(messages.iter().all(|it| (HEADER_LENGTH..=MAX_LENGTH).contains(&it.len())));
        assert!(messages.iter().any(|it| it.len() < 100));
        let has_page =
            |it: &&Vec<u8>| it.len() > 5 * 1024 && it[HEADER_LENGTH..].iter().all(|it| *it == 0);
        let pages = messages.iter().filter(has_page).count();
        assert!((20..200).contains(&pages), "{pages}");
        assert!(!without.iter().any(|it| has_page(&it)));
    }

    #[test]
    fn messages_differ_by_each_number() {
        let message = message(1);
        for other in [
            Message { stream_id: 2, ..message },
            Message { session_id: 2, ..message },
            Message { publication: 3, ..message },
            Message { sequence: 4, ..message },
            Message { phase: 5, ..message },
        ] {
            assert_ne!(message.to_vec(MAX_LENGTH, true), other.to_vec(MAX_LENGTH, true));
        }
    }

    #[test]
    fn any_flipped_bit_or_cut_is_found() {
        let whole = message(3).to_vec(MAX_LENGTH, true);
        for index in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[index] ^= 1 << (index % 8);
            assert!(Message::decode(&flipped).is_err(), "byte {index}");
            assert!(Message::decode(&whole[..index]).is_err(), "{index} bytes");
        }
    }
}
