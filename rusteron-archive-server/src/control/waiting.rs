//! Messages that wait: requests for the driver, answers for the client.

use std::collections::VecDeque;

/// The most messages that wait, and their bytes: a client that does not read its answers, or sends on and on, would fill
/// the memory.
const MAX_MESSAGES: usize = 64 * 1024;
const MAX_BYTES: usize = 16 << 20;

/// Messages in order.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns whether there was room.
    pub(crate) fn push(&mut self, message: Vec<u8>) -> bool {
        let bytes = self.bytes.saturating_add(message.len());
        let has_room = self.messages.len() < MAX_MESSAGES && bytes <= MAX_BYTES;
        if has_room {
            self.bytes = bytes;
            self.messages.push_back(message);
        }
        has_room
    }

    pub(crate) fn first(&self) -> Option<&[u8]> {
        self.messages.front().map(Vec::as_slice)
    }

    pub(crate) fn remove_first(&mut self) -> Option<Vec<u8>> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_bytes_are_bounded() {
        let mut waiting = Waiting::default();
        assert!((0..MAX_MESSAGES).all(|_| waiting.push(Vec::new())));
        assert!(!waiting.push(Vec::new()));

        let mut waiting = Waiting::default();
        let half = vec![0; MAX_BYTES / 2];
        assert!(waiting.push(half.clone()) && waiting.push(half.clone()));
        assert!(!waiting.push(vec![0]));
        assert_eq!(waiting.remove_first().as_ref(), Some(&half));
        assert!(waiting.push(vec![0]));
    }
}
