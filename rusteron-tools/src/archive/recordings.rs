//! `rusteron archive list`, `count` and `describe`.

use std::time::SystemTime;

use rusteron_archive::{Archive, RecordingDescriptor};
use rusteron_client::Position;
use serde::Serialize;

use crate::failure::Failure;
use crate::options::{DescribeOptions, RecordingsOptions};
use crate::report::{self, Report};
use crate::text;

/// The facts that an archive knows of a recording.
#[derive(Debug, Serialize)]
pub(super) struct Recording {
    pub(super) recording_id: i64,
    #[serde(serialize_with = "text::serialize_time")]
    pub(super) start_time: SystemTime,
    /// `None` if the recording is active.
    #[serde(serialize_with = "text::serialize_optional_time")]
    pub(super) stop_time: Option<SystemTime>,
    pub(super) start_position: Position,
    /// `None` if the recording is active.
    pub(super) stop_position: Option<Position>,
    pub(super) initial_term_id: i32,
    pub(super) segment_file_length: usize,
    pub(super) term_buffer_length: usize,
    pub(super) mtu_length: usize,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) stripped_channel: String,
    pub(super) original_channel: String,
    pub(super) source_identity: String,
}

#[derive(Debug, Serialize)]
struct RecordingList {
    recordings: Vec<Recording>,
}

#[derive(Debug, Serialize)]
struct RecordingCount {
    count: usize,
}

pub(super) fn list(archive: &Archive, options: &RecordingsOptions) -> Result<(), Failure> {
    let recordings = find(archive, options)?.into_iter().map(Recording::from).collect();
    report::print(&RecordingList { recordings }, options.format.json)
}

pub(super) fn count(archive: &Archive, options: &RecordingsOptions) -> Result<(), Failure> {
    let count = find(archive, options)?.len();
    report::print(&RecordingCount { count }, options.format.json)
}

/// Returns the descriptor of a recording.
pub(super) fn descriptor(
    archive: &Archive,
    recording_id: i64,
) -> Result<RecordingDescriptor, Failure> {
    archive
        .recording(recording_id)?
        .ok_or_else(|| Failure::Run(format!("there is no recording {recording_id}")))
}

/// Returns the recordings that the options choose.
fn find(
    archive: &Archive,
    options: &RecordingsOptions,
) -> Result<Vec<RecordingDescriptor>, Failure> {
    let mut found = Vec::new();
    for recording in archive.recordings() {
        let recording = recording?;
        let has_stream_id = options.stream_id.is_none_or(|id| id == recording.stream_id);
        if has_stream_id && recording.original_channel.contains(&options.channel) {
            found.push(recording);
        }
    }
    Ok(found)
}

/// Returns the text of a value that an active recording does not have.
pub(super) fn or_active(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "active".to_owned(), |value| value.to_string())
}

impl From<RecordingDescriptor> for Recording {
    fn from(descriptor: RecordingDescriptor) -> Self {
        Self {
            recording_id: descriptor.recording_id,
            start_time: descriptor.start_time,
            stop_time: descriptor.stop_time,
            start_position: descriptor.start_position,
            stop_position: descriptor.stop_position,
            initial_term_id: descriptor.initial_term_id,
            segment_file_length: descriptor.segment_file_length,
            term_buffer_length: descriptor.term_buffer_length,
            mtu_length: descriptor.mtu_length,
            session_id: descriptor.session_id,
            stream_id: descriptor.stream_id,
            stripped_channel: descriptor.stripped_channel,
            original_channel: descriptor.original_channel,
            source_identity: descriptor.source_identity,
        }
    }
}

impl Report for RecordingList {
    fn header(&self) -> Vec<String> {
        vec![format!(
            "{:>8} {:>16} {:>16} {:>11} {:>11}  channel",
            "id", "start", "stop", "stream", "session"
        )]
    }

    fn body(&self) -> Vec<String> {
        let line = |recording: &Recording| {
            format!(
                "{:>8} {:>16} {:>16} {:>11} {:>11}  {}",
                recording.recording_id,
                recording.start_position,
                or_active(recording.stop_position),
                recording.stream_id,
                recording.session_id,
                text::printable(&recording.original_channel)
            )
        };
        self.recordings.iter().map(line).collect()
    }
}

impl Report for RecordingCount {
    fn header(&self) -> Vec<String> {
        Vec::new()
    }

    fn body(&self) -> Vec<String> {
        vec![self.count.to_string()]
    }
}

#[derive(Debug, Serialize)]
struct Description {
    #[serde(flatten)]
    recording: Recording,
    /// End of a stopped recording, or how far an active one has come.
    recorded_position: Position,
}

pub(super) fn describe(archive: &Archive, options: &DescribeOptions) -> Result<(), Failure> {
    let descriptor = descriptor(archive, options.recording_id)?;
    let recorded_position = archive.max_recorded_position(options.recording_id)?;
    let description = Description { recording: descriptor.into(), recorded_position };
    report::print(&description, options.format.json)
}

impl Report for Description {
    fn header(&self) -> Vec<String> {
        let Self { recording, recorded_position } = self;
        let length = recorded_position - recording.start_position;
        let lines = [
            ("Recording", recording.recording_id.to_string()),
            ("Channel", text::printable(&recording.original_channel)),
            ("Stream id", recording.stream_id.to_string()),
            ("Session id", recording.session_id.to_string()),
            ("Source", text::printable(&recording.source_identity)),
            ("Started", text::time(recording.start_time).to_string()),
            ("Stopped", or_active(recording.stop_time.map(text::time))),
            ("Start position", recording.start_position.to_string()),
            ("Recorded up to", recorded_position.to_string()),
            ("Length", format!("{length} bytes")),
            ("Segment files", format!("{} bytes", recording.segment_file_length)),
            ("Terms", format!("{} bytes", recording.term_buffer_length)),
            ("MTU", format!("{} bytes", recording.mtu_length)),
            ("Initial term id", recording.initial_term_id.to_string()),
        ];
        lines.iter().map(|(name, value)| format!("{name:<16}{value}")).collect()
    }

    fn body(&self) -> Vec<String> {
        Vec::new()
    }
}
