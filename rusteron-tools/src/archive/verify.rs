//! `rusteron archive verify`.

use indicatif::{ProgressBar, ProgressStyle};
use rusteron_archive::{Archive, ReplayLength, ReplayParams};
use rusteron_client::Position;
use serde::Serialize;

use super::frame_check::FrameCheck;
use super::idle_loop::IdleLoop;
use super::{REPLAY_STREAM_ID, recordings};
use crate::failure::Failure;
use crate::options::VerifyOptions;
use crate::report::{self, Report};

/// Longest block that a poll takes. No frame is longer.
const BLOCK_LENGTH_LIMIT: usize = 1 << 20;

/// The facts about a recording that was replayed.
#[derive(Debug, Serialize)]
struct Verification {
    recording_id: i64,
    start_position: Position,
    end_position: Position,
    frames: u64,
    padding_bytes: u64,
    messages: u64,
    payload_bytes: u64,
    shortest_message: Option<u64>,
    longest_message: u64,
    ends_within_message: bool,
    checksum: String,
}

pub(super) fn run(archive: &Archive, options: &VerifyOptions) -> Result<(), Failure> {
    let recording_id = options.recording_id;
    let (start_position, check) = replay(archive, options)?;
    let checksum = check.checksum();
    let verification = Verification {
        recording_id,
        start_position,
        end_position: check.end,
        frames: check.frames,
        padding_bytes: check.padding,
        messages: check.messages,
        payload_bytes: check.payload,
        shortest_message: check.shortest,
        longest_message: check.longest,
        ends_within_message: check.is_in_message,
        checksum: format!("{checksum:08x}"),
    };
    let printed = report::print(&verification, options.format.json);
    // Also if the reader of the output is gone.
    match options.checksum.filter(|expected| *expected != checksum) {
        Some(expected) => Err(Failure::Run(format!(
            "recording {recording_id}: the checksum is {checksum:08x}, and not {expected:08x}"
        ))),
        None => printed,
    }
}

/// Replays and checks everything that is recorded at the time of the call. The recording may go on.
/// Returns the start of the recording, and the check.
fn replay(archive: &Archive, options: &VerifyOptions) -> Result<(Position, FrameCheck), Failure> {
    let recording_id = options.recording_id;
    let mut idle_loop = IdleLoop::with_deadline()?;
    let recording = recordings::descriptor(archive, recording_id)?;
    let (start, end) = (recording.start_position, archive.max_recorded_position(recording_id)?);
    let mut check = FrameCheck::new(&recording);
    if start == end {
        // An archive refuses to replay nothing.
        return Ok((start, check));
    }
    let length = end.abs_diff(start);
    // On standard error, and only if that is a terminal.
    let progress = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bytes}/{total_bytes} {wide_bar} {eta}") {
        progress.set_style(style);
    }
    let params = ReplayParams::new().length(ReplayLength::Bytes(length));
    let channel = &options.replay.replay_channel;
    let mut subscription = archive.replay(recording_id, channel, REPLAY_STREAM_ID, params)?;
    let mut has_image = false;
    while check.end < end {
        let mut bytes = 0;
        match subscription.image_at_index(0) {
            Some(mut image) => {
                has_image = true;
                let mut outcome = Ok(());
                let handler = |block: &[u8], _session_id: i32, _term_id: i32| {
                    outcome = check.block(block);
                };
                bytes = image.block_poll(handler, BLOCK_LENGTH_LIMIT);
                outcome?;
            }
            None if has_image => {
                let position = check.end;
                return Err(Failure::Run(format!(
                    "the replay has ended at {position}, before {end}"
                )));
            }
            None => {}
        }
        progress.set_position(check.end.abs_diff(start));
        // A recording of which only a part was replayed is not verified.
        idle_loop.idle(bytes).map_err(|failure| match failure {
            Failure::Interrupted => Failure::Run("interrupted before the end".to_owned()),
            failure => failure,
        })?;
    }
    progress.finish_and_clear();
    Ok((start, check))
}

impl Report for Verification {
    fn header(&self) -> Vec<String> {
        let Self { recording_id, start_position, end_position, .. } = self;
        let shortest = self.shortest_message.unwrap_or(0);
        let mut lines = vec![
            format!("Recording {recording_id}, positions {start_position} to {end_position}"),
            format!(
                "{} messages of {shortest} to {} bytes, {} bytes in all",
                self.messages, self.longest_message, self.payload_bytes
            ),
            format!("{} frames, padding of {} bytes", self.frames, self.padding_bytes),
        ];
        if self.ends_within_message {
            lines.push(
                "The last message is not whole: recording goes on, or was stopped within it"
                    .to_owned(),
            );
        }
        lines.push(format!("Checksum {}", self.checksum));
        lines
    }

    fn body(&self) -> Vec<String> {
        Vec::new()
    }
}
