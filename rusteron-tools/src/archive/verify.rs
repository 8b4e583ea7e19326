//! `rusteron archive verify`.

use std::fmt::Display;

use crc32fast::Hasher;
use indicatif::{ProgressBar, ProgressStyle};
use rusteron_archive::{Archive, RecordingDescriptor, RecordingId, ReplayLength, ReplayParams};
use rusteron_client::Position;
use rusteron_core::log_buffer::{
    BEGIN_FLAG, END_FLAG, FLAGS, FRAME_LENGTH, HEADER_LENGTH, TERM_ID, TERM_OFFSET, TYPE,
    TYPE_DATA, TYPE_PAD, align,
};
use rusteron_core::program::Failure;
use serde::{Serialize, Serializer};

use super::session::{self, IdleLoop};
use super::{REPLAY_STREAM_ID, recordings};
use crate::options::VerifyOptions;
use crate::report::{self, Report};

/// Longest block that a poll takes. No frame is longer.
const BLOCK_LENGTH_LIMIT: usize = 1 << 20;

pub(super) fn run(archive: &Archive, options: &VerifyOptions) -> Result<(), Failure> {
    // The command line requires one without a directory.
    let recording_id = options.recording_id.unwrap_or(RecordingId::new(0));
    let verification = replay(archive, recording_id, options)?;
    let checksum = verification.checksum();
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
fn replay(
    archive: &Archive,
    recording_id: RecordingId,
    options: &VerifyOptions,
) -> Result<Verification, Failure> {
    let mut idle_loop = IdleLoop::with_deadline()?;
    let recording = recordings::descriptor(archive, recording_id)?;
    let (start, end) = (recording.start_position, archive.max_recorded_position(recording_id)?);
    let mut check = Verification::new(&recording);
    if start == end {
        // An archive refuses to replay nothing.
        return Ok(check);
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
    while check.end_position < end {
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
                let position = check.end_position;
                let text = format!("the replay has ended at {position}, before {end}");
                return Err(session::replay_ended(archive, text));
            }
            None => {}
        }
        progress.set_position(check.end_position.abs_diff(start));
        // A recording of which only a part was replayed is not verified.
        idle_loop.idle(bytes).map_err(|failure| match failure {
            Failure::Interrupted => Failure::Run("interrupted before the end".to_owned()),
            failure => failure,
        })?;
    }
    progress.finish_and_clear();
    Ok(check)
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
        lines.push(format!("Checksum {:08x}", self.checksum()));
        lines
    }
}

/// Checks the frames of a recording in their order, and holds the totals so far.
#[derive(Debug, Serialize)]
struct Verification {
    recording_id: i64,
    #[serde(skip)]
    initial_term_id: i32,
    #[serde(skip)]
    term_length: i64,
    start_position: Position,
    /// Position of the next frame.
    end_position: Position,
    frames: u64,
    /// With headers.
    padding_bytes: u64,
    messages: u64,
    payload_bytes: u64,
    /// `None` before the end of the first message.
    shortest_message: Option<u64>,
    longest_message: u64,
    /// `true` between the first and the last fragment of a message.
    ends_within_message: bool,
    /// Length of the last fragment's message, up to that fragment.
    #[serde(skip)]
    message_length: u64,
    #[serde(serialize_with = "serialize_checksum")]
    checksum: Hasher,
}

fn serialize_checksum<S: Serializer>(checksum: &Hasher, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{:08x}", checksum.clone().finalize()))
}

impl Verification {
    fn new(recording: &RecordingDescriptor) -> Self {
        Self {
            recording_id: recording.recording_id.get(),
            initial_term_id: recording.initial_term_id,
            term_length: recording.term_buffer_length.max(1) as i64,
            start_position: recording.start_position,
            end_position: recording.start_position,
            frames: 0,
            padding_bytes: 0,
            messages: 0,
            payload_bytes: 0,
            shortest_message: None,
            longest_message: 0,
            ends_within_message: false,
            message_length: 0,
            checksum: Hasher::new(),
        }
    }

    /// Returns the CRC-32 of all payloads.
    fn checksum(&self) -> u32 {
        self.checksum.clone().finalize()
    }

    /// Checks the frames of a block. Each has a header and a payload, in a multiple of 32 bytes.
    fn block(&mut self, mut block: &[u8]) -> Result<(), Failure> {
        while !block.is_empty() {
            let Some(header) = block.first_chunk::<HEADER_LENGTH>() else {
                return Err(self.fault("a part of a header"));
            };
            let i32_at = |offset: usize| {
                i32::from_le_bytes([0, 1, 2, 3].map(|index| header[offset + index]))
            };
            let frame_length = usize::try_from(i32_at(FRAME_LENGTH)).unwrap_or(0);
            let (flags, frame_type) =
                (header[FLAGS], u16::from_le_bytes([header[TYPE], header[TYPE + 1]]));
            let (term_offset, term_id) = (i32_at(TERM_OFFSET), i32_at(TERM_ID));

            let term = i64::from(term_id.wrapping_sub(self.initial_term_id));
            let position = term * self.term_length + i64::from(term_offset);
            if position != self.end_position {
                return Err(self.fault(format_args!("a frame that belongs to position {position}")));
            }
            let aligned_length = align(frame_length);
            // A block may contain only the header of a padding frame.
            let is_complete = aligned_length <= block.len() || frame_type == TYPE_PAD;
            if frame_length < HEADER_LENGTH || !is_complete {
                return Err(self.fault(format_args!("a frame of {frame_length} bytes")));
            }
            match frame_type {
                TYPE_DATA => self.fragment(&block[HEADER_LENGTH..frame_length], flags)?,
                TYPE_PAD => self.padding_bytes += aligned_length as u64,
                other => return Err(self.fault(format_args!("a frame of type {other}"))),
            }
            self.frames += 1;
            self.end_position += aligned_length as i64;
            block = block.get(aligned_length..).unwrap_or_default();
        }
        Ok(())
    }

    fn fragment(&mut self, payload: &[u8], flags: u8) -> Result<(), Failure> {
        let begins = flags & BEGIN_FLAG != 0;
        // A recording that was started within a message begins with the rest of the message.
        let is_first = self.frames == 0;
        if begins == self.ends_within_message && !is_first {
            let fault =
                if begins { "the message before is not whole" } else { "no message begins" };
            return Err(self.fault(fault));
        }
        if begins {
            self.message_length = 0;
        }
        self.checksum.update(payload);
        self.payload_bytes += payload.len() as u64;
        self.message_length += payload.len() as u64;
        self.ends_within_message = flags & END_FLAG == 0;
        if !self.ends_within_message {
            self.messages += 1;
            let length = self.message_length;
            self.shortest_message = Some(self.shortest_message.unwrap_or(length).min(length));
            self.longest_message = self.longest_message.max(length);
        }
        Ok(())
    }

    /// Returns the failure for a fault at the next frame's position.
    fn fault(&self, fault: impl Display) -> Failure {
        let (recording_id, position) = (self.recording_id, self.end_position);
        Failure::run(format_args!("recording {recording_id}, position {position}"), fault)
    }
}
