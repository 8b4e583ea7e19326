//! A subscription that outlives its publisher, and misses nothing.
//!
//! Shows `PersistentSubscription`. It begins in a recording. When it has caught up, it joins the live
//! stream. When the publisher goes, it falls back to the recording. Then it joins the next live stream,
//! which continues the recording.
//!
//! Needs an archive that runs already, such as Java's: `just run-archive-java`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_archive::{
    Archive, Context, PersistentSubscription, PersistentSubscriptionContext,
    PersistentSubscriptionEvent, RecordingPos, SourceLocation, StartPosition,
};
use rusteron_client::{
    Aeron, Backoff, ChannelUri, ChannelUriError, Context as ClientContext, ExclusivePublication,
    IdleStrategy, Media, Parameter, Position,
};

/// Subscribes to a stream and its recording
#[derive(Debug, Parser)]
#[command(name = "persistent_subscription", version)]
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

    /// Stream id within the channel; the replays have the next one
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to publish each time: before the subscription, live, and by another publisher
    #[arg(long, value_name = "N", default_value_t = 100)]
    messages: u64,
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
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;
    let mut context = ClientContext::new()?;
    if let Some(dir) = &options.aeron_dir {
        context.set_dir(dir)?;
    }
    // Errors of the client's own thread, such as a media driver that has died.
    context.set_error_handler(|error| eprintln!("error: {error}"))?;
    let aeron = Aeron::connect(context)?;
    let archive = Archive::connect(&aeron, archive_context(options)?).map_err(|error| {
        format!("cannot connect to the archive at {}: {error}", options.control_channel)
    })?;
    let (channel, stream_id) = (&for_recording(&options.channel)?, options.stream_id);

    // Messages that are published before the first subscription are in the recording only.
    let mut publication = archive.add_recorded_exclusive_publication(channel, stream_id)?;
    let recording_id = await_recording(&archive, publication.session_id())?;
    let mut position = 0;
    for number in 1..=options.messages {
        position = publish(&mut publication, text(number).as_bytes())?;
    }
    archive.await_recorded(recording_id, position, DEADLINE)?;
    println!("Recording {recording_id} has {} messages", options.messages);

    // It has a session with the archive of its own. The listener is called by the polls.
    let (sender, events) = mpsc::channel();
    let context = PersistentSubscriptionContext::new(
        recording_id,
        channel,
        stream_id,
        "aeron:udp?endpoint=localhost:0",
        stream_id.wrapping_add(1),
    )
    .start_position(StartPosition::Start)
    .listener(move |event| {
        // It fails only when this program has ended.
        let _ = sender.send(event.clone());
    });
    let subscription = PersistentSubscription::new(&aeron, archive_context(options)?, context)?;
    let mut receiver = Receiver { subscription, events, received: 0 };

    let mut idle = Idle::awaiting("the live stream");
    while !receiver.subscription.is_live() {
        let work = receiver.poll()?;
        idle.idle(work)?;
    }
    let last = 2 * options.messages;
    receiver.receive_live(&mut publication, last)?;

    // The publisher goes. The recording stops, and the subscription is back in it.
    drop(publication);
    let mut idle = Idle::awaiting("the end of the recording");
    while receiver.subscription.is_live() || archive.stop_position(recording_id)?.is_none() {
        let work = receiver.poll()?;
        idle.idle(work)?;
    }

    // Another publisher begins where the recording has stopped.
    let recording = archive.recording(recording_id)?.ok_or("the recording is gone")?;
    let continuation = recording
        .continuation(&channel.to_string())?
        .ok_or("another publication extends the recording")?;
    archive.extend_recording(recording_id, channel, stream_id, SourceLocation::Local, true)?;
    let mut publication = aeron.add_exclusive_publication(continuation, stream_id)?;
    await_recording(&archive, publication.session_id())?;
    let last = 3 * options.messages;
    receiver.receive_live(&mut publication, last)?;
    println!("Done: {last} messages received, none lost or repeated");
    Ok(())
}

struct Receiver {
    subscription: PersistentSubscription,
    events: mpsc::Receiver<PersistentSubscriptionEvent>,
    received: u64,
}

impl Receiver {
    /// Publishes up to message `last`, one after the other, and receives at the same time.
    fn receive_live(
        &mut self,
        publication: &mut ExclusivePublication,
        last: u64,
    ) -> Result<(), Box<dyn Error>> {
        let mut idle = Idle::awaiting("the live messages");
        let mut next = self.received + 1;
        while self.received < last || !self.subscription.is_live() {
            if next <= last {
                // Not awaited: the same thread has to poll before an offer is accepted.
                match publication.offer(text(next).as_bytes()) {
                    Ok(_) => next += 1,
                    Err(error) if error.is_retryable() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let work = self.poll()?;
            idle.idle(work)?;
        }
        Ok(())
    }

    fn poll(&mut self) -> Result<usize, Box<dyn Error>> {
        let (received, mut unexpected) = (&mut self.received, None);
        let handler = |message: &[u8], _info: &rusteron_archive::MessageInfo| {
            *received += 1;
            if message != text(*received).as_bytes() {
                unexpected = Some(String::from_utf8_lossy(message).into_owned());
            }
        };
        let work = self.subscription.poll(handler, FRAGMENT_LIMIT)?;
        let received = self.received;
        for event in self.events.try_iter() {
            match event {
                PersistentSubscriptionEvent::LiveJoined => {
                    println!("Joined the live stream after {received} messages");
                }
                PersistentSubscriptionEvent::LiveLeft => {
                    println!("Left the live stream after {received} messages");
                }
                PersistentSubscriptionEvent::Error(error) => eprintln!("warning: {error}"),
                _ => {}
            }
        }
        match unexpected {
            Some(text) => Err(format!("message {received} is \"{text}\"").into()),
            None => Ok(work),
        }
    }
}

fn text(number: u64) -> String {
    format!("Hello {number}")
}

/// Settings of a session with the archive.
fn archive_context(options: &Options) -> rusteron_client::Result<Context> {
    let mut context = Context::new()?;
    context
        .set_control_request_channel(&options.control_channel.to_string())?
        .set_control_response_channel(&options.response_channel.to_string())?;
    Ok(context)
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
