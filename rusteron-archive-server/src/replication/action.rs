//! Input of a replication, and the actions that it asks of its archive.

use crate::control::responses::Failure;
use crate::ids::{RecordingId, RegistrationId, SourceRecordingId};
use crate::protocol::signal::Signal;
use crate::replication::{ControlChannels, ReplayChannels, SourceRecording};

/// A checked request to copy a recording.
#[derive(Debug)]
pub(crate) struct ReplicationRequest {
    pub(crate) source_recording: SourceRecordingId,
    /// `None` for a new recording.
    pub(crate) recording: Option<RecordingId>,
    /// Where an existing recording ends, and whether it is empty.
    pub(crate) existing: Option<(i64, bool)>,
    /// −1 for the end of the source's recording.
    pub(crate) stop_position: i64,
    pub(crate) live_destination: Option<String>,
    pub(crate) file_io_max_length: i32,
    /// Of the source's stream, or −1.
    pub(crate) session_id: i32,
    pub(crate) control: ControlChannels,
    pub(crate) replay: ReplayChannels,
}

/// An image that is recorded into the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplicatedImage {
    pub(crate) session_id: i32,
    /// Up to where it is recorded, in bytes.
    pub(crate) position: i64,
    /// In bytes.
    pub(crate) term_length: i32,
}

/// The copy as the archive has it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copy {
    /// The subscription that extends it, once it is registered.
    pub(crate) subscription: Option<RegistrationId>,
    /// The subscription has ended, or could not be added.
    pub(crate) is_closed: bool,
    pub(crate) image: Option<ReplicatedImage>,
    /// The stop position, as far as the catalog has one.
    pub(crate) stop_position: Option<i64>,
}

/// An action that a replication asks of its archive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Adds a recording like the source's, or makes the empty recording of this id one. Outcome: `on_described`.
    Describe {
        recording: Option<RecordingId>,
        source: Box<SourceRecording>,
    },
    /// Extends the copy by the first image of a subscription, to which the destination is added.
    Extend {
        recording: RecordingId,
        channel: String,
        stream_id: i32,
        destination: Option<String>,
    },
    /// Adds the stream of requests for the replay.
    AddReplayRequests {
        channel: String,
    },
    AddDestination(String),
    /// Counts the streams of the image. Outcome: `on_transports`.
    CountTransports,
    /// The live stream has joined: removes the destination of the replay. The subscription goes on alone.
    Merge {
        destination: String,
        position: i64,
    },
    Signal {
        signal: Signal,
        position: i64,
    },
    /// Ends the replication.
    End(Option<Failure>),
}
