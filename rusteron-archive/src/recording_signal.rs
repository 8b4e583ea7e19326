//! Signals that an archive sends about the recordings of a session.

use rusteron_client::Position;
use rusteron_sys::archive as sys;

/// An event of a recording of this session.
///
/// Passed to the consumer that [`Context::set_recording_signal_consumer`] sets.
///
/// [`Context::set_recording_signal_consumer`]: crate::Context::set_recording_signal_consumer
#[doc(alias = "RecordingSignalConsumer")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RecordingSignal {
    /// The kind of event.
    pub kind: RecordingSignalKind,
    /// The recording.
    pub recording_id: i64,
    /// The archive's subscription that records it, or `None` if there is none.
    pub subscription_id: Option<i64>,
    /// The position in the recording, or `None` if the recording is empty or gone.
    pub position: Option<Position>,
    /// The session that received the signal.
    pub control_session_id: i64,
}

/// Kinds of recording signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordingSignalKind {
    /// Recording has started.
    Start,
    /// Recording has stopped.
    Stop,
    /// Recording continues at the end of the existing recording.
    Extend,
    /// Replication into the recording has started.
    Replicate,
    /// The replicated recording has joined the live stream.
    Merge,
    /// The replicated recording has caught up with its source.
    Sync,
    /// Recording or replication has stopped, and the recording has been deleted.
    Delete,
    /// Replication has ended, successfully or not.
    ReplicateEnd,
    /// A number that this version does not know.
    Unknown(i32),
}

const NULL_VALUE: i64 = -1;

impl RecordingSignal {
    pub(crate) fn from_raw(raw: &sys::aeron_archive_recording_signal_t) -> Self {
        let unless_null = |value: i64| (value != NULL_VALUE).then_some(value);
        Self {
            kind: RecordingSignalKind::from_code(raw.recording_signal_code),
            recording_id: raw.recording_id,
            subscription_id: unless_null(raw.subscription_id),
            position: unless_null(raw.position),
            control_session_id: raw.control_session_id,
        }
    }
}

impl RecordingSignalKind {
    fn from_code(code: i32) -> Self {
        use sys::*;
        const START: i32 =
            aeron_archive_client_recording_signal_en_AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_START;
        const STOP: i32 =
            aeron_archive_client_recording_signal_en_AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_STOP;
        const EXTEND: i32 =
            aeron_archive_client_recording_signal_en_AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_EXTEND;
        const REPLICATE: i32 =
            aeron_archive_client_recording_signal_en_AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_REPLICATE;
        const MERGE: i32 =
            aeron_archive_client_recording_signal_en_AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_MERGE;
        const SYNC: i32 =
            aeron_archive_client_recording_signal_en_AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_SYNC;
        const DELETE: i32 =
            aeron_archive_client_recording_signal_en_AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_DELETE;
        const REPLICATE_END: i32 =
            aeron_archive_client_recording_signal_en_AERON_ARCHIVE_CLIENT_RECORDING_SIGNAL_REPLICATE_END;
        match code {
            START => Self::Start,
            STOP => Self::Stop,
            EXTEND => Self::Extend,
            REPLICATE => Self::Replicate,
            MERGE => Self::Merge,
            SYNC => Self::Sync,
            DELETE => Self::Delete,
            REPLICATE_END => Self::ReplicateEnd,
            code => Self::Unknown(code),
        }
    }
}
