//! The program `recording_throughput`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use rusteron_client::ChannelUri;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::duration;
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::number::Grouped;
use crate::command_line::output::Output;
use crate::command_line::run_options;
use crate::contenders::recording::{Bench, Client, Load, Outcome};
use crate::measuring::statistics::Statistics;
use crate::processes::archive_process::{ArchiveProcess, Usage};
use crate::processes::java::Java;
use crate::reports::chart::{BarChart, Heading, settings_note};
use crate::reports::comparison::{self, Case};
use crate::reports::host;
use crate::reports::results::{self, Results};

/// The stream of the first run; each further one has the next but one, as replays need one, too.
const FIRST_STREAM_ID: i32 = 3001;

/// Compares how many messages a second a Java archive records for, and replays to, a client in Rust and
/// one in Java.
///
/// A port of Aeron's samples EmbeddedRecordingThroughput and EmbeddedReplayThroughput. The archive is a
/// process of its own that both contenders use. The contenders take turns. A recording is over when all of it is
/// written. A replay is timed from the request until the last message. Before either, the operating
/// system writes its buffers. Loops yield. The archive's process is measured too: processor, memory and
/// disk. Needs Java, and space for one recording.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
#[command(name = "recording_throughput", version)]
pub struct RecordingOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,java"
    )]
    pub contenders: Vec<Client>,

    /// Lengths of messages in bytes, separated by commas, from 8 to 16m
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "32,1344", value_parser = byte_size::parse_message_length)]
    pub message_lengths: Vec<usize>,

    /// How many bytes a recording has, headers included: as many messages as that is
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "1536m",
          value_parser = byte_size::parse_length)]
    pub recording_length: usize,

    /// How many messages to record and replay before that
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "50000",
          value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000))]
    pub warmup_messages: u64,

    /// How long these are recorded and replayed again and again
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "2s",
          value_parser = duration::parse)]
    pub warmup: Duration,

    /// How many recordings to make and replay in a run
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub recordings: u32,

    /// How many rounds: in each, every contender has one run, one after the other
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub runs: u32,

    /// Channel to publish on, and to record from; replays come over IPC
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    pub channel: ChannelUri,

    /// How many fragments a poll receives at the most
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=i32::MAX as u64))]
    pub fragment_limit: usize,

    /// Directory for the recordings, which are deleted; one in memory, such as /dev/shm, leaves the disk out
    /// [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub archive_dir: Option<PathBuf>,

    /// Directory for the result as JSON and SVG; it is created if necessary
    #[arg(long, value_name = "DIR", default_value = "target/benchmarks")]
    pub results: PathBuf,
}

/// The phase that a case measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Record,
    Replay,
}

/// All runs of a contender with messages of a length.
#[derive(Debug)]
struct Runs {
    message_length: usize,
    messages: u64,
    client: Client,
    /// Those of each run.
    outcomes: Vec<Vec<Outcome>>,
}

/// Runs the program.
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
        let reason = "expected a directory";
        return Err(Failure::usage("--archive-dir <DIR>", dir.display(), reason));
    }
    let results = Results::open(&options.results, "recording-throughput")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let java = Java::find(&[], &interrupt)
        .map_err(|reason| Failure::run("the archive needs Java", reason))?;
    let (process, archive) = ArchiveProcess::start(&java, &dir, &interrupt)?;
    let bench = Bench { process: &process, archive: &archive, java: &java, interrupt: &interrupt };
    let runs = measure(options, &bench, &mut output)?;

    let cases = cases(options, &runs);
    for line in comparison::table(&cases, "msgs/sec") {
        output.line(line)?;
    }
    for line in usage_table(&runs) {
        output.line(line)?;
    }
    chart(options, &cases, &java).write(&results.chart("rates"))?;
    output.line(results.write(&report(options, &cases, &runs, &java))?)
}

