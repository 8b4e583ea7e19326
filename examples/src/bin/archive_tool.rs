//! Lists the recordings of an archive, and shows their content.
//!
//! Shows:
//! - listing recordings, and the facts that an archive knows of each;
//! - replays of a part of a recording, with a known end, and replays that follow an active
//!   recording;
//! - reading frames in blocks, headers and padding included, to account for every byte.
//!
//! Needs an archive that runs already, such as Java's: `just run-archive-java`.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use crc32fast::Hasher;
use indicatif::{ProgressBar, ProgressStyle};
use rusteron_archive::{Archive, RecordingDescriptor, ReplayLength, ReplayParams};
use rusteron_client::{Aeron, ChannelUri, Position};
use rusteron_examples::archive::ArchiveOptions;
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::Turns;
use serde_json::{Value, json};

/// Looks into an archive
#[derive(Debug, Parser)]
#[command(name = "archive_tool", version)]
struct Options {
    /// Where the archive is.
    #[command(flatten)]
    archive: ArchiveOptions,

    /// Where the archive is to replay to; without a driver in common, such as aeron:udp?endpoint=HOST:PORT
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    replay_channel: ChannelUri,

    /// Print JSON, in one line; of `tail`, a line for each message
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the recordings
    List(Filter),
    /// Count the recordings
    Count(Filter),
    /// Print the facts that the archive knows of a recording
    Describe {
        /// The recording
        #[arg(value_name = "ID")]
        recording_id: i64,
    },
    /// Replay a recording, and check that every byte is accounted for
    ///
    /// Exit code 0 says that every byte is. Then frames follow each other from the first position to the last,
    /// at the positions that they name. Messages in several fragments are whole, except perhaps the last one.
    /// The checksum is the CRC-32 of all payloads in their order, as zlib and Java compute it. Copies of a
    /// recording have the same checksum.
    Verify {
        /// The recording
        #[arg(value_name = "ID")]
        recording_id: i64,
        /// The checksum that there must be, as an earlier run has printed it
        #[arg(long, value_name = "HEX", value_parser = parse_checksum)]
        checksum: Option<u32>,
    },
    /// Print the messages of a recording, and go on with it until it stops, or Ctrl-C
    Tail {
        /// The recording
        #[arg(value_name = "ID")]
        recording_id: i64,
        /// Where to begin: where a frame begins in the recording [default: its start]
        #[arg(long, value_name = "POSITION", conflicts_with = "new")]
        from: Option<Position>,
        /// Begin with the messages that are recorded from now on
        #[arg(long)]
        new: bool,
        /// End after so many messages
        #[arg(long, value_name = "N")]
        messages: Option<u64>,
    },
}

/// Which recordings.
#[derive(Debug, Args)]
struct Filter {
    /// Only those whose channel contains this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    channel: String,

    /// Only those of this stream id
    #[arg(long, allow_hyphen_values = true, value_name = "ID")]
    stream_id: Option<i32>,
}

/// Stream id of the replays, which their session ids tell from others.
const REPLAY_STREAM_ID: i32 = 1001;
/// How many fragments a poll takes at the most.
const FRAGMENT_LIMIT: usize = 10;
/// How many bytes a block has at the most. No frame is longer.
const BLOCK_LENGTH_LIMIT: usize = 1 << 20;

fn main() -> ExitCode {
    let options = Options::parse();
    failure::exit_code(options.archive.with_client(|aeron| run(&options, aeron)))
}

fn run(options: &Options, aeron: &Aeron) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let archive = options.archive.connect(aeron)?;
    let json = options.json;
    match &options.command {
        Command::List(filter) => list(&archive, filter, json, &mut output),
        Command::Count(filter) => {
            let count = recordings(&archive, filter)?.len();
            if json { output.line(json!({ "count": count })) } else { output.line(count) }
        }
        Command::Describe { recording_id } => describe(&archive, *recording_id, json, &mut output),
        Command::Verify { recording_id, checksum } => {
            let verified = verify(
                &archive,
                *recording_id,
                options,
                Turns::awaiting("the replay", &interrupt),
            )?;
            verified.print(json, &mut output)?;
            verified.compare(*checksum)
        }
        Command::Tail { recording_id, from, new, messages } => {
            let start = match from {
                Some(position) => *position,
                None if *new => archive.max_recorded_position(*recording_id)?,
                None => archive.start_position(*recording_id)?,
            };
            let turns = Turns::until_interrupted(&interrupt);
            tail(&archive, *recording_id, start, *messages, options, &mut output, turns)
        }
    }
}

