//! Our archive server, and Java's archive.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rusteron_archive::Archive;
use rusteron_client::ChannelUri;
use rusteron_core::program::Failure;
use rusteron_test_support::udp_channel;

use super::comparison::{Comparison, cases, micros, pairs};
use crate::command_line::choice::{Contender, among};
use crate::command_line::run_options::{self, RunOptions};
use crate::measuring::archive_streams::{ArchiveClient, Load, messages_in, settle};
use crate::processes::archive_process::{ArchiveProcess, archiving_media_driver};
use crate::processes::cores::Cores;
use crate::processes::environment::Environment;
use crate::processes::process_usage::Usage;
use crate::reports::results::Figure;

const STREAM_ID: i32 = 4001;

/// Terms so short that a run touches all of their memory early.
const CHANNEL: &str = "aeron:ipc?term-length=8m";

/// How many fragments a poll receives at the most.
const FRAGMENT_LIMIT: usize = 256;

/// How many messages a distribution of latencies has.
const LATENCIES: u64 = 2_000;

/// How many recordings are made at once at sync level 1.
const SYNCED_RECORDINGS: usize = 5;

/// How often each of them gets a message when all of them have the one before.
const SYNCED_ROUNDS: u64 = 100;

/// Compares our program archiving_media_driver with Aeron's ArchivingMediaDriver in Java, for a
/// client in Rust.
///
/// Each run starts an archive anew, warms it up and deletes its recordings. Recordings that are
/// made at once share a thread of the client, and so do their replays. A recording is over when all
/// of it is written, and synced at level 1, where it is in the directory for temporary files.
/// Archive and driver have one thread each, and their default idle strategies. Needs space for the
/// recordings. Linux only.
#[derive(Debug, Clone, Args)]
pub struct ArchivesOptions {
    /// The archives, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', default_value = "rust,java",
          value_parser = among("rust,java"))]
    contenders: Vec<Contender>,

    /// Parts to measure, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "rates,latency,synced,replicated,start")]
    parts: Vec<Part>,

    /// Lengths of messages in bytes, separated by commas, from 8 to 1m
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "32,1344,64k",
          value_parser = run_options::parse_numbered_length)]
    message_lengths: Vec<usize>,

    /// How many recordings to make and replay at once, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,20",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=20))]
    recordings: Vec<usize>,

    /// How many bytes the recordings of a run have together, headers included; at sync level 1, a
    /// sixteenth
    #[arg(long, value_name = "BYTES", default_value = "1g",
          value_parser = run_options::parse_length)]
    recording_length: usize,

    /// The cores of the archive's process and of the client
    #[arg(long, default_value = "shared")]
    cores: Cores,

    /// Directory for recordings; one in memory, such as /dev/shm, leaves the disk out
    /// [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    archive_dir: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Messages a second, recorded and replayed
    Rates,
    /// The time from an offer until the recorded position shows the message
    Latency,
    /// Messages a second at sync level 1
    Synced,
    /// Messages a second that one archive copies from another over loopback, each with a driver of
    /// its own
    Replicated,
    /// Start, first messages, memory
    Start,
}

/// The conditions of a case.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    part: Part,
    message_length: usize,
    recordings: usize,
}

impl Conditions {
    /// Names what its part varies.
    fn name(&self) -> String {
        let Self { part, message_length, recordings } = self;
        match part {
            Part::Rates => format!("unsynced, {message_length} B, recordings: {recordings}"),
            Part::Latency => format!("latency, {message_length} B"),
            Part::Synced => format!("synced, {message_length} B, recordings: {SYNCED_RECORDINGS}"),
            Part::Replicated => format!("replicated, {message_length} B"),
            Part::Start => "start".to_owned(),
        }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &ArchivesOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let archive_dir = run_options::archive_dir(options.archive_dir.as_deref())?;
    let archiving_media_driver = archiving_media_driver()?;
    let comparison = Comparison::start("archives", &options.run, &options.contenders)?;
    let environment = comparison.environment.clone();
    let bench = Bench {
        options,
        environment: &environment,
        archiving_media_driver: &archiving_media_driver,
        channel: CHANNEL.parse()?,
        archive_dir: &archive_dir,
    };
    let lengths = pairs(&options.message_lengths, &options.recordings);
    let conditions = pairs(&options.parts, &lengths).into_iter().map(|(part, (length, count))| {
        // Latencies are those of the first length.
        let message_length = if part == Part::Latency { lengths[0].0 } else { length };
        Conditions { part, message_length, recordings: count }
    });
    let cases = cases(conditions, Conditions::name, &comparison.contenders);
    comparison.compare(&cases, |conditions, contender, _| bench.measure(*conditions, contender))
}

/// The settings that runs are made with.
#[derive(Debug)]
struct Bench<'a> {
    options: &'a ArchivesOptions,
    environment: &'a Environment,
    archiving_media_driver: &'a Path,
    channel: ChannelUri,
    archive_dir: &'a Path,
}

