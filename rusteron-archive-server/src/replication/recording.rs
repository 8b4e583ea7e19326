//! The recording of the source.

use crate::catalog::NewRecording;
use crate::protocol::messages::RecordingDescriptor;

/// A recording of the source, by its descriptor. Positions and lengths are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceRecording {
    /// Milliseconds since 1970.
    pub(crate) start_timestamp: i64,
    pub(crate) start_position: i64,
    /// −1 while it is active.
    pub(crate) stop_position: i64,
    initial_term_id: i32,
    segment_length: i32,
    term_length: i32,
    pub(crate) mtu: i32,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    stripped_channel: String,
    original_channel: String,
    source_identity: String,
}

impl SourceRecording {
    pub(super) fn new(descriptor: &RecordingDescriptor<'_>) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Self {
            start_timestamp: descriptor.start_timestamp,
            start_position: descriptor.start_position,
            stop_position: descriptor.stop_position,
            initial_term_id: descriptor.initial_term_id,
            segment_length: descriptor.segment_file_length,
            term_length: descriptor.term_buffer_length,
            mtu: descriptor.mtu_length,
            session_id: descriptor.session_id,
            stream_id: descriptor.stream_id,
            stripped_channel: text(descriptor.stripped_channel),
            original_channel: text(descriptor.original_channel),
            source_identity: text(descriptor.source_identity),
        }
    }

    /// Returns the recording as a new one of this archive.
    pub(crate) fn as_new(&self) -> NewRecording<'_> {
        NewRecording {
            start_position: self.start_position,
            initial_term_id: self.initial_term_id,
            segment_length: self.segment_length,
            term_length: self.term_length,
            mtu: self.mtu,
            session_id: self.session_id,
            stream_id: self.stream_id,
            stripped_channel: &self.stripped_channel,
            original_channel: &self.original_channel,
            source_identity: &self.source_identity,
        }
    }
}