fn recordings(archive: &Archive, filter: &Filter) -> Result<Vec<RecordingDescriptor>, Failure> {
    let mut found = Vec::new();
    for recording in archive.recordings() {
        let recording = recording?;
        let has_stream_id = filter.stream_id.is_none_or(|id| id == recording.stream_id);
        if has_stream_id && recording.original_channel.contains(&filter.channel) {
            found.push(recording);
        }
    }
    Ok(found)
}

fn list(
    archive: &Archive,
    filter: &Filter,
    json: bool,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let found = recordings(archive, filter)?;
    if json {
        let recordings: Vec<_> = found.iter().map(to_json).collect();
        return output.line(json!({ "recordings": recordings }));
    }
    output.line(format_args!(
        "{:>8} {:>16} {:>16} {:>11} {:>11}  channel",
        "id", "start", "stop", "stream", "session"
    ))?;
    for recording in found {
        output.line(format_args!(
            "{:>8} {:>16} {:>16} {:>11} {:>11}  {}",
            recording.recording_id,
            recording.start_position,
            or_active(recording.stop_position),
            recording.stream_id,
            recording.session_id,
            recording.original_channel
        ))?;
    }
    Ok(())
}

fn or_active(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "active".to_owned(), |value| value.to_string())
}

fn describe(
    archive: &Archive,
    recording_id: i64,
    json: bool,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let recording = archive
        .recording(recording_id)?
        .ok_or_else(|| Failure::Run(format!("there is no recording {recording_id}")))?;
    let recorded = archive.max_recorded_position(recording_id)?;
    let mut description = to_json(&recording);
    description["recorded_position"] = recorded.into();
    if json {
        return output.line(description);
    }
    let time = humantime::format_rfc3339_seconds;
    let lines = [
        ("Recording", recording.recording_id.to_string()),
        ("Channel", recording.original_channel),
        ("Stream id", recording.stream_id.to_string()),
        ("Session id", recording.session_id.to_string()),
        ("Source", recording.source_identity),
        ("Started", time(recording.start_time).to_string()),
        ("Stopped", or_active(recording.stop_time.map(time))),
        ("Start position", recording.start_position.to_string()),
        ("Recorded up to", recorded.to_string()),
        ("Length", format!("{} bytes", recorded - recording.start_position)),
        ("Segment files", format!("{} bytes", recording.segment_file_length)),
        ("Terms", format!("{} bytes", recording.term_buffer_length)),
        ("MTU", format!("{} bytes", recording.mtu_length)),
        ("Initial term id", recording.initial_term_id.to_string()),
    ];
    lines.iter().try_for_each(|(name, value)| output.line(format_args!("{name:<16}{value}")))
}

fn to_json(recording: &RecordingDescriptor) -> Value {
    let time = humantime::format_rfc3339_millis;
    json!({
        "recording_id": recording.recording_id,
        "start_time": time(recording.start_time).to_string(),
        "stop_time": recording.stop_time.map(|stop| time(stop).to_string()),
        "start_position": recording.start_position,
        "stop_position": recording.stop_position,
        "initial_term_id": recording.initial_term_id,
        "segment_file_length": recording.segment_file_length,
        "term_buffer_length": recording.term_buffer_length,
        "mtu_length": recording.mtu_length,
        "session_id": recording.session_id,
        "stream_id": recording.stream_id,
        "stripped_channel": recording.stripped_channel,
        "original_channel": recording.original_channel,
        "source_identity": recording.source_identity,
    })
}