impl Bench<'_> {
    /// One run with an archive of its own.
    fn measure(
        &self,
        conditions: Conditions,
        contender: Contender,
    ) -> Result<Vec<Figure>, Failure> {
        let Conditions { part, message_length, recordings } = conditions;
        let level = u8::from(part == Part::Synced);
        let mut options = vec![
            format!("-Daeron.archive.file.sync.level={level}"),
            format!("-Daeron.archive.catalog.file.sync.level={level}"),
        ];
        let mut control = String::new();
        if part == Part::Replicated {
            control = udp_channel();
            options.push("-Daeron.archive.control.channel.enabled=true".to_owned());
            options.push(format!("-Daeron.archive.control.channel={control}"));
        }
        let launched = Instant::now();
        let (process, archive) = self.start(contender, part, &options)?;
        let client = self.client(&archive);
        let all = self.options.recording_length;
        match part {
            Part::Rates => {
                let load = self.load(message_length, recordings, all / recordings);
                self.warm_up(client, contender, &load)?;
                let (ids, recorded_in) = client.record(&load)?;
                settle();
                let replayed_in = client.replay(&load, &ids)?;
                Ok(vec![
                    ("recorded msgs/s", rate(&load, recorded_in)),
                    ("replayed msgs/s", rate(&load, replayed_in)),
                ])
            }
            Part::Latency => {
                let load = self.load(message_length, 1, 64 << 20);
                self.warm_up(client, contender, &load)?;
                let mut streams = client.start(&load)?;
                client.send_one_by_one(&mut streams[0], LATENCIES)?;
                let times = client.send_one_by_one(&mut streams[0], 10 * LATENCIES)?;
                client.stop(streams)?;
                Ok(vec![("p50 µs", micros(&times, 0.5)), ("p99 µs", micros(&times, 0.99))])
            }
            Part::Synced => {
                let length = all / 16 / SYNCED_RECORDINGS;
                let load = self.load(message_length, SYNCED_RECORDINGS, length);
                self.warm_up(client, contender, &load)?;
                let (_, recorded_in) = client.record(&load)?;
                let rounds = Load { messages: SYNCED_ROUNDS, ..load };
                let mut streams = client.start(&rounds)?;
                let start = Instant::now();
                (1..=SYNCED_ROUNDS).try_for_each(|count| client.send(&mut streams, count))?;
                let one_by_one = start.elapsed();
                client.stop(streams)?;
                Ok(vec![
                    ("recorded msgs/s", rate(&load, recorded_in)),
                    ("one by one msgs/s", rate(&rounds, one_by_one)),
                ])
            }
            Part::Replicated => {
                let (_process, copies) = self.start(contender, part, &[])?;
                let copies = self.client(&copies);
                let load = self.load(message_length, 1, all);
                let record = |load: Load<'_>| client.record(&load).map(|(ids, _)| ids[0]);
                // Copies are made of one recording until the warm-up is over, then once of a long
                // one.
                let id = record(Load { messages: load.messages.min(50_000), ..load })?;
                let start = Instant::now();
                while start.elapsed() < self.environment.warmup(contender) {
                    copies.replicate(&archive, &control, id)?;
                }
                let id = record(load)?;
                settle();
                let copied_in = copies.replicate(&archive, &control, id)?;
                Ok(vec![("copied msgs/s", rate(&load, copied_in))])
            }
            Part::Start => self.first_messages(client, launched, process.pid()),
        }
    }

    fn start(
        &self,
        contender: Contender,
        part: Part,
        options: &[String],
    ) -> Result<(ArchiveProcess, Archive), Failure> {
        let temporary = std::env::temp_dir();
        let dir = if part == Part::Synced { &temporary } else { self.archive_dir };
        let program = (contender != Contender::Java).then_some(self.archiving_media_driver);
        let start = || ArchiveProcess::start(program, dir, options, self.environment);
        self.options.cores.start_member(start)
    }

    fn client<'a>(&'a self, archive: &'a Archive) -> ArchiveClient<'a> {
        let interrupt = &self.environment.interrupt;
        ArchiveClient { archive, interrupt, fragment_limit: FRAGMENT_LIMIT }
    }

    fn load(&self, message_length: usize, recordings: usize, length: usize) -> Load<'_> {
        let messages = messages_in(length, message_length);
        Load { channel: &self.channel, stream_id: STREAM_ID, recordings, messages, message_length }
    }

    /// Records, and replays, short recordings until the warm-up is over.
    fn warm_up(
        &self,
        client: ArchiveClient<'_>,
        contender: Contender,
        load: &Load<'_>,
    ) -> Result<(), Failure> {
        let load = Load { recordings: 1, messages: load.messages.min(50_000), ..*load };
        let start = Instant::now();
        while start.elapsed() < self.environment.warmup(contender) {
            let (recordings, _) = client.record(&load)?;
            client.replay(&load, &recordings)?;
        }
        settle();
        Ok(())
    }

    /// The archive is launched already, and connected.
    fn first_messages(
        &self,
        client: ArchiveClient<'_>,
        launched: Instant,
        pid: u32,
    ) -> Result<Vec<Figure>, Failure> {
        const MANY: u64 = 1_000_000;
        let mut streams = client.start(&self.load(32, 1, 64 << 20))?;
        client.send_one_by_one(&mut streams[0], 1)?;
        let first_recording = launched.elapsed();
        let first = client.send_one_by_one(&mut streams[0], LATENCIES)?;
        self.environment.sleep(Duration::from_millis(500))?;
        let usage = Usage::of(pid)?;
        client.send(&mut streams, MANY)?;
        let later = client.send_one_by_one(&mut streams[0], LATENCIES)?;
        client.stop(streams)?;
        Ok(vec![
            ("first recording ms", first_recording.as_secs_f64() * 1e3),
            ("private MiB", usage.private),
            ("first messages p50 µs", micros(&first, 0.5)),
            ("after 1 M p50 µs", micros(&later, 0.5)),
        ])
    }
}

/// Messages a second of all recordings.
fn rate(load: &Load<'_>, time: Duration) -> f64 {
    (load.messages * load.recordings as u64) as f64 / time.as_secs_f64().max(1e-9)
}
