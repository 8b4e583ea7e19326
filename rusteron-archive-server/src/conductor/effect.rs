//! What the conductor asks of the outside, and what it is told of it.
//!
//! The conductor decides; the outside ([`crate::network`], the recorder, the replayer) acts, and
//! reports by [events](super::event). Effects are carried out in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

pub(crate) use crate::control::responses::Failure;
pub(crate) use crate::control::{Clock, Responder, Sending};
pub(crate) use crate::ids::{
    ControlSessionId, ImageId, RecordingId, RegistrationId, ReplayId, ReplicationId, Ticket,
};
use crate::mark_file::PositionSlot;
use crate::replication::ControlChannels;
pub(crate) use crate::replication::{RequestStream, SourceLink};
use crate::segment::Geometry;

/// A counter that bounds a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CounterView {
    pub(crate) value: i64,
    pub(crate) registration_id: RegistrationId,
}

/// Who has caused an error, which decides what operators see of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The server, the media driver, or the files.
    Server,
    /// A client, who is told of its mistake. Like Java's archive, the server prints no line then:
    /// operators can do nothing about it.
    Client,
    /// Anybody on the network, as often as they like.
    Stranger,
    /// A client whose session is not there, or no longer. Nobody can be told of it, and the server
    /// prints no line: honest clients send such requests while their session ends.
    LateRequest,
}

/// The outside of the conductor. No call blocks.
pub(crate) trait Outside: Responder + SourceLink {
    /// Publishes a recording event (templates 101 to 103). Asked only if events are enabled.
    fn try_publish_event(&mut self, message: &[u8]) -> Sending;

    /// Reads an allocated counter. The text of the error says why there is none.
    fn counter(&self, id: i32) -> Result<CounterView, String>;

    /// Writes to the archive's error log, and counts an error (type 101).
    fn report(&mut self, blame: Blame, text: &str);

    /// Takes an order, which is carried out after those before it. Outcomes come as events.
    fn order(&mut self, effect: Effect);
}

/// An order to the outside. The outcomes that are named here are variants of
/// [`Event`](super::event::Event).
#[derive(Debug)]
pub(crate) enum Effect {
    /// Adds the exclusive response publication of a session, and its counter (type 113). The
    /// outside tries again while the driver is temporarily unable. Outcome: `ResponsePublication`,
    /// once both are there.
    AddResponsePublication {
        session: ControlSessionId,
        channel: String,
        stream_id: i32,
        /// For the counter's label, with the image's source identity and session id.
        request_image: ImageId,
        /// For the counter's label. May be empty.
        client_info: String,
    },
    /// Ends a session: revokes its publication, closes its counter, cancels what is still being
    /// added. With a reason, its request image is rejected, too.
    CloseSession { session: ControlSessionId, request_image: ImageId, reject: Option<String> },
    /// Adds a subscription whose images are recorded, with a destination if it has such. Outcome:
    /// `RecordingSubscription`, then `RecordingImage` for each image.
    AddRecordingSubscription {
        ticket: Ticket,
        channel: String,
        stream_id: i32,
        destination: Option<String>,
    },
    /// Closes a subscription. None of its images is being recorded any more.
    CloseRecordingSubscription { subscription: RegistrationId },
    /// Adds the position counter (type 100), then records an image. Outcomes: `RecordingStarted`,
    /// then, if it started, `RecordingStopped` once.
    StartRecording(StartRecording),
    /// Ends a recording that has started, at the position that it has. Outcome: `RecordingStopped`.
    AbortRecording { recording: RecordingId },
    /// Adds the publication of a replay, and opens the first segment. Outcomes: `ReplayStarted`,
    /// then, if it started, `ReplayEnded` once.
    StartReplay(StartReplay),
    /// Ends a replay that has started. Outcome: `ReplayEnded`.
    AbortReplay { replay: ReplayId },
    /// Adds the streams to and from the source of a replication. Outcomes: `SourceAdded` once the
    /// source reads requests, then `SourceMessage` for each message, and `SourceFailed` if anything
    /// fails.
    ConnectSource { replication: ReplicationId, channels: ControlChannels },
    /// Adds a stream of requests to the source. Outcome: `SourceFailed` if that fails.
    AddReplayRequests { replication: ReplicationId, channel: String, stream_id: i32 },
    /// Closes all streams to and from the source of a replication.
    CloseSource { replication: ReplicationId },
    /// Adds a destination to a recording subscription. Outcome: `DestinationFailed` if that fails.
    AddDestination { subscription: RegistrationId, channel: String },
    /// Removes a destination from a recording subscription. Outcome: `DestinationFailed` if that
    /// fails.
    RemoveDestination { subscription: RegistrationId, channel: String },
    /// Counts the streams that feed the image of a recording. Outcome: `Transports`, unless it has
    /// stopped.
    CountTransports { recording: RecordingId },
}