/// Replays everything that is recorded now. The recording may go on.
fn verify(
    archive: &Archive,
    recording_id: i64,
    options: &Options,
    mut turns: Turns,
) -> Result<Verified, Failure> {
    let recording = archive
        .recording(recording_id)?
        .ok_or_else(|| Failure::Run(format!("there is no recording {recording_id}")))?;
    let (start, end) = (recording.start_position, archive.max_recorded_position(recording_id)?);
    let mut verified = Verified::new(&recording);
    if start == end {
        return Ok(verified); // An archive refuses to replay nothing.
    }
    let length = end.abs_diff(start);
    // On standard error, and only if that is a terminal.
    let progress = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bytes}/{total_bytes} {wide_bar} {eta}") {
        progress.set_style(style);
    }
    let params = ReplayParams::new().length(ReplayLength::Bytes(length));
    let mut subscription =
        archive.replay(recording_id, &options.replay_channel, REPLAY_STREAM_ID, params)?;
    let mut has_come = false;
    while verified.end < end {
        let mut bytes = 0;
        match subscription.image_at_index(0) {
            Some(mut image) => {
                has_come = true;
                let mut outcome = Ok(());
                let block = |block: &[u8], _session_id: i32, _term_id: i32| {
                    outcome = verified.take(block);
                };
                bytes = image.block_poll(block, BLOCK_LENGTH_LIMIT);
                outcome?;
            }
            None if has_come => {
                let position = verified.end;
                return Err(Failure::Run(format!(
                    "the replay has ended at {position}, before {end}"
                )));
            }
            None => {}
        }
        progress.set_position(verified.end.abs_diff(start));
        // Half a verification is none.
        turns.idle(bytes).map_err(|failure| match failure {
            Failure::Interrupted => Failure::Run("interrupted before the end".to_owned()),
            failure => failure,
        })?;
    }
    progress.finish_and_clear();
    Ok(verified)
}

/// The facts about a recording after its replay.
struct Verified {
    recording_id: i64,
    initial_term_id: i32,
    term_length: i64,
    start: Position,
    /// Where the next frame has to begin.
    end: Position,
    frames: u64,
    padding: u64,
    messages: u64,
    payload: u64,
    shortest: Option<u64>,
    longest: u64,
    is_in_message: bool,
    /// The length of the message that the last fragment belonged to, so far.
    message_length: u64,
    checksum: Hasher,
}

