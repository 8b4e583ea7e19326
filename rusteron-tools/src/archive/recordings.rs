//! `rusteron archive list`, `count` and `describe`.

use std::time::SystemTime;

use rusteron_archive::{Archive, RecordingDescriptor};
use rusteron_client::Position;
use serde::Serialize;

use crate::failure::Failure;
use crate::options::{DescribeOptions, RecordingsOptions};
use crate::report::{self, Report};
use crate::text;

/// The JSON of a descriptor.
#[derive(Serialize)]
#[serde(remote = "RecordingDescriptor")]
struct Recording {
    recording_id: i64,
    #[serde(serialize_with = "text::serialize_time")]
    start_time: SystemTime,
    /// `None` if the recording is active.
    #[serde(serialize_with = "text::serialize_time")]
    stop_time: Option<SystemTime>,
    start_position: Position,
    /// `None` if the recording is active.
    stop_position: Option<Position>,
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

#[derive(Serialize)]
#[serde(transparent)]
struct Listed(#[serde(with = "Recording")] RecordingDescriptor);

#[derive(Serialize)]
struct RecordingList {
    recordings: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct RecordingCount {
    count: usize,
}

pub(super) fn list(archive: &Archive, options: &RecordingsOptions) -> Result<(), Failure> {
    let recordings = find(archive, options)?.into_iter().map(Listed).collect();
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

impl Report for RecordingList {
    fn header(&self) -> Vec<String> {
        vec![format!(
            "{:>8} {:>16} {:>16} {:>11} {:>11}  channel",
            "id", "start", "stop", "stream", "session"
        )]
    }

    fn body(&self) -> Vec<String> {
        let line = |Listed(recording): &Listed| {
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
        vec![self.count.to_string()]
    }
}

#[derive(Serialize)]
struct Description {
    #[serde(flatten, with = "Recording")]
    recording: RecordingDescriptor,
    /// End of a stopped recording, or how far an active one has come.
    recorded_position: Position,
}

pub(super) fn describe(archive: &Archive, options: &DescribeOptions) -> Result<(), Failure> {
    let recording = descriptor(archive, options.recording_id)?;
    let recorded_position = archive.max_recorded_position(options.recording_id)?;
    let description = Description { recording, recorded_position };
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
}