/// An image of a recording subscription.
#[derive(Debug, Clone)]
pub(crate) struct ImageDetails {
    pub(crate) image: ImageId,
    pub(crate) session_id: i32,
    pub(crate) source_identity: String,
    pub(crate) initial_term_id: i32,
    /// In bytes.
    pub(crate) term_length: i32,
    /// In bytes.
    pub(crate) mtu: i32,
    /// In bytes.
    pub(crate) join_position: i64,
}

/// A recording to begin, or to extend.
#[derive(Debug)]
pub(crate) struct StartRecording {
    pub(crate) geometry: Geometry,
    pub(crate) subscription: RegistrationId,
    pub(crate) image: ImageId,
    pub(crate) session_id: i32,
    pub(crate) mtu: i32,
    /// The channel without what does not identify the stream, for the counter's label.
    pub(crate) stripped_channel: String,
    pub(crate) source_identity: String,
    /// Where this image is joined: the start, or the stop position of what is extended.
    pub(crate) join_position: i64,
    /// The recording begins here, so it has no segment yet.
    pub(crate) is_new: bool,
    /// The position up to which everything is recorded. The recorder stores it with release, after
    /// the write and the sync.
    pub(crate) progress: Arc<Progress>,
}

/// The position of a recording in progress, which replays follow.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) position: AtomicI64,
    /// Stored with release after the last position.
    pub(crate) has_ended: AtomicBool,
    /// Where the next server finds the position if this one is killed.
    slot: Option<PositionSlot>,
}

impl Progress {
    pub(crate) fn new(position: i64, slot: Option<PositionSlot>) -> Arc<Self> {
        let (position, has_ended) = (AtomicI64::new(position), AtomicBool::new(false));
        Arc::new(Self { position, has_ended, slot })
    }

    #[cfg(test)]
    pub(crate) fn from(position: i64) -> Arc<Self> {
        Self::new(position, None)
    }

    /// Moves the position, before anything else shows it.
    #[inline]
    pub(crate) fn advance(&self, position: i64) {
        if let Some(slot) = &self.slot {
            slot.store(position);
        }
        self.position.store(position, Ordering::Release);
    }

    /// Lets another recording use the slot, once. The catalog has to have the end of this one.
    pub(crate) fn release_slot(&self) {
        if let Some(slot) = &self.slot {
            slot.release();
        }
    }
}

/// A replay to begin.
#[derive(Debug)]
pub(crate) struct StartReplay {
    pub(crate) replay: ReplayId,
    pub(crate) geometry: Geometry,
    /// The publication's channel, complete with the position at which it starts.
    pub(crate) channel: String,
    pub(crate) stream_id: i32,
    /// Where to begin, in bytes, at a frame.
    pub(crate) position: i64,
    pub(crate) progress: Arc<ReplayProgress>,
    /// Where to end at the latest, in bytes. May lie beyond what is recorded yet.
    pub(crate) end_position: i64,
    /// Up to where the recording reached when the replay was requested, in bytes.
    pub(crate) stop_position: i64,
    pub(crate) limit: ReplayLimit,
    pub(crate) mtu: i32,
    /// The most bytes of one read. At least the MTU.
    pub(crate) file_io_max: i32,
}

/// How far a replay has come. The replayer writes it, and the conductor reads it.
#[derive(Debug)]
pub(crate) struct ReplayProgress {
    /// The base of the segment that is read. It is stored with release before the next one is
    /// opened.
    pub(crate) segment_base: AtomicI64,
    /// Set once a subscriber is there.
    pub(crate) is_connected: AtomicBool,
}

impl ReplayProgress {
    pub(crate) fn new(segment_base: i64) -> Arc<Self> {
        Arc::new(Self {
            segment_base: AtomicI64::new(segment_base),
            is_connected: AtomicBool::new(false),
        })
    }
}

/// What bounds a replay beside its end.
#[derive(Debug, Clone)]
pub(crate) enum ReplayLimit {
    /// Nothing: all bytes are there.
    None,
    /// A recording in progress. When it has ended, its position is the end.
    Recording(Arc<Progress>),
    /// A counter, while its registration lasts. Its last value is the end.
    Counter { id: i32, registration_id: RegistrationId },
}
