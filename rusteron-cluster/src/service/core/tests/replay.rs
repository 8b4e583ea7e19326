//! A snapshot in memory.

use std::collections::VecDeque;

use rusteron_client::Action;

use crate::service::snapshot_reader::{OnMessage, SnapshotSource};
use crate::service::snapshot_writer::SnapshotError;

/// Replays messages, one at a poll.
pub(super) struct Replay {
    pub(super) messages: VecDeque<Vec<u8>>,
    /// Messages that never arrive.
    pub(super) is_cut: bool,
}

impl SnapshotSource for Replay {
    fn poll(
        &mut self,
        handler: &mut OnMessage<'_>,
        fragment_limit: usize,
    ) -> Result<usize, SnapshotError> {
        let mut count = 0;
        while count < fragment_limit {
            let Some(message) = self.messages.pop_front() else { break };
            count += 1;
            if handler(&message) == Action::Break {
                break;
            }
        }
        Ok(count)
    }

    fn is_at_end(&mut self) -> bool {
        self.messages.is_empty() && !self.is_cut
    }

    fn idle(&mut self, work_count: usize) -> Result<(), SnapshotError> {
        match work_count {
            0 => Err(SnapshotError::Failed("the replay has ended early".to_owned())),
            _ => Ok(()),
        }
    }
}