/// Runs both contenders of all lengths in turn, again and again, and prints each run.
fn measure(
    options: &RecordingOptions,
    bench: &Bench<'_>,
    output: &mut Output<'_>,
) -> Result<Vec<Runs>, Failure> {
    let clients = run_options::distinct(&options.contenders);
    let mut runs: Vec<Runs> = run_options::distinct(&options.message_lengths)
        .into_iter()
        .flat_map(|message_length| {
            let messages = messages_in(options.recording_length, message_length);
            let empty =
                move |&client| Runs { message_length, messages, client, outcomes: Vec::new() };
            clients.iter().map(empty).collect::<Vec<_>>()
        })
        .collect();
    let mut stream_ids = (FIRST_STREAM_ID..).step_by(2);
    for number in 1..=options.runs {
        // The work that a run leaves for the disk slows the next run: the contenders take turns to be first.
        let of_length = runs.chunks_mut(clients.len());
        for Runs { message_length, messages, client, outcomes } in
            of_length.flat_map(|runs| comparison::in_turn(runs, number))
        {
            let load = Load {
                channel: options.channel.clone(),
                stream_id: stream_ids.next().unwrap_or(FIRST_STREAM_ID),
                messages: *messages,
                message_length: *message_length,
                fragment_limit: options.fragment_limit,
                warmup_messages: options.warmup_messages.min(*messages),
                warmup: options.warmup,
                recordings: options.recordings,
            };
            let run = match bench.measure(*client, &load) {
                Ok(run) => run,
                // A run that was cut short would not be comparable with the others.
                Err(Failure::Interrupted) => return Ok(runs),
                Err(failure) => return Err(failure),
            };
            let [record, replay] = [Phase::Record, Phase::Replay]
                .map(|phase| Statistics::new(run.iter().map(|it| phase.rate(it, *messages))))
                .map(|rates| {
                    rates.map_or_else(String::new, |it| Grouped::rounded(it.median()).to_string())
                });
            output.line(format_args!(
                "Run {number}, {message_length} B, {client}: recorded {record}, replayed {replay} msgs/sec"
            ))?;
            outcomes.push(run);
        }
    }
    Ok(runs)
}

/// How many messages a recording of about so many bytes has, at least one.
fn messages_in(recording_length: usize, message_length: usize) -> u64 {
    const HEADER_LENGTH: usize = 32;
    const ALIGNMENT: usize = 32;
    let frame_length = (message_length + HEADER_LENGTH).next_multiple_of(ALIGNMENT);
    (recording_length / frame_length).max(1) as u64
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Replay => "replay",
        }
    }

    fn rate(self, outcome: &Outcome, messages: u64) -> f64 {
        let time = match self {
            Self::Record => outcome.recorded_in,
            Self::Replay => outcome.replayed_in,
        };
        messages as f64 / time.as_secs_f64().max(1e-9)
    }
}

fn cases(options: &RecordingOptions, runs: &[Runs]) -> Vec<Case> {
    let mut cases = Vec::new();
    for message_length in run_options::distinct(&options.message_lengths) {
        for phase in [Phase::Record, Phase::Replay] {
            let of_length = || runs.iter().filter(|runs| runs.message_length == message_length);
            let name = format!("{}, {message_length} B", phase.name());
            let mut case = Case::new(name, of_length().map(|runs| runs.client.to_string()));
            for (contender, runs) in case.contenders.iter_mut().zip(of_length()) {
                let rate = |outcome| phase.rate(outcome, runs.messages);
                contender.runs =
                    runs.outcomes.iter().map(|run| run.iter().map(rate).collect()).collect();
            }
            cases.push(case);
        }
    }
    cases
}

/// Returns the lines of a table with the archive process's usage, in medians.
fn usage_table(runs: &[Runs]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<10} {:<6} {:>18} {:>18} {:>16} {:>14}",
        "archive",
        "contender",
        "CPU s, recording",
        "CPU s, replaying",
        "disk/recorded",
        "peak RSS, MiB"
    )];
    for Runs { message_length, client, outcomes, .. } in runs {
        let median = |value: &dyn Fn(&Outcome) -> Option<f64>| {
            let statistics = Statistics::new(outcomes.iter().flatten().filter_map(value));
            statistics.map_or_else(|| "-".to_owned(), |it| format!("{:.3}", it.median()))
        };
        let cpu = |usage: Option<Usage>| usage.map(|usage| usage.cpu_seconds);
        let peak = |usage: Usage| (usage.peak_resident_bytes >> 20) as f64;
        lines.push(format!(
            "{:<10} {client:<6} {:>18} {:>18} {:>16} {:>14}",
            format!("{message_length} B"),
            median(&|outcome| cpu(outcome.recording)),
            median(&|outcome| cpu(outcome.replay)),
            median(&|outcome| Some(outcome.disk_bytes as f64 / outcome.recorded_bytes as f64)),
            median(&|outcome| outcome.replay.map(peak)),
        ));
    }
    lines
}

