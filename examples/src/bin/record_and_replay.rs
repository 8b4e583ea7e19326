//! Records messages with an archive, and replays them.
//!
//! Shows:
//! - a session with an archive that runs already, such as Java's: `just run-archive-java`;
//! - a publication that is recorded from its beginning, and waiting until all of it is recorded;
//! - a replay, which arrives at a subscription like any other.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use rusteron_archive::{ArchiveError, ReplayLength, ReplayParams};
use rusteron_client::{Aeron, ChannelUri};
use rusteron_examples::archive::{ArchiveOptions, await_recording, for_recording, publish};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::Turns;

/// Records messages with a running archive, and replays them
#[derive(Debug, Parser)]
#[command(name = "record_and_replay", version)]
struct Options {
    /// Where the archive is.
    #[command(flatten)]
    archive: ArchiveOptions,

    /// Channel to publish on, and to record from; over UDP with ssc=true, unless it says otherwise
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    channel: ChannelUri,

    /// Stream id within the channel; the replay has the next one
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to record
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    messages: usize,
}

/// How many fragments a poll takes at the most.
const FRAGMENT_LIMIT: usize = 10;
/// How long to wait until the archive has written the published messages.
const DEADLINE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let options = Options::parse();
    failure::exit_code(options.archive.with_client(|aeron| run(&options, aeron)))
}

fn failed(doing: &str) -> impl Fn(ArchiveError) -> Failure + '_ {
    move |error| Failure::run(doing, error)
}

fn run(options: &Options, aeron: &Aeron) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let archive = options.archive.connect(aeron)?;

    let mut publication = archive
        .add_recorded_exclusive_publication(for_recording(&options.channel)?, options.stream_id)
        .map_err(failed("cannot record"))?;
    let turns = Turns::awaiting("the recording", &interrupt);
    let recording_id = await_recording(&archive, publication.session_id(), turns)?;
    output.line(format_args!("Recording {recording_id}"))?;

    let mut turns = Turns::awaiting("a place for a message", &interrupt);
    let mut position = 0;
    for number in 1..=options.messages {
        let message = format!("Hello {number}");
        position = publish(&mut publication, message.as_bytes(), &mut turns)?;
    }
    let recorded = archive
        .await_recorded(recording_id, position, DEADLINE)
        .map_err(failed("cannot tell what is recorded"))?;
    output.line(format_args!("Recorded {} messages, {recorded} bytes", options.messages))?;

    // The publication is still there, so the recording is active. Replay the messages recorded so far.
    let params = ReplayParams::new().length(ReplayLength::Recorded);
    let mut subscription = archive
        .replay(recording_id, &options.channel, options.stream_id.wrapping_add(1), params)
        .map_err(failed("cannot replay"))?;
    let mut turns = Turns::awaiting("the replay", &interrupt);
    let mut lines = Vec::new();
    let mut replayed = 0;
    while replayed < options.messages {
        let handler = |message: &[u8], header: &rusteron_client::Header<'_>| {
            replayed += 1;
            let text = String::from_utf8_lossy(message);
            lines.push(format!("Replayed \"{text}\", position {}", header.position()));
        };
        let fragments = subscription.poll(handler, FRAGMENT_LIMIT)?;
        for line in lines.drain(..) {
            output.line(line)?;
        }
        turns.idle(fragments)?;
    }
    output.line(format_args!("Done: {replayed} messages replayed"))
}
