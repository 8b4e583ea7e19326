//! Messages a second recorded by, and replayed from, an archive.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_archive::ArchiveErrorKind;
use rusteron_client::ChannelUri;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;

use super::comparison::{Case, Comparison};
use crate::command_line::choice::Language;
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::measuring::archive_streams::{
    ArchiveClient, DEADLINE, Load, failed, messages_in, settle,
};
use crate::measuring::measurement::median;
use crate::processes::archive_process::{ArchiveProcess, ArchiveProgram};
use crate::processes::java::{self, Java};

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
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "rust,java")]
    contenders: Vec<Language>,

    /// Lengths of messages in bytes, separated by commas, from 8 to 16m
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "32,1344", value_parser = run_options::parse_message_length)]
    message_lengths: Vec<usize>,

    /// How many bytes a recording has, headers included: as many messages as that is
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "1536m",
          value_parser = run_options::parse_length)]
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
    let program = ArchiveProgram::Java(&java);
    let (process, archive) = ArchiveProcess::start(program, &dir, &[], &interrupt)?;
    let fragment_limit = options.fragment_limit;
    let client = ArchiveClient { archive: &archive, interrupt: &interrupt, fragment_limit };
    let bench = Bench { options, process: &process, client, java: &java };
    let case = |length: usize| Case {
        name: format!("{length} B"),
        conditions: length,
        contenders: distinct(&options.contenders),
    };
    let cases: Vec<_> = distinct(&options.message_lengths).into_iter().map(case).collect();
    let mut stream_ids = (FIRST_STREAM_ID..).step_by(2);
    comparison.compare(&cases, |&message_length, client| {
        let messages = messages_in(options.recording_length, message_length);
        let stream_id = stream_ids.next().unwrap_or(FIRST_STREAM_ID);
        let channel = &options.channel;
        let load = Load { channel, stream_id, recordings: 1, messages, message_length };
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

/// The times of one recording and its replay.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    /// From the first offer until everything was recorded.
    recorded_in: Duration,
    /// From the request until the last message.
    replayed_in: Duration,
}

/// The settings and programs that runs are made with.
#[derive(Debug)]
struct Bench<'a> {
    options: &'a RecordingOptions,
    process: &'a ArchiveProcess,
    /// Our session with it.
    client: ArchiveClient<'a>,
    java: &'a Java,
}

/// How many messages are recorded and replayed again and again until the warm-up is over.
fn warmup_messages(load: &Load<'_>) -> u64 {
    load.messages.min(50_000)
}

impl Bench<'_> {
    /// One run, with an outcome for each recording; they are purged.
    fn measure(&self, client: Language, load: &Load<'_>) -> Result<Vec<Outcome>, Failure> {
        match client {
            Language::Rust => self.measure_rust(load),
            Language::Java => self.measure_java(load),
        }
    }

    fn measure_rust(&self, load: &Load<'_>) -> Result<Vec<Outcome>, Failure> {
        let start = Instant::now();
        loop {
            let load = Load { messages: warmup_messages(load), ..*load };
            let (recordings, _) = self.client.record(&load)?;
            self.client.replay(&load, &recordings)?;
            self.purge(&recordings)?;
            if start.elapsed() >= self.options.run.warmup_with(true) {
                break;
            }
        }
        let measure = |_| {
            settle();
            let (recordings, recorded_in) = self.client.record(load)?;
            settle();
            let replayed_in = self.client.replay(load, &recordings)?;
            self.purge(&recordings)?;
            Ok(Outcome { recorded_in, replayed_in })
        };
        (0..self.options.recordings).map(measure).collect()
    }

    fn measure_java(&self, load: &Load<'_>) -> Result<Vec<Outcome>, Failure> {
        let arguments = [
            self.process.aeron_dir().display().to_string(),
            load.channel.to_string(),
            load.stream_id.to_string(),
            load.message_length.to_string(),
            self.options.fragment_limit.to_string(),
            warmup_messages(load).to_string(),
            self.options.run.warmup_with(true).as_nanos().to_string(),
            self.options.recordings.to_string(),
            load.messages.to_string(),
        ];
        let timeout = DEADLINE + self.options.run.warmup_with(true);
        let mut program = self.java.start("benchmarks/Recording.java", &[], &arguments, timeout)?;
        let mut outcomes = Vec::new();
        for _ in 0..self.options.recordings {
            self.line_of(&mut program, "ready")?;
            settle();
            program.go_on()?;
            let recorded_in = self.line_of(&mut program, "recorded ")?;
            settle();
            program.go_on()?;
            let replayed_in = self.line_of(&mut program, "replayed ")?;
            program.go_on()?;
            outcomes.push(Outcome { recorded_in, replayed_in });
        }
        program.finish(self.client.interrupt)?;
        Ok(outcomes)
    }

    /// Reads a line with a prefix, and the nanoseconds behind it, if there are some.
    fn line_of(&self, program: &mut Process, prefix: &str) -> Result<Duration, Failure> {
        let line = program.line(self.client.interrupt)?.ok_or(Failure::Interrupted)?;
        match line.strip_prefix(prefix) {
            Some("") => Ok(Duration::ZERO),
            nanos => java::number(&line, nanos).map(Duration::from_nanos),
        }
    }

    /// Purges recordings as soon as the archive has noticed that no replay uses them any more.
    fn purge(&self, recording_ids: &[i64]) -> Result<(), Failure> {
        recording_ids.iter().try_for_each(|&recording_id| self.purge_one(recording_id))
    }

    fn purge_one(&self, recording_id: i64) -> Result<(), Failure> {
        let mut last = None;
        let purged = self.client.await_some("the end of the replay", || {
            match self.client.archive.purge_recording(recording_id) {
                Ok(_) => Some(Ok(())),
                Err(error)
                    if error.kind() == ArchiveErrorKind::Refused
                        || error.kind() == ArchiveErrorKind::ActiveRecording =>
                {
                    last = Some(error);
                    None
                }
                Err(error) => Some(Err(failed("cannot purge")(error))),
            }
        });
        match (purged, last) {
            (Ok(outcome), _) => outcome,
            (Err(Failure::Run(_)), Some(error)) => Err(failed("cannot purge")(error)),
            (Err(failure), _) => Err(failure),
        }
    }
}
