//! Recordings of an archive.

use std::time::SystemTime;

use pyo3::prelude::*;
use rusteron_archive as rust;

/// A recording.
#[pyclass(frozen, get_all, module = "rusteron")]
pub(crate) struct RecordingDescriptor {
    recording_id: i64,
    start_time: SystemTime,
    stop_time: Option<SystemTime>,
    start_position: i64,
    stop_position: Option<i64>,
    initial_term_id: i32,
    segment_file_length: usize,
    term_buffer_length: usize,
    mtu_length: usize,
    session_id: i32,
    stream_id: i32,
    stripped_channel: String,
    original_channel: String,
    source_identity: String,
}

impl From<rust::RecordingDescriptor> for RecordingDescriptor {
    fn from(found: rust::RecordingDescriptor) -> Self {
        Self {
            recording_id: found.recording_id,
            start_time: found.start_time,
            stop_time: found.stop_time,
            start_position: found.start_position,
            stop_position: found.stop_position,
            initial_term_id: found.initial_term_id,
            segment_file_length: found.segment_file_length,
            term_buffer_length: found.term_buffer_length,
            mtu_length: found.mtu_length,
            session_id: found.session_id,
            stream_id: found.stream_id,
            stripped_channel: found.stripped_channel,
            original_channel: found.original_channel,
            source_identity: found.source_identity,
        }
    }
}

#[pymethods]
impl RecordingDescriptor {
    fn __repr__(&self) -> String {
        format!(
            "RecordingDescriptor(recording_id={}, stripped_channel={:?}, stream_id={}, session_id={})",
            self.recording_id, self.stripped_channel, self.stream_id, self.session_id
        )
    }
}
