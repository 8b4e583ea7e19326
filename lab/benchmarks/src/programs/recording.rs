//! Messages a second recorded by, and replayed from, an archive.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use rusteron_archive::{ArchiveErrorKind, RecordingId};
use rusteron_client::ChannelUri;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;

use super::comparison::{Comparison, cases};
use crate::command_line::choice::{Contender, among};
use crate::command_line::run_options::{self, RunOptions};
use crate::measuring::archive_streams::{ArchiveClient, DEADLINE, Load, messages_in, settle};
use crate::measuring::measurement::{FRAGMENT_LIMIT, median};
use crate::processes::archive_process::ArchiveProcess;
use crate::processes::environment::Environment;
use crate::processes::java;

/// The stream of the first run; each further one has the next but one, as replays need one, too.
const FIRST_STREAM_ID: u32 = 3001;

/// How many recordings are made and replayed in a run; its rate is their median.
const RECORDINGS: usize = 5;

/// Compares messages a second that a Java archive records for, and replays to, a client in Rust and
/// one in Java.
///
/// A port of Aeron's samples EmbeddedRecordingThroughput and EmbeddedReplayThroughput. The archive
/// is a process of its own that both contenders use. A run has five recordings, one after the
/// other. A recording is over when all of it is written. A replay is timed from the request until
/// the last message. Before either, the operating system writes its buffers. Loops yield. Needs
/// Java, and space for one recording.
#[derive(Debug, Clone, Args)]
pub struct RecordingOptions {
    /// The clients, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', default_value = "rust,java",
          value_parser = among("rust,java"))]
    contenders: Vec<Contender>,

    /// Lengths of messages in bytes, separated by commas, from 8 to 1m
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "32,1344",
          value_parser = run_options::parse_numbered_length)]
    message_lengths: Vec<usize>,

    /// How many bytes a recording has, headers included: as many messages as that is
    #[arg(long, value_name = "BYTES", default_value = "1536m",
          value_parser = run_options::parse_length)]
    recording_length: usize,

    /// Directory for the recordings, which are deleted; one in memory, such as /dev/shm, leaves the
    /// disk out
    /// [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    archive_dir: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &RecordingOptions) -> Result<(), Failure> {
    let dir = run_options::archive_dir(options.archive_dir.as_deref())?;
    let comparison = Comparison::start_with_java("recording", &options.run, &options.contenders)?;
    let environment = comparison.environment.clone();
    let (process, archive) = ArchiveProcess::start(None, &dir, &[], &environment)?;
    let interrupt = &environment.interrupt;
    let client = ArchiveClient { archive: &archive, interrupt, fragment_limit: FRAGMENT_LIMIT };
    let bench = Bench { environment: &environment, process: &process, client };
    let channel: ChannelUri = "aeron:ipc".parse()?;
    let lengths = options.message_lengths.iter().copied();
    let cases = cases(lengths, |length| format!("{length} B"), &comparison.contenders);
    comparison.compare(&cases, |&message_length, contender, number| {
        let load = Load {
            channel: &channel,
            stream_id: (FIRST_STREAM_ID + 2 * number) as i32,
            recordings: 1,
            messages: messages_in(options.recording_length, message_length),
            message_length,
        };
        let times = match contender {
            Contender::Java => bench.measure_java(&load)?,
            _ => bench.measure_rust(&load)?,
        };
        let rate = |index: usize| {
            let rates =
                times.iter().map(|it| load.messages as f64 / it[index].as_secs_f64().max(1e-9));
            median(&rates.collect::<Vec<_>>()).unwrap_or(0.0)
        };
        Ok(vec![("recorded msgs/s", rate(0)), ("replayed msgs/s", rate(1))])
    })
}

/// From the first offer until everything was recorded, and from the request of a replay until its
/// last message.
type Times = [Duration; 2];

/// The archive that runs are made with.
#[derive(Debug)]
struct Bench<'a> {
    environment: &'a Environment,
    process: &'a ArchiveProcess,
    /// Our session with it.
    client: ArchiveClient<'a>,
}

/// How many messages are recorded and replayed again and again until the warm-up is over.
fn warmup_messages(load: &Load<'_>) -> u64 {
    load.messages.min(50_000)
}

impl Bench<'_> {
    fn measure_rust(&self, load: &Load<'_>) -> Result<Vec<Times>, Failure> {
        let start = Instant::now();
        loop {
            let load = Load { messages: warmup_messages(load), ..*load };
            let (recordings, _) = self.client.record(&load)?;
            self.client.replay(&load, &recordings)?;
            self.purge(&recordings)?;
            // The archive is in Java.
            if start.elapsed() >= self.environment.warmup(Contender::Java) {
                break;
            }
        }
        let measure = |_| {
            settle();
            let (recordings, recorded_in) = self.client.record(load)?;
            settle();
            let replayed_in = self.client.replay(load, &recordings)?;
            self.purge(&recordings)?;
            Ok([recorded_in, replayed_in])
        };
        (0..RECORDINGS).map(measure).collect()
    }

    fn measure_java(&self, load: &Load<'_>) -> Result<Vec<Times>, Failure> {
        let warmup = self.environment.warmup(Contender::Java);
        let arguments = [
            self.process.aeron_dir().display().to_string(),
            load.channel.to_string(),
            load.stream_id.to_string(),
            load.message_length.to_string(),
            FRAGMENT_LIMIT.to_string(),
            warmup_messages(load).to_string(),
            warmup.as_nanos().to_string(),
            RECORDINGS.to_string(),
            load.messages.to_string(),
        ];
        let java = self.environment.java()?;
        let main = "benchmarks/Recording.java";
        let mut program = java.start(main, &[], &arguments, DEADLINE + warmup)?;
        let mut measure = |_| {
            self.line_of(&mut program, "ready")?;
            settle();
            program.go_on()?;
            let recorded_in = self.line_of(&mut program, "recorded ")?;
            settle();
            program.go_on()?;
            let replayed_in = self.line_of(&mut program, "replayed ")?;
            program.go_on()?;
            Ok([recorded_in, replayed_in])
        };
        let times = (0..RECORDINGS).map(&mut measure).collect::<Result<_, Failure>>()?;
        program.finish(self.client.interrupt)?;
        Ok(times)
    }

    /// Reads a line with a prefix, and the nanoseconds behind it, if there are some.
    fn line_of(&self, program: &mut Process, prefix: &str) -> Result<Duration, Failure> {
        let line = program.line(self.client.interrupt)?;
        match line.strip_prefix(prefix) {
            Some("") => Ok(Duration::ZERO),
            nanos => java::number(&line, nanos).map(Duration::from_nanos),
        }
    }

    /// Purges recordings as soon as the archive has noticed that no replay uses them any more.
    fn purge(&self, recording_ids: &[RecordingId]) -> Result<(), Failure> {
        let is_in_use =
            |kind| matches!(kind, ArchiveErrorKind::Refused | ArchiveErrorKind::ActiveRecording);
        recording_ids.iter().try_for_each(|&recording_id| {
            let mut refusal = None;
            let purged = self.client.await_that("the end of the replay", || {
                refusal = self.client.archive.purge_recording(recording_id).err();
                match refusal.take_if(|error| !is_in_use(error.kind())) {
                    Some(error) => Err(Failure::run("cannot purge", error)),
                    None => Ok(refusal.is_none()),
                }
            });
            purged.map_err(|failure| match (failure, refusal) {
                (Failure::Run(text), Some(error)) => Failure::run(text, error),
                (failure, _) => failure,
            })
        })
    }
}
