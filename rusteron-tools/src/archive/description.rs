//! `rusteron archive describe`.

use rusteron_archive::Archive;
use rusteron_client::Position;
use serde::Serialize;

use super::recordings::{self, Recording, or_active};
use crate::failure::Failure;
use crate::options::DescribeOptions;
use crate::report::{self, Report};
use crate::text;

#[derive(Debug, Serialize)]
struct Description {
    #[serde(flatten)]
    recording: Recording,
    /// End of a stopped recording, or how far an active one has come.
    recorded_position: Position,
}

pub(super) fn run(archive: &Archive, options: &DescribeOptions) -> Result<(), Failure> {
    let descriptor = recordings::descriptor(archive, options.recording_id)?;
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
