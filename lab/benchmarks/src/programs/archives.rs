//! Our archive server, and Java's archive.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_archive::Archive;
use rusteron_client::ChannelUri;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

use super::comparison::{Case, Comparison};
use crate::command_line::choice::Language;
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::measuring::archive_streams::{ArchiveClient, Load, messages_in, settle};
use crate::measuring::connection::free_endpoints;
use crate::processes::archive_process::{ArchiveProcess, ArchiveProgram};
use crate::processes::cores::Cores;
use crate::processes::driver_process;
use crate::processes::java::Java;
use crate::processes::process_usage;
use crate::reports::results::Figure;

const FIRST_STREAM_ID: i32 = 4001;

/// Terms so short that a run touches all of their memory early.
const CHANNEL: &str = "aeron:ipc?term-length=8m";

const MEBIBYTE: f64 = (1 << 20) as f64;

/// How many messages a distribution of latencies has.
const LATENCIES: u64 = 2_000;

/// How often each of the recordings at sync level 1 gets a message when all of them have the one before.
const SYNCED_ROUNDS: u64 = 100;

/// Compares our program archiving_media_driver with Aeron's ArchivingMediaDriver in Java, for a client in Rust.
///
/// Each run starts an archive anew, warms it up and deletes its recordings. Recordings that are made at once share a
/// thread of the client, and so do their replays. A recording is over when all of it is written, and synced at level 1.
/// Archive and driver have one thread each, and their default idle strategies. Needs Java, and space for the recordings.
#[derive(Debug, Clone, Args)]
pub struct ArchivesOptions {
    /// The archives, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "rust,java")]
    contenders: Vec<Language>,

    /// Parts to measure, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        num_args = 1,
        default_value = "rates,latency,synced,replicated,start"
    )]
    parts: Vec<Part>,

    /// Lengths of messages in bytes, separated by commas, from 8 to 1m
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "32,1344,64k", value_parser = run_options::parse_message_length)]
    message_lengths: Vec<usize>,

    /// How many recordings to make and replay at once, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', num_args = 1, default_value = "1,20",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=20))]
    recordings: Vec<usize>,

    /// How many bytes the recordings of a run have together, headers included
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "1g",
          value_parser = run_options::parse_length)]
    recording_length: usize,

    /// The same at sync level 1, where five recordings are made at once
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "64m",
          value_parser = run_options::parse_length)]
    synced_length: usize,

    /// How many fragments a poll receives at the most
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "256",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=i32::MAX as u64))]
    fragment_limit: usize,

    /// The cores of the archive's process and of the client
    #[arg(long, default_value = "shared")]
    cores: Cores,

    /// Directory for recordings; one in memory, such as /dev/shm, leaves the disk out
    /// [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    archive_dir: Option<PathBuf>,

    /// Directory for recordings at sync level 1 [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    synced_dir: Option<PathBuf>,

    /// The program archiving_media_driver [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    archiving_media_driver: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Messages a second, recorded and replayed
    Rates,
    /// The time from an offer until the recorded position shows the message
    Latency,
    /// Messages a second at sync level 1
    Synced,
    /// Messages a second that one archive copies from another over loopback, each with a driver of its own
    Replicated,
    /// Start, first messages, memory
    Start,
}

