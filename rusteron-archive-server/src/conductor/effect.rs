//! What the conductor asks of the outside, and what it is told of it.
//!
//! The conductor decides; the outside ([`crate::network`], the recorder, the replayer) acts and reports by the conductor's
//! `on_…` methods. Effects are carried out in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};

/// A control session's id, as clients see it.
pub(crate) type SessionId = i64;
/// A recording's id in the catalog.
pub(crate) type RecordingId = i64;
/// The correlation id of an image: of a client's requests, or of a stream to record.
pub(crate) type ImageId = i64;
/// The registration id of an Aeron resource: what clients see as subscription id.
pub(crate) type RegistrationId = i64;

/// The outcome of an attempt to send a message to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The message is in the publication.
    Sent,
    /// A later attempt may succeed.
    BackPressured,
    /// No client reads the publication any more, or the message is too long for it.
    Failed,
}

/// The outside of the conductor. No call blocks.
pub(crate) trait Outside {
    /// Attempts to send a message to the client of a session.
    fn try_send(&mut self, session: SessionId, message: &[u8]) -> Sending;

    /// Publishes a recording event (templates 101 to 103), if events are enabled.
    fn try_publish_event(&mut self, message: &[u8]) -> Sending;

    /// Takes an order, which is carried out after those before it. Outcomes come by the conductor's `on_…` methods.
    fn order(&mut self, effect: Effect);
}

/// An order to the outside.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Adds the response publication of a session, and its counter (type 113); the outside tries again while the driver is
    /// temporarily unable. Outcome: `on_response_publication`.
    AddResponsePublication { session: SessionId, channel: String, stream_id: i32 },
    /// Ends a session's publication and counter. With a reason, its request image is rejected, too.
    CloseSession { session: SessionId, request_image: ImageId, reject: Option<String> },
    /// Adds a subscription whose images are recorded. Outcome: `on_recording_subscription`, then `on_recording_image` for
    /// each image. `ticket` names the order until there is a registration id.
    AddRecordingSubscription { ticket: i64, channel: String, stream_id: i32 },
    /// Closes a subscription, after the recordings of its images have ended.
    CloseRecordingSubscription { subscription: RegistrationId },
    /// Adds the position counter (type 100), then records an image. Outcomes: `on_recording_started`, then
    /// `on_recording_stopped` once.
    StartRecording(StartRecording),
    /// Ends a recording at the position that it has. Outcome: `on_recording_stopped`.
    AbortRecording { recording: RecordingId },
    /// Opens the first segment and adds the publication of a replay. Outcomes: `on_replay_started`, then, if it started,
    /// `on_replay_ended`.
    StartReplay(StartReplay),
    /// Ends a replay. Outcome: `on_replay_ended`.
    AbortReplay { replay: i64 },
}

/// A recording to begin, or to extend.
#[derive(Debug)]
pub(crate) struct StartRecording {
    pub(crate) recording: RecordingId,
    pub(crate) subscription: RegistrationId,
    pub(crate) image: ImageId,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    /// The channel without what does not identify the stream, for the counter's label.
    pub(crate) stripped_channel: String,
    pub(crate) source_identity: String,
    /// Where the recording starts in the stream, in bytes. It decides the names of segments.
    pub(crate) start_position: i64,
    /// Where this image is joined: the start, or the stop position of what is extended.
    pub(crate) join_position: i64,
    pub(crate) term_length: i32,
    pub(crate) segment_length: i32,
    /// The position up to which everything is recorded. The recorder stores with release, after the write and the sync.
    pub(crate) progress: Arc<Progress>,
}

/// The position of a recording in progress, which replays follow.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) position: AtomicI64,
    pub(crate) has_ended: AtomicBool,
}

/// A replay to begin.
#[derive(Debug)]
pub(crate) struct StartReplay {
    /// The upper half of the session id that clients see.
    pub(crate) replay: i64,
    pub(crate) recording: RecordingId,
    /// The client's channel and stream for the replay.
    pub(crate) channel: String,
    pub(crate) stream_id: i32,
    pub(crate) start_position: i64,
    /// Where to begin, in bytes, at a frame.
    pub(crate) position: i64,
    /// Where to end. `i64::MAX` follows the limit.
    pub(crate) end_position: i64,
    pub(crate) limit: ReplayLimit,
    pub(crate) initial_term_id: i32,
    pub(crate) term_length: i32,
    pub(crate) segment_length: i32,
    pub(crate) mtu: i32,
    /// The session id and the stream id that recorded frames had.
    pub(crate) recorded_stream_id: i32,
    /// The most bytes of one read. At least the MTU.
    pub(crate) file_io_max: i32,
    /// The control session's request image, for `control-mode=response`.
    pub(crate) request_image: ImageId,
}

/// What bounds a replay beside its end.
#[derive(Debug, Clone)]
pub(crate) enum ReplayLimit {
    /// Nothing: all bytes are there.
    None,
    /// A recording in progress. When it has ended, its position is the end.
    Recording(Arc<Progress>),
    /// A counter, while its registration lasts. Its last value is the end.
    Counter { id: i32 },
}
