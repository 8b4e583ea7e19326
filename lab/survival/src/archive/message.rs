//! The messages. Everything in a message follows from its numbers, so a received one is compared with the expected one.

use rusteron_test_support::mix;

/// The length of the numbers in front.
const HEADER_LENGTH: usize = 32;

/// A message of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub(super) stream: u64,
    /// Counts the recordings of the stream.
    pub(super) recording: u64,
    /// Counts the messages of the recording.
    pub(super) index: u64,
    /// The server's life in which it was sent. What a killed server did not record is sent again with another one, so
    /// that remains of the old message show.
    pub(super) life: u64,
}

impl Message {
    /// Writes the message, of at most `max_length` bytes.
    ///
    /// Many long messages consist of zeros: pages that were written with zeros look like pages that were not written.
    pub(super) fn write(&self, max_length: usize, buffer: &mut Vec<u8>) {
        let numbers = [self.stream, self.recording, self.index, self.life];
        let random = numbers.iter().fold(0, |sum, &number| mix(sum ^ number));
        let most = match random % 100 {
            0..60 => 200,
            60..80 => 1_300,
            _ => max_length - HEADER_LENGTH,
        };
        let length = (random >> 8) as usize % most;
        buffer.clear();
        buffer.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        if random >> 63 == 0 {
            buffer.resize(HEADER_LENGTH + length, 0);
            return;
        }
        let mut filling = random;
        while buffer.len() < HEADER_LENGTH + length {
            filling = filling.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            buffer.extend_from_slice(&filling.to_le_bytes());
        }
        buffer.truncate(HEADER_LENGTH + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(message: Message) -> Vec<u8> {
        let mut buffer = Vec::new();
        message.write(8 * 1024, &mut buffer);
        buffer
    }

    #[test]
    fn messages_differ_by_each_number() {
        let message = Message { stream: 1, recording: 2, index: 3, life: 4 };
        let same = Message { ..message };
        assert_eq!(written(message), written(same));
        for other in [
            Message { stream: 2, ..message },
            Message { recording: 3, ..message },
            Message { index: 4, ..message },
            Message { life: 5, ..message },
        ] {
            assert_ne!(written(message), written(other));
        }
    }

    #[test]
    fn some_messages_have_a_page_of_zeros() {
        let has_page = |index| {
            let message = written(Message { stream: 0, recording: 0, index, life: 1 });
            message.len() > 4096 + HEADER_LENGTH
                && message[HEADER_LENGTH..].iter().all(|it| *it == 0)
        };
        let count = (0..1000).filter(|&index| has_page(index)).count();
        assert!((20..200).contains(&count), "{count}");
        assert!((0..1000).all(|index| {
            written(Message { stream: 0, recording: 0, index, life: 1 }).len() <= 8 * 1024
        }));
    }
}
