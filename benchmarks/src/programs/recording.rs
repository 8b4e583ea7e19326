//! Messages a second recorded by, and replayed from, an archive.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_archive::{
    Archive, ArchiveError, ArchiveErrorKind, RecordingPos, ReplayLength, ReplayParams,
};
use rusteron_client::ChannelUri;

use super::comparison::{Case, Comparison};
use crate::command_line::choice::Language;
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::measuring::measurement::median;
use crate::processes::archive_process::{ArchiveProcess, DEADLINE};
use crate::processes::java::{self, Java};
use crate::processes::program::Program;

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
        let stream_id = stream_ids.next().unwrap_or(FIRST_STREAM_ID);
        let load = Load { options, stream_id, messages, message_length };
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

/// The messages of a run.
#[derive(Debug)]
struct Load<'a> {
    options: &'a RecordingOptions,
    /// The replay has the next stream.
    stream_id: i32,
    messages: u64,
    message_length: usize,
}

impl Load<'_> {
    /// How many messages are recorded and replayed again and again until the warm-up is over.
    fn warmup_messages(&self) -> u64 {
        self.messages.min(50_000)
    }
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
    process: &'a ArchiveProcess,
    /// Our session with it.
    archive: &'a Archive,
    java: &'a Java,
    interrupt: &'a Interrupt,
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
            let (recording_id, _) = self.record(load, load.warmup_messages())?;
            self.replay(load, load.warmup_messages(), recording_id)?;
            self.purge(recording_id)?;
            if start.elapsed() >= load.options.run.warmup_with(true) {
                break;
            }
        }
        let measure = |_| {
            settle();
            let (recording_id, recorded_in) = self.record(load, load.messages)?;
            settle();
            let replayed_in = self.replay(load, load.messages, recording_id)?;
            self.purge(recording_id)?;
            Ok(Outcome { recorded_in, replayed_in })
        };
        (0..load.options.recordings).map(measure).collect()
    }

    fn measure_java(&self, load: &Load<'_>) -> Result<Vec<Outcome>, Failure> {
        let arguments = [
            self.process.aeron_dir().display().to_string(),
            load.options.channel.to_string(),
            load.stream_id.to_string(),
            load.message_length.to_string(),
            load.options.fragment_limit.to_string(),
            load.warmup_messages().to_string(),
            load.options.run.warmup_with(true).as_nanos().to_string(),
            load.options.recordings.to_string(),
            load.messages.to_string(),
        ];
        let timeout = DEADLINE + load.options.run.warmup_with(true);
        let mut program = self.java.start("benchmarks/Recording.java", &[], &arguments, timeout)?;
        let mut outcomes = Vec::new();
        for _ in 0..load.options.recordings {
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
        program.finish(self.interrupt)?;
        Ok(outcomes)
    }

    /// Reads a line with a prefix, and the nanoseconds behind it, if there are some.
    fn line_of(&self, program: &mut Program, prefix: &str) -> Result<Duration, Failure> {
        let line = program.line(self.interrupt)?.ok_or(Failure::Interrupted)?;
        match line.strip_prefix(prefix) {
            Some("") => Ok(Duration::ZERO),
            nanos => java::number(&line, nanos).map(Duration::from_nanos),
        }
    }

    /// Records messages, and returns the recording's id and how long it took.
    fn record(&self, load: &Load<'_>, count: u64) -> Result<(i64, Duration), Failure> {
        let archive = self.archive;
        let (mut publication, recording_id) = archive
            .add_recorded_exclusive_publication(&load.options.channel, load.stream_id)
            .map_err(failed("cannot record"))?;
        let counter =
            RecordingPos::find_by_recording_id(archive.aeron(), recording_id, archive.archive_id())
                .ok_or_else(|| Failure::run("the recording has ended", recording_id))?;
        self.await_some("the recorder", || publication.is_connected().then_some(()))?;
        let mut message = vec![0; load.message_length];
        let start = Instant::now();
        let mut end = 0;
        for number in 0..count {
            message[..8].copy_from_slice(&number.to_le_bytes());
            end = loop {
                match publication.offer(&message) {
                    Ok(position) => break position,
                    Err(error) if error.is_retryable() => self.wait()?,
                    Err(error) => return Err(Failure::run("cannot publish", error)),
                }
            };
        }
        self.await_progress("what is recorded", || {
            let position = counter.position().unwrap_or(-1);
            (position, position >= end)
        })?;
        let elapsed = start.elapsed();
        archive
            .stop_recording_exclusive_publication(&publication)
            .map_err(failed("cannot stop the recording"))?;
        self.await_some("the end of the recording", || (!counter.is_active()).then_some(()))?;
        Ok((counter.recording_id(), elapsed))
    }

    fn replay(&self, load: &Load<'_>, count: u64, recording_id: i64) -> Result<Duration, Failure> {
        let start = Instant::now();
        let mut subscription = self
            .archive
            .replay(
                recording_id,
                "aeron:ipc",
                load.stream_id.wrapping_add(1),
                ReplayParams::new().length(ReplayLength::Recorded),
            )
            .map_err(failed("cannot replay"))?;
        let mut received = 0_u64;
        let mut strange = None;
        let mut since = None;
        while received < count {
            let handler = |message: &[u8], _: &rusteron_client::Header<'_>| {
                if !message.starts_with(&received.to_le_bytes()) {
                    strange.get_or_insert(received);
                }
                received += 1;
            };
            let fragments = subscription
                .poll(handler, load.options.fragment_limit)
                .map_err(|error| Failure::run("cannot poll the replay", error))?;
            // Only idle loops look at the clock.
            if fragments > 0 {
                since = None;
            } else if since.get_or_insert_with(Instant::now).elapsed() < DEADLINE {
                self.wait()?;
            } else {
                return Err(Failure::Run(format!("the replay stops after {received} messages")));
            }
        }
        match strange {
            None => Ok(start.elapsed()),
            Some(number) => Err(Failure::Run(format!("message {number} is another one"))),
        }
    }

    /// Purges the recording as soon as the archive has noticed that no replay uses it any more.
    fn purge(&self, recording_id: i64) -> Result<(), Failure> {
        let mut last = None;
        let purged = self.await_some("the end of the replay", || {
            match self.archive.purge_recording(recording_id) {
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

    fn wait(&self) -> Result<(), Failure> {
        if self.archive.aeron().is_closed() {
            return Err(Failure::Run("the client was closed".to_owned()));
        }
        if self.interrupt.is_requested() {
            return Err(Failure::Interrupted);
        }
        thread::yield_now();
        Ok(())
    }

    fn await_some<T>(
        &self,
        what: &str,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, Failure> {
        let mut outcome = None;
        self.await_progress(what, || {
            outcome = attempt();
            (0, outcome.is_some())
        })?;
        outcome.ok_or_else(|| Failure::Run(format!("waited in vain: {what}")))
    }

    /// Waits as long as a number changes, or for the timeout.
    fn await_progress(
        &self,
        what: &str,
        mut attempt: impl FnMut() -> (i64, bool),
    ) -> Result<(), Failure> {
        let mut last = None;
        let mut since = Instant::now();
        loop {
            let (now, is_over) = attempt();
            if is_over {
                return Ok(());
            }
            if last != Some(now) {
                last = Some(now);
                since = Instant::now();
                continue;
            }
            if since.elapsed() >= DEADLINE {
                return Err(Failure::Run(format!("waited in vain: {what}")));
            }
            self.wait()?;
        }
    }
}

/// Makes the operating system write its buffers, as the disk would otherwise write them during the measurement.
fn settle() {
    #[cfg(unix)]
    rustix::fs::sync();
}

fn failed(doing: &str) -> impl Fn(ArchiveError) -> Failure + '_ {
    move |error| Failure::run(doing, error)
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
