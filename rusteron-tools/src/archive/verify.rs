//! `rusteron archive verify`.

use std::fmt::Display;

use crc32fast::Hasher;
use indicatif::{ProgressBar, ProgressStyle};
use rusteron_archive::{Archive, RecordingDescriptor, ReplayLength, ReplayParams};
use rusteron_client::Position;
use serde::Serialize;

use super::session::IdleLoop;
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

const HEADER_LENGTH: usize = 32;
const ALIGNMENT: usize = 32;

/// Frame types.
const PADDING: u16 = 0;
const DATA: u16 = 1;

/// Flags of a data frame.
const BEGIN: u8 = 0x80;
const END: u8 = 0x40;

/// Checks the frames of a recording in their order, and counts them.
#[derive(Debug)]
pub(super) struct FrameCheck {
    recording_id: i64,
    initial_term_id: i32,
    term_length: i64,
    /// Position of the next frame.
    pub(super) end: Position,
    pub(super) frames: u64,
    /// In bytes, with headers.
    pub(super) padding: u64,
    pub(super) messages: u64,
    /// In bytes.
    pub(super) payload: u64,
    /// Length of the shortest message. `None` before the first message.
    pub(super) shortest: Option<u64>,
    pub(super) longest: u64,
    /// `true` between the first and the last fragment of a message.
    pub(super) is_in_message: bool,
    /// Length of the last fragment's message, up to that fragment.
    message_length: u64,
    checksum: Hasher,
}

impl FrameCheck {
    pub(super) fn new(recording: &RecordingDescriptor) -> Self {
        Self {
            recording_id: recording.recording_id,
            initial_term_id: recording.initial_term_id,
            term_length: recording.term_buffer_length.max(1) as i64,
            end: recording.start_position,
            frames: 0,
            padding: 0,
            messages: 0,
            payload: 0,
            shortest: None,
            longest: 0,
            is_in_message: false,
            message_length: 0,
            checksum: Hasher::new(),
        }
    }

    /// Returns the CRC-32 of all payloads.
    pub(super) fn checksum(&self) -> u32 {
        self.checksum.clone().finalize()
    }

    /// Checks the frames of a block. Each has a header and a payload, in a multiple of 32 bytes.
    pub(super) fn block(&mut self, mut block: &[u8]) -> Result<(), Failure> {
        while !block.is_empty() {
            let Some(header) = block.first_chunk::<HEADER_LENGTH>() else {
                return Err(self.fault("a part of a header"));
            };
            let i32_at = |offset: usize| {
                i32::from_le_bytes([0, 1, 2, 3].map(|index| header[offset + index]))
            };
            let frame_length = usize::try_from(i32_at(0)).unwrap_or(0);
            let (flags, frame_type) = (header[5], u16::from_le_bytes([header[6], header[7]]));
            let (term_offset, term_id) = (i32_at(8), i32_at(20));

            let term = i64::from(term_id.wrapping_sub(self.initial_term_id));
            let position = term * self.term_length + i64::from(term_offset);
            if position != self.end {
                return Err(self.fault(format_args!("a frame that belongs to position {position}")));
            }
            let aligned_length = frame_length.next_multiple_of(ALIGNMENT);
            // A block may contain only the header of a padding frame.
            let is_complete = aligned_length <= block.len() || frame_type == PADDING;
            if frame_length < HEADER_LENGTH || !is_complete {
                return Err(self.fault(format_args!("a frame of {frame_length} bytes")));
            }
            match frame_type {
                DATA => self.fragment(&block[HEADER_LENGTH..frame_length], flags)?,
                PADDING => self.padding += aligned_length as u64,
                other => return Err(self.fault(format_args!("a frame of type {other}"))),
            }
            self.frames += 1;
            self.end += aligned_length as i64;
            block = block.get(aligned_length..).unwrap_or_default();
        }
        Ok(())
    }

    fn fragment(&mut self, payload: &[u8], flags: u8) -> Result<(), Failure> {
        let begins = flags & BEGIN != 0;
        // A recording that was started within a message begins with the rest of the message.
        let is_first = self.frames == 0;
        if begins == self.is_in_message && !is_first {
            let fault =
                if begins { "the message before is not whole" } else { "no message begins" };
            return Err(self.fault(fault));
        }
        if begins {
            self.message_length = 0;
        }
        self.checksum.update(payload);
        self.payload += payload.len() as u64;
        self.message_length += payload.len() as u64;
        self.is_in_message = flags & END == 0;
        if !self.is_in_message {
            self.messages += 1;
            let length = self.message_length;
            self.shortest = Some(self.shortest.map_or(length, |shortest| shortest.min(length)));
            self.longest = self.longest.max(length);
        }
        Ok(())
    }

    /// Returns the failure for a fault at the next frame's position.
    fn fault(&self, fault: impl Display) -> Failure {
        let (recording_id, position) = (self.recording_id, self.end);
        Failure::run(format_args!("recording {recording_id}, position {position}"), fault)
    }
}
