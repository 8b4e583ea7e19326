//! `rusteron archive list`, `count` and `describe`.

use std::time::SystemTime;

use rusteron_archive::{Archive, RecordingDescriptor, RecordingId};
use rusteron_archive_server::offline::{ArchiveFiles, RecordingEntry, RecordingState};
use rusteron_client::Position;
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::options::{DescribeOptions, RecordingsOptions};
use crate::report::{self, Report};
use crate::text;

#[derive(Serialize)]
pub(super) struct Recording {
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
    /// Facts that only files tell.
    #[serde(flatten)]
    entry: Option<EntryFacts>,
}

#[derive(Serialize)]
struct EntryFacts {
    state: &'static str,
    /// Why no archive starts as long as the recording is valid.
    fault: Option<String>,
}

impl From<RecordingDescriptor> for Recording {
    fn from(recording: RecordingDescriptor) -> Self {
        Self {
            recording_id: recording.recording_id.get(),
            start_time: recording.start_time,
            stop_time: recording.stop_time,
            start_position: recording.start_position,
            stop_position: recording.stop_position,
            initial_term_id: recording.initial_term_id,
            segment_file_length: recording.segment_file_length,
            term_buffer_length: recording.term_buffer_length,
            mtu_length: recording.mtu_length,
            session_id: recording.session_id,
            stream_id: recording.stream_id,
            stripped_channel: recording.stripped_channel,
            original_channel: recording.original_channel,
            source_identity: recording.source_identity,
            entry: None,
        }
    }
}

impl From<&RecordingEntry> for Recording {
    fn from(entry: &RecordingEntry) -> Self {
        let length = |length: i32| usize::try_from(length).unwrap_or(0);
        Self {
            recording_id: entry.recording_id.get(),
            start_time: entry.start_time,
            stop_time: entry.stop_time,
            start_position: entry.start_position,
            stop_position: entry.stop_position,
            initial_term_id: entry.initial_term_id,
            segment_file_length: length(entry.segment_file_length),
            term_buffer_length: length(entry.term_buffer_length),
            mtu_length: length(entry.mtu_length),
            session_id: entry.session_id,
            stream_id: entry.stream_id,
            stripped_channel: entry.stripped_channel.clone(),
            original_channel: entry.original_channel.clone(),
            source_identity: entry.source_identity.clone(),
            entry: Some(EntryFacts { state: state(entry.state), fault: entry.fault.clone() }),
        }
    }
}

impl Recording {
    /// An archive lists valid recordings only.
    fn is_valid(&self) -> bool {
        self.entry.as_ref().is_none_or(|entry| entry.state == "valid")
    }
}

/// Returns the name of a state.
pub(super) fn state(state: Option<RecordingState>) -> &'static str {
    match state {
        Some(RecordingState::Valid) => "valid",
        Some(RecordingState::Invalid) => "invalid",
        Some(RecordingState::Deleted) => "deleted",
        None => "unknown",
    }
}

/// Returns the recordings that an archive lists.
pub(super) fn of_archive(archive: &Archive) -> Result<Vec<Recording>, Failure> {
    let recordings: Result<Vec<_>, _> = archive.recordings().collect();
    Ok(recordings?.into_iter().map(Recording::from).collect())
}

#[derive(Serialize)]
struct RecordingList {
    recordings: Vec<Recording>,
}

#[derive(Debug, Serialize)]
struct RecordingCount {
    count: usize,
}

pub(super) fn list(recordings: Vec<Recording>, options: &RecordingsOptions) -> Result<(), Failure> {
    let recordings = recordings.into_iter().filter(|it| is_chosen(it, options)).collect();
    report::print(&RecordingList { recordings }, options.format.json)
}

pub(super) fn count(recordings: &[Recording], options: &RecordingsOptions) -> Result<(), Failure> {
    let is_counted = |it: &&Recording| it.is_valid() && is_chosen(it, options);
    let count = recordings.iter().filter(is_counted).count();
    report::print(&RecordingCount { count }, options.format.json)
}

fn is_chosen(recording: &Recording, options: &RecordingsOptions) -> bool {
    options.stream_id.is_none_or(|id| id == recording.stream_id)
        && recording.original_channel.contains(&options.channel)
}

/// Returns the descriptor of a recording.
pub(super) fn descriptor(
    archive: &Archive,
    recording_id: RecordingId,
) -> Result<RecordingDescriptor, Failure> {
    archive
        .recording(recording_id)?
        .ok_or_else(|| Failure::Run(format!("there is no recording {recording_id}")))
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
        let line = |recording: &Recording| {
            let entry = recording.entry.as_ref().filter(|_| !recording.is_valid());
            format!(
                "{:>8} {:>16} {:>16} {:>11} {:>11}  {}{}",
                recording.recording_id,
                recording.start_position,
                or_active(recording.stop_position),
                recording.stream_id,
                recording.session_id,
                text::printable(&recording.original_channel),
                entry.map_or_else(String::new, |entry| format!("  ({})", entry.state))
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
    #[serde(flatten)]
    recording: Recording,
    /// End of a stopped recording, or how far an active one has come.
    recorded_position: Position,
}

pub(super) fn describe(archive: &Archive, options: &DescribeOptions) -> Result<(), Failure> {
    let recording = descriptor(archive, options.recording_id)?.into();
    let recorded_position = archive.max_recorded_position(options.recording_id)?;
    let description = Description { recording, recorded_position };
    report::print(&description, options.format.json)
}

/// As [`describe`], by the files of an archive.
pub(super) fn describe_files(
    files: &ArchiveFiles,
    options: &DescribeOptions,
) -> Result<(), Failure> {
    let entry = files.recording(options.recording_id)?;
    // Where the frames end, if an archive was killed or records at present.
    let end = || files.verify(entry, &Default::default()).end_position;
    let recorded_position = entry.stop_position.or_else(end).unwrap_or(entry.start_position);
    let description = Description { recording: entry.into(), recorded_position };
    report::print(&description, options.format.json)
}

impl Report for Description {
    fn header(&self) -> Vec<String> {
        let Self { recording, recorded_position } = self;
        let length = recorded_position.wrapping_sub(recording.start_position);
        let mut lines = vec![
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
        if let Some(entry) = &recording.entry {
            lines.push(("State", entry.state.to_owned()));
            lines.extend(entry.fault.as_ref().map(|fault| ("Fault", text::printable(fault))));
        }
        lines.iter().map(|(name, value)| format!("{name:<16}{value}")).collect()
    }
}