/// The conditions of a case.
#[derive(Debug, Clone, Copy)]
enum Conditions {
    Rates { message_length: usize, recordings: usize },
    Latency { message_length: usize },
    Synced { message_length: usize },
    Replicated { message_length: usize },
    Start,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`] for everything else.
pub fn run(options: &ArchivesOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    if let Some(length) = options.message_lengths.iter().find(|it| !(8..=1 << 20).contains(*it)) {
        let reason = "expected 8 bytes to 1m";
        return Err(Failure::usage("--message-lengths <BYTES>", length, reason));
    }
    let dir = |option, dir: &Option<PathBuf>| {
        let dir = dir.clone().unwrap_or_else(std::env::temp_dir);
        match dir.is_dir() {
            true => Ok(dir),
            false => Err(Failure::usage(option, dir.display(), "expected a directory")),
        }
    };
    let archive_dir = dir("--archive-dir <DIR>", &options.archive_dir)?;
    let synced_dir = dir("--synced-dir <DIR>", &options.synced_dir)?;
    let program =
        driver_process::archiving_media_driver(options.archiving_media_driver.as_deref())?;
    let mut comparison = Comparison::start("archives", &options.run)?;
    let mut contenders = distinct(&options.contenders);
    let java = comparison.java_for(&mut contenders, |it| *it == Language::Java);
    let interrupt = comparison.interrupt();
    let channel = CHANNEL.parse()?;
    let bench = Bench {
        options,
        channel: &channel,
        archive_dir: &archive_dir,
        synced_dir: &synced_dir,
        program: &program,
        java: java.as_ref(),
        interrupt: &interrupt,
    };
    comparison.compare(&options.cases(&contenders), |&conditions, contender| {
        bench.measure(conditions, contender)
    })?;
    comparison.finish()
}

impl ArchivesOptions {
    fn cases(&self, contenders: &[Language]) -> Vec<Case<Conditions, Language>> {
        let lengths = distinct(&self.message_lengths);
        let shortest = lengths.first().copied().unwrap_or(32);
        let of_part = |part: &Part| match part {
            Part::Rates => lengths
                .iter()
                .flat_map(|&message_length| {
                    distinct(&self.recordings).into_iter().map(move |recordings| {
                        let name =
                            format!("unsynced, {message_length} B, recordings: {recordings}");
                        (name, Conditions::Rates { message_length, recordings })
                    })
                })
                .collect(),
            Part::Latency => {
                let name = format!("latency, {shortest} B");
                vec![(name, Conditions::Latency { message_length: shortest })]
            }
            Part::Synced => lengths
                .iter()
                .map(|&message_length| {
                    let name = format!("synced, {message_length} B, recordings: 5");
                    (name, Conditions::Synced { message_length })
                })
                .collect(),
            Part::Replicated => lengths
                .iter()
                .map(|&message_length| {
                    let name = format!("replicated, {message_length} B");
                    (name, Conditions::Replicated { message_length })
                })
                .collect(),
            Part::Start => vec![("start".to_owned(), Conditions::Start)],
        };
        let case = |(name, conditions)| Case { name, conditions, contenders: contenders.to_vec() };
        distinct(&self.parts).iter().flat_map(of_part).map(case).collect()
    }
}

/// The settings and programs that runs are made with.
#[derive(Debug)]
struct Bench<'a> {
    options: &'a ArchivesOptions,
    channel: &'a ChannelUri,
    archive_dir: &'a Path,
    synced_dir: &'a Path,
    program: &'a Path,
    java: Option<&'a Java>,
    interrupt: &'a ShutdownSignal,
}

impl Bench<'_> {
    /// One run with an archive of its own.
    fn measure(&self, conditions: Conditions, contender: Language) -> Result<Vec<Figure>, Failure> {
        let program = match (contender, self.java) {
            (Language::Java, Some(java)) => ArchiveProgram::Java(java),
            _ => ArchiveProgram::Rust(self.program),
        };
        let (dir, level) = match conditions {
            Conditions::Synced { .. } => (self.synced_dir, 1),
            _ => (self.archive_dir, 0),
        };
        let mut options = vec![
            format!("-Daeron.archive.file.sync.level={level}"),
            format!("-Daeron.archive.catalog.file.sync.level={level}"),
        ];
        let channel = match conditions {
            Conditions::Replicated { .. } => {
                let [endpoint] = free_endpoints()?;
                let channel = format!("aeron:udp?endpoint={endpoint}");
                options.push("-Daeron.archive.control.channel.enabled=true".to_owned());
                options.push(format!("-Daeron.archive.control.channel={channel}"));
                channel
            }
            _ => String::new(),
        };
        let launched = Instant::now();
        let start = || ArchiveProcess::start(program, dir, &options, self.interrupt);
        let (process, archive) = self.options.cores.start_member(start)?;
        let client = self.client(&archive);
        match conditions {
            Conditions::Rates { message_length, recordings } => {
                self.rates(client, contender, message_length, recordings)
            }
            Conditions::Latency { message_length } => {
                self.latency(client, contender, message_length)
            }
            Conditions::Synced { message_length } => {
                let recordings = 5;
                let length = self.options.synced_length / recordings;
                let load = self.load(message_length, recordings, length);
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
            Conditions::Replicated { message_length } => {
                let start = || ArchiveProcess::start(program, dir, &[], self.interrupt);
                let (_process, copies) = self.options.cores.start_member(start)?;
                let copies = self.client(&copies);
                self.replicated((client, &channel), copies, contender, message_length)
            }
            Conditions::Start => self.start(client, launched, process.pid()),
        }
    }

    fn client<'a>(&'a self, archive: &'a Archive) -> ArchiveClient<'a> {
        let fragment_limit = self.options.fragment_limit;
        ArchiveClient { archive, interrupt: self.interrupt, fragment_limit }
    }

    fn load(&self, message_length: usize, recordings: usize, length: usize) -> Load<'_> {
        Load {
            channel: self.channel,
            stream_id: FIRST_STREAM_ID,
            recordings,
            messages: messages_in(length, message_length),
            message_length,
        }
    }

    /// Records, and replays, short recordings until the warm-up is over.
    fn warm_up(
        &self,
        client: ArchiveClient<'_>,
        contender: Language,
        load: &Load<'_>,
    ) -> Result<(), Failure> {
        let load = Load { recordings: 1, messages: load.messages.min(50_000), ..*load };
        let time = self.options.run.warmup_with(contender == Language::Java);
        let start = Instant::now();
        while start.elapsed() < time {
            let (recordings, _) = client.record(&load)?;
            client.replay(&load, &recordings)?;
        }
        settle();
        Ok(())
    }

    fn rates(
        &self,
        client: ArchiveClient<'_>,
        contender: Language,
        message_length: usize,
        recordings: usize,
    ) -> Result<Vec<Figure>, Failure> {
        let load =
            self.load(message_length, recordings, self.options.recording_length / recordings);
        self.warm_up(client, contender, &load)?;
        let (ids, recorded_in) = client.record(&load)?;
        settle();
        let replayed_in = client.replay(&load, &ids)?;
        Ok(vec![
            ("recorded msgs/s", rate(&load, recorded_in)),
            ("replayed msgs/s", rate(&load, replayed_in)),
        ])
    }

    fn latency(
        &self,
        client: ArchiveClient<'_>,
        contender: Language,
        message_length: usize,
    ) -> Result<Vec<Figure>, Failure> {
        let load = self.load(message_length, 1, 64 << 20);
        self.warm_up(client, contender, &load)?;
        let mut streams = client.start(&load)?;
        client.send_one_by_one(&mut streams[0], LATENCIES)?;
        let times = client.send_one_by_one(&mut streams[0], 10 * LATENCIES)?;
        let micros = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        client.stop(streams)?;
        Ok(vec![("p50 µs", micros(0.5)), ("p99 µs", micros(0.99))])
    }

    /// Copies are made of one recording until the warm-up is over, then once of a long one.
    fn replicated(
        &self,
        (source, channel): (ArchiveClient<'_>, &str),
        copies: ArchiveClient<'_>,
        contender: Language,
        message_length: usize,
    ) -> Result<Vec<Figure>, Failure> {
        let load = self.load(message_length, 1, self.options.recording_length);
        let short = Load { messages: load.messages.min(50_000), ..load };
        let record = |load| source.record(load).map(|(ids, _)| ids[0]);
        let recording_id = record(&short)?;
        let time = self.options.run.warmup_with(contender == Language::Java);
        let start = Instant::now();
        while start.elapsed() < time {
            copies.replicate(source.archive, channel, recording_id)?;
        }
        let recording_id = record(&load)?;
        settle();
        let copied_in = copies.replicate(source.archive, channel, recording_id)?;
        Ok(vec![("copied msgs/s", rate(&load, copied_in))])
    }

    /// The archive is launched already, and connected.
    fn start(
        &self,
        client: ArchiveClient<'_>,
        launched: Instant,
        pid: u32,
    ) -> Result<Vec<Figure>, Failure> {
        const MANY: u64 = 1_000_000;
        let load = self.load(32, 1, 64 << 20);
        let mut streams = client.start(&load)?;
        client.send_one_by_one(&mut streams[0], 1)?;
        let first_recording = launched.elapsed();
        let first = client.send_one_by_one(&mut streams[0], LATENCIES)?;
        thread::sleep(Duration::from_millis(500));
        let (resident, shared) = process_usage::resident(pid)?;
        client.send(&mut streams, MANY)?;
        let later = client.send_one_by_one(&mut streams[0], LATENCIES)?;
        client.stop(streams)?;
        Ok(vec![
            ("first recording ms", first_recording.as_secs_f64() * 1e3),
            ("private MiB", (resident - shared) as f64 / MEBIBYTE),
            ("first messages p50 µs", first.value_at_quantile(0.5) as f64 / 1e3),
            ("after 1 M p50 µs", later.value_at_quantile(0.5) as f64 / 1e3),
        ])
    }
}

/// Messages a second of all recordings.
fn rate(load: &Load<'_>, time: Duration) -> f64 {
    (load.messages * load.recordings as u64) as f64 / time.as_secs_f64().max(1e-9)
}
