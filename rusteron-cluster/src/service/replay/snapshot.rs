//! Snapshots in memory.

use rusteron_client::{Action, OfferError, Position};

use crate::service::replay::effect::{Digest, Effect};
use crate::service::snapshot_reader::{OnMessage, SnapshotSource};
use crate::service::snapshot_writer::{SnapshotError, SnapshotSink};

/// Length of the longest message, and of the longest fragment, with Aeron's defaults for IPC.
const MAX_MESSAGE_LENGTH: usize = 8 * 1024 * 1024;
pub(super) const MAX_PAYLOAD_LENGTH: usize = 1408 - 32;

/// A snapshot in memory: its messages, and those that were read.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    messages: Vec<Vec<u8>>,
    next: usize,
}

impl Snapshot {
    pub(super) fn push(&mut self, message: &[u8]) {
        self.messages.push(message.to_vec());
    }

    pub(super) fn effect(&self) -> Effect {
        let mut digest = Digest::new();
        self.messages.iter().for_each(|message| digest.add(0, message));
        let length = self.messages.iter().map(Vec::len).sum();
        Effect::Snapshot { length, digest: digest.value() }
    }
}

impl SnapshotSink for Snapshot {
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        let (length, max_message_length) = (message.len(), MAX_MESSAGE_LENGTH);
        if length > max_message_length {
            return Err(OfferError::MessageTooLong { length, max_message_length });
        }
        self.push(message);
        Ok(0)
    }

    fn max_message_length(&self) -> usize {
        MAX_MESSAGE_LENGTH
    }

    fn max_payload_length(&self) -> usize {
        MAX_PAYLOAD_LENGTH
    }

    fn tick(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }

    fn idle(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }

    fn check(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }
}

impl SnapshotSource for Snapshot {
    fn poll(
        &mut self,
        handler: &mut OnMessage<'_>,
        fragment_limit: usize,
    ) -> Result<usize, SnapshotError> {
        let mut count = 0;
        while let Some(message) = self.messages.get(self.next).filter(|_| count < fragment_limit) {
            let action = handler(message);
            if action == Action::Abort {
                break;
            }
            self.next += 1;
            count += 1;
            if action == Action::Break {
                break;
            }
        }
        Ok(count)
    }

    fn is_at_end(&mut self) -> bool {
        self.next == self.messages.len()
    }

    fn idle(&mut self, _work_count: usize) -> Result<(), SnapshotError> {
        Ok(())
    }
}
