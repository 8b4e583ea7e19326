//! Messages a second recorded by, and replayed from, an archive.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_client::ChannelUri;

use super::comparison::{Case, Comparison};
use crate::command_line::byte_size;
use crate::command_line::choice::Language;
use crate::command_line::failure::Failure;
use crate::command_line::run_options::{RunOptions, distinct};
use crate::contenders::recording::{Bench, Load, Outcome};
use crate::measuring::median::median;
use crate::processes::archive_process::ArchiveProcess;

/// The stream of the first run; each further one has the next but one, as replays need one, too.
const FIRST_STREAM_ID: i32 = 3001;

/// Compares messages a second that a Java archive records for, and replays to, a client in Rust and one in Java.
///
/// A port of Aeron's samples EmbeddedRecordingThroughput and EmbeddedReplayThroughput. The archive is a process of its
/// own that both contenders use. A recording is over when all of it is written. A replay is timed from the request until
/// the last message. Before either, the operating system writes its buffers. Loops yield. Needs Java, and space for one
/// recording.
#[derive(Debug, Clone, Args)]
pub struct RecordingOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,java"
    )]
    contenders: Vec<Language>,

    /// Lengths of messages in bytes, separated by commas, from 8 to 16m
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "32,1344", value_parser = byte_size::parse_message_length)]
    message_lengths: Vec<usize>,

    /// How many bytes a recording has, headers included: as many messages as that is
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "1536m",
          value_parser = byte_size::parse_length)]
    recording_length: usize,

    /// How many recordings to make and replay in a run; its rate is their median
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    recordings: u32,

    /// Channel to publish on, and to record from; replays come over IPC
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    channel: ChannelUri,

    /// How many fragments a poll receives at the most
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=i32::MAX as u64))]
    fragment_limit: usize,

    /// Directory for the recordings, which are deleted; one in memory, such as /dev/shm, leaves the disk out
    /// [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    archive_dir: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`] for
/// everything else.
pub fn run(options: &RecordingOptions) -> Result<(), Failure> {
    /// A message begins with its number.
    const SHORTEST: usize = size_of::<u64>();
    /// The most messages that a repetition of the warm-up records.
    const WARMUP_MESSAGES: u64 = 50_000;
    if let Some(length) = options.message_lengths.iter().find(|length| **length < SHORTEST) {
        let reason = format!("expected {SHORTEST} bytes or more");
        return Err(Failure::usage("--message-lengths <BYTES>", length, reason));
    }
    let dir = options.archive_dir.clone().unwrap_or_else(std::env::temp_dir);
    if !dir.is_dir() {
        return Err(Failure::usage("--archive-dir <DIR>", dir.display(), "expected a directory"));
    }
    let mut comparison = Comparison::start("recording", &options.run)?;
    let interrupt = comparison.interrupt();
    let java = comparison.require_java()?;
    let (process, archive) = ArchiveProcess::start(&java, &dir, &interrupt)?;
    let bench = Bench { process: &process, archive: &archive, java: &java, interrupt: &interrupt };
    let case = |length: usize| Case {
        name: format!("{length} B"),
        conditions: length,
        contenders: distinct(&options.contenders),
    };
    let cases: Vec<_> = distinct(&options.message_lengths).into_iter().map(case).collect();
    let mut stream_ids = (FIRST_STREAM_ID..).step_by(2);
    comparison.compare(&cases, |&message_length, client| {
        let messages = messages_in(options.recording_length, message_length);
        let load = Load {
            channel: options.channel.clone(),
            stream_id: stream_ids.next().unwrap_or(FIRST_STREAM_ID),
            messages,
            message_length,
            fragment_limit: options.fragment_limit,
            warmup_messages: messages.min(WARMUP_MESSAGES),
            warmup: options.run.warmup_with(true),
            recordings: options.recordings,
        };
        let outcomes = bench.measure(client, &load)?;
        let rate = |seconds: fn(&Outcome) -> f64| {
            let rate = |outcome| messages as f64 / seconds(outcome).max(1e-9);
            median(&outcomes.iter().map(rate).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        Ok(vec![
            ("recorded msgs/s", rate(|outcome| outcome.recorded_in.as_secs_f64())),
            ("replayed msgs/s", rate(|outcome| outcome.replayed_in.as_secs_f64())),
        ])
    })?;
    comparison.finish()
}

/// How many messages a recording of about so many bytes has, at least one.
fn messages_in(recording_length: usize, message_length: usize) -> u64 {
    const HEADER_LENGTH: usize = 32;
    const ALIGNMENT: usize = 32;
    let frame_length = (message_length + HEADER_LENGTH).next_multiple_of(ALIGNMENT);
    (recording_length / frame_length).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_of_all_lengths_are_equally_long() {
        assert_eq!(messages_in(64 << 20, 32), 1 << 20);
        assert_eq!(messages_in(64 << 20, 33), (64 << 20) / 96);
        assert_eq!(messages_in(1 << 30, 1344), 780_335);
        assert_eq!(messages_in(1, 1344), 1);
    }
}
