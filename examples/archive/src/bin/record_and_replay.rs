//! Records messages with an archive, and replays them.
//!
//! Shows:
//! - a session with an archive that runs already, such as Java's: `just run-archive-java`;
//! - a publication that is recorded from its beginning, and waiting until all of it is recorded;
//! - a replay, which arrives at a subscription like any other.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use rusteron_archive::{Archive, Context, RecordingPos, ReplayLength, ReplayParams};
use rusteron_client::{
    Aeron, Backoff, ChannelUri, ChannelUriError, Context as ClientContext, ExclusivePublication,
    IdleStrategy, Media, Parameter, Position,
};

/// Records messages with a running archive, and replays them
#[derive(Debug, Parser)]
#[command(name = "record_and_replay", version)]
struct Options {
    /// Directory of the archive's media driver [default: Aeron's default directory]
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Where the archive takes requests
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:8010")]
    control_channel: ChannelUri,

    /// Where the archive is to answer
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:0")]
    response_channel: ChannelUri,

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

/// How many fragments a poll receives at most.
const FRAGMENT_LIMIT: usize = 10;
/// How long the archive, or a loop, may make no progress.
const DEADLINE: Duration = Duration::from_secs(60);

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Interrupted: the error is only the way out of a loop.
        Err(_) if !RUNNING.load(Ordering::Relaxed) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            // The reader has closed the output, as in `… | head`.
            Some(io::ErrorKind::BrokenPipe) => ExitCode::SUCCESS,
            _ => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;
    let mut out = io::stdout();
    let mut context = ClientContext::new()?;
    if let Some(dir) = &options.aeron_dir {
        context.set_dir(dir)?;
    }
    // Errors of the client's own thread, such as a media driver that has died.
    context.set_error_handler(|error| eprintln!("error: {error}"))?;
    let aeron = Aeron::connect(context)?;
    let mut context = Context::new()?;
    context
        .set_control_request_channel(&options.control_channel.to_string())?
        .set_control_response_channel(&options.response_channel.to_string())?;
    let archive = Archive::connect(&aeron, context).map_err(|error| {
        format!("cannot connect to the archive at {}: {error}", options.control_channel)
    })?;

    let mut publication = archive
        .add_recorded_exclusive_publication(for_recording(&options.channel)?, options.stream_id)?;
    let recording_id = await_recording(&archive, publication.session_id())?;
    writeln!(out, "Recording {recording_id}")?;

    let mut position = 0;
    for number in 1..=options.messages {
        let message = format!("Hello {number}");
        position = publish(&mut publication, message.as_bytes())?;
    }
    let recorded = archive.await_recorded(recording_id, position, DEADLINE)?;
    writeln!(out, "Recorded {} messages, {recorded} bytes", options.messages)?;

    // The publication is still there, so the recording is active. Replay the messages recorded so far.
    let params = ReplayParams::new().length(ReplayLength::Recorded);
    let mut subscription = archive.replay(
        recording_id,
        &options.channel,
        options.stream_id.wrapping_add(1),
        params,
    )?;
    let mut idle = Idle::awaiting("the replay");
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
            writeln!(out, "{line}")?;
        }
        idle.idle(fragments)?;
    }
    writeln!(out, "Done: {replayed} messages replayed")?;
    Ok(())
}

/// Returns the channel for a recorded publication, which may have no other subscriber. Over UDP the archive is
/// a spy, and a spy counts as a subscriber only with `ssc=true`.
fn for_recording(channel: &ChannelUri) -> Result<ChannelUri, ChannelUriError> {
    if channel.media() == Media::Udp && channel.get(Parameter::SpiesSimulateConnection).is_none() {
        channel.to_builder().spies_simulate_connection(true).build()
    } else {
        Ok(channel.clone())
    }
}

/// Waits until a publication is being recorded, and returns the id of the recording.
fn await_recording(archive: &Archive, session_id: i32) -> Result<i64, Box<dyn Error>> {
    let mut idle = Idle::awaiting("the recording");
    loop {
        // The archive shows the position of a recording in a counter, which has the recording's id.
        let (aeron, archive_id) = (archive.aeron(), archive.archive_id());
        if let Some(found) = RecordingPos::find_by_session_id(aeron, session_id, archive_id) {
            return Ok(found.recording_id());
        }
        idle.idle(0)?;
    }
}

/// Waits until a message is accepted, and returns the position after it.
fn publish(
    publication: &mut ExclusivePublication,
    message: &[u8],
) -> Result<Position, Box<dyn Error>> {
    let mut idle = Idle::awaiting("an accepted offer");
    loop {
        match publication.offer(message) {
            Ok(position) => return Ok(position),
            Err(error) if error.is_retryable() => idle.idle(0)?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Idles in a loop that waits for something.
struct Idle {
    awaited: &'static str,
    backoff: Backoff,
    deadline: Instant,
}

impl Idle {
    fn awaiting(awaited: &'static str) -> Self {
        Self { awaited, backoff: Backoff::default(), deadline: Instant::now() + DEADLINE }
    }

    /// Idles if there was no work. Returns an error after Ctrl-C, or after `DEADLINE` without work.
    fn idle(&mut self, work_count: usize) -> Result<(), Box<dyn Error>> {
        if !RUNNING.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        if work_count > 0 {
            self.deadline = Instant::now() + DEADLINE;
        } else if Instant::now() > self.deadline {
            return Err(format!("no progress for {DEADLINE:?}, awaiting {}", self.awaited).into());
        }
        self.backoff.idle(work_count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spies_count_unless_channel_says_no() {
        let cases = [
            ("aeron:ipc", "aeron:ipc"),
            ("aeron:udp?endpoint=localhost:1", "aeron:udp?endpoint=localhost:1|ssc=true"),
            (
                "aeron:udp?endpoint=localhost:1|ssc=false",
                "aeron:udp?endpoint=localhost:1|ssc=false",
            ),
        ];
        for (given, used) in cases {
            let channel = for_recording(&given.parse().expect(given)).expect(given);
            assert_eq!(channel, used.parse().expect(used));
        }
    }
}