fn chart(options: &RecordingOptions, cases: &[Case], java: &Java) -> BarChart {
    let mut notes = results::notes();
    notes.push(java.versions().to_owned());
    notes.push(settings_note(&[
        ("recording length", &byte_size::display(options.recording_length)),
        ("channel", &options.channel),
        ("fragment limit", &options.fragment_limit),
        ("recordings a run", &options.recordings),
        ("runs", &options.runs),
    ]));
    BarChart {
        heading: Heading { title: "Recording and replaying with a Java archive".to_owned(), notes },
        unit: "messages per second: median, quartiles".to_owned(),
        series: run_options::distinct(&options.contenders).iter().map(Client::to_string).collect(),
        groups: cases
            .iter()
            .map(|case| {
                (
                    case.name.clone(),
                    case.contenders.iter().map(|contender| contender.bar()).collect(),
                )
            })
            .collect(),
        // Long messages are much slower than short ones.
        has_common_scale: false,
    }
}

fn report(options: &RecordingOptions, cases: &[Case], runs: &[Runs], java: &Java) -> Value {
    let mut versions = host::versions();
    versions["java"] = json!(java.versions());
    let run = |run: &Vec<Outcome>| run.iter().map(Outcome::to_json).collect::<Vec<_>>();
    let outcomes = |runs: &Runs| {
        json!({
            "message_length": runs.message_length,
            "messages": runs.messages,
            "contender": runs.client.to_string(),
            "runs": runs.outcomes.iter().map(run).collect::<Vec<_>>(),
        })
    };
    json!({
        "program": "recording_throughput",
        "versions": versions,
        "host": host::describe(),
        "settings": {
            "recording_length": options.recording_length,
            "warmup_messages": options.warmup_messages,
            "warmup_seconds": options.warmup.as_secs_f64(),
            "recordings": options.recordings,
            "runs": options.runs,
            "channel": options.channel.to_string(),
            "fragment_limit": options.fragment_limit,
        },
        "unit": "messages per second",
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
        "archive": runs.iter().map(outcomes).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        RecordingOptions::command().debug_assert();
    }

    #[test]
    fn recordings_of_all_lengths_are_equally_long() {
        assert_eq!(messages_in(64 << 20, 32), 1 << 20);
        assert_eq!(messages_in(64 << 20, 33), (64 << 20) / 96);
        assert_eq!(messages_in(1 << 30, 1344), 780_335);
        assert_eq!(messages_in(1, 1344), 1);
    }

    #[test]
    fn table_has_rates_and_archive_usage() {
        let options = RecordingOptions::try_parse_from(["program"]).expect("valid arguments");
        let outcome = Outcome {
            recorded_in: Duration::from_secs(2),
            replayed_in: Duration::from_secs(1),
            disk_bytes: 300,
            recorded_bytes: 200,
            recording: Some(Usage { cpu_seconds: 0.5, peak_resident_bytes: 3 << 20 }),
            replay: None,
        };
        let (client, outcomes) = (Client::Java, vec![vec![outcome]]);
        let runs = [Runs { message_length: 32, messages: 100, client, outcomes }];
        let cases = cases(&options, &runs);
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["record, 32 B", "replay, 32 B", "record, 1344 B", "replay, 1344 B"]);
        assert_eq!(cases[0].contenders[0].runs, [[50.0]]);
        assert_eq!(cases[1].contenders[0].runs, [[100.0]]);
        let table = usage_table(&runs);
        let fields: Vec<&str> = table[1].split_whitespace().collect();
        assert_eq!(fields, ["32", "B", "Java", "0.500", "-", "1.500", "-"]);
    }
}
