//! The state of a recording in progress.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::conductor::effect::{Effect, Outside, Progress, RecordingId, RegistrationId, Sending};
use crate::conductor::sessions::Requester;
use crate::conductor::subscriptions::Purpose;
use crate::protocol::messages::RecordingProgress;

/// A recording in progress.
#[derive(Debug)]
pub(crate) struct ActiveRecording {
    pub(super) subscription: RegistrationId,
    pub(super) requester: Requester,
    pub(super) purpose: Purpose,
    pub(crate) progress: Arc<Progress>,
    /// The image's session id.
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) original_channel: String,
    pub(super) source_identity: String,
    /// Where the image was joined.
    pub(super) join_position: i64,
    /// The counter is there.
    pub(super) has_started: bool,
    pub(super) is_aborted: bool,
    /// The position that recording events have announced.
    pub(super) announced_position: i64,
    /// The end that the catalog could not take yet, and when to retry.
    pub(super) end: Option<(i64, i64)>,
}

impl ActiveRecording {
    /// The position up to which everything is recorded.
    pub(crate) fn position(&self) -> i64 {
        self.progress.position.load(Ordering::Acquire)
    }

    pub(super) fn abort(&mut self, recording: RecordingId, out: &mut dyn Outside) {
        if !self.is_aborted && self.has_started && self.end.is_none() {
            out.order(Effect::AbortRecording { recording });
        }
        self.is_aborted = true;
    }

    /// Publishes the position, if it has moved. Returns whether it was published.
    pub(super) fn publish_progress(
        &mut self,
        recording: RecordingId,
        out: &mut dyn Outside,
    ) -> bool {
        let position = self.position();
        if !self.has_started || position <= self.announced_position {
            return false;
        }
        let start_position = self.join_position;
        let message = RecordingProgress { recording_id: recording.get(), start_position, position };
        let is_sent = out.try_publish_event(&message.to_vec()) == Sending::Sent;
        if is_sent {
            self.announced_position = position;
        }
        is_sent
    }
}