impl Verified {
    fn new(recording: &RecordingDescriptor) -> Self {
        Self {
            recording_id: recording.recording_id,
            initial_term_id: recording.initial_term_id,
            term_length: recording.term_buffer_length.max(1) as i64,
            start: recording.start_position,
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

    fn wrong(&self, what: impl std::fmt::Display) -> Failure {
        let (recording_id, position) = (self.recording_id, self.end);
        Failure::run(format_args!("recording {recording_id}, position {position}"), what)
    }

    /// Checks the frames of a block, each a header and a payload in a multiple of 32 bytes.
    fn take(&mut self, mut block: &[u8]) -> Result<(), Failure> {
        const HEADER_LENGTH: usize = 32;
        const ALIGNMENT: usize = 32;
        const PADDING: u16 = 0;
        const DATA: u16 = 1;
        while !block.is_empty() {
            let Some(header) = block.first_chunk::<HEADER_LENGTH>() else {
                return Err(self.wrong("a part of a header"));
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
                return Err(self.wrong(format_args!("a frame that belongs to position {position}")));
            }
            let aligned_length = frame_length.next_multiple_of(ALIGNMENT);
            // Of padding, the header is enough.
            let is_there = aligned_length <= block.len() || frame_type == PADDING;
            if frame_length < HEADER_LENGTH || !is_there {
                return Err(self.wrong(format_args!("a frame of {frame_length} bytes")));
            }
            match frame_type {
                DATA => self.take_fragment(&block[HEADER_LENGTH..frame_length], flags)?,
                PADDING => self.padding += aligned_length as u64,
                other => return Err(self.wrong(format_args!("a frame of type {other}"))),
            }
            self.frames += 1;
            self.end += aligned_length as i64;
            block = block.get(aligned_length..).unwrap_or_default();
        }
        Ok(())
    }

    fn take_fragment(&mut self, payload: &[u8], flags: u8) -> Result<(), Failure> {
        const BEGIN: u8 = 0x80;
        const END: u8 = 0x40;
        let begins = flags & BEGIN != 0;
        // A recording may begin in the middle of a message: it was started then.
        let is_first = self.frames == 0;
        if begins == self.is_in_message && !is_first {
            let what = if begins { "the message before is not whole" } else { "no message begins" };
            return Err(self.wrong(what));
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

    fn checksum(&self) -> u32 {
        self.checksum.clone().finalize()
    }

    fn print(&self, json: bool, output: &mut Output<'_>) -> Result<(), Failure> {
        let (checksum, shortest) = (self.checksum(), self.shortest.unwrap_or(0));
        let Self { recording_id, start, end, frames, padding, messages, payload, longest, .. } =
            self;
        if json {
            return output.line(json!({
                "recording_id": recording_id,
                "start_position": start,
                "end_position": end,
                "frames": frames,
                "padding_bytes": padding,
                "messages": messages,
                "payload_bytes": payload,
                "shortest_message": self.shortest,
                "longest_message": longest,
                "ends_within_message": self.is_in_message,
                "checksum": format!("{checksum:08x}"),
            }));
        }
        output.line(format_args!("Recording {recording_id}, positions {start} to {end}"))?;
        output.line(format_args!(
            "{messages} messages of {shortest} to {longest} bytes, {payload} bytes in all"
        ))?;
        output.line(format_args!("{frames} frames, padding of {padding} bytes"))?;
        if self.is_in_message {
            output.line(
                "The last message is not whole: recording goes on, or was stopped within it",
            )?;
        }
        output.line(format_args!("Checksum {checksum:08x}"))
    }

    fn compare(&self, expected: Option<u32>) -> Result<(), Failure> {
        let checksum = self.checksum();
        match expected.filter(|expected| *expected != checksum) {
            Some(expected) => Err(Failure::Run(format!(
                "recording {}: the checksum is {checksum:08x}, and not {expected:08x}",
                self.recording_id
            ))),
            None => Ok(()),
        }
    }
}

fn parse_checksum(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 16).map_err(|_| "expected up to 8 hexadecimal digits".to_owned())
}

fn tail(
    archive: &Archive,
    recording_id: i64,
    start: Position,
    messages: Option<u64>,
    options: &Options,
    output: &mut Output<'_>,
    mut turns: Turns,
) -> Result<(), Failure> {
    if archive.stop_position(recording_id)? == Some(start) {
        return Ok(()); // There is nothing after it, and an archive refuses to replay that.
    }
    let params = ReplayParams::new().position(start).length(ReplayLength::Follow);
    let mut subscription =
        archive.replay(recording_id, &options.replay_channel, REPLAY_STREAM_ID, params)?;
    let (mut left, mut end, mut has_come) = (messages.unwrap_or(u64::MAX), start, false);
    let mut lines = Vec::new();
    while left > 0 {
        // Looked at before the poll: what has arrived until then is still read.
        let is_connected = subscription.is_connected();
        has_come |= is_connected;
        let print = |message: &[u8], header: &rusteron_client::Header<'_>| {
            lines.push(line(message, header.position(), options.json));
        };
        let limit = FRAGMENT_LIMIT.min(usize::try_from(left).unwrap_or(usize::MAX));
        let fragments = subscription.poll(print, limit)?;
        left = left.saturating_sub(lines.len() as u64);
        for (position, line) in lines.drain(..) {
            end = position;
            output.line(line)?;
        }
        if has_come && !is_connected && fragments == 0 {
            return match archive.stop_position(recording_id)? {
                Some(stop) if end == stop => Ok(()),
                _ => Err(Failure::Run(format!("the replay has ended at {end}, before its time"))),
            };
        }
        turns.idle(fragments)?;
    }
    Ok(())
}

/// Returns the line to print for a message, and the position after the message.
fn line(message: &[u8], position: Position, json: bool) -> (Position, String) {
    let line = match std::str::from_utf8(message) {
        Ok(text) if json => json!({ "position": position, "text": text }).to_string(),
        Err(_) if json => json!({ "position": position, "hex": hex(message) }).to_string(),
        _ => format!("{position:>12}  {}", message.escape_ascii()),
    };
    (position, line)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
