//! A subscription that outlives its publisher, and misses nothing.
//!
//! Shows `PersistentSubscription`. It begins in a recording. When it has caught up, it joins the live
//! stream. When the publisher goes, it falls back to the recording. Then it joins the next live stream,
//! which continues the recording.
//!
//! Needs an archive that runs already, such as Java's: `just run-archive-java`.

use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::Parser;
use rusteron_archive::{
    PersistentSubscription, PersistentSubscriptionContext, PersistentSubscriptionEvent,
    SourceLocation, StartPosition,
};
use rusteron_client::{Aeron, ChannelUri, ExclusivePublication};
use rusteron_examples::archive::{ArchiveOptions, await_recording, for_recording, publish};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::Turns;

/// Subscribes to a stream and its recording
#[derive(Debug, Parser)]
#[command(name = "persistent_subscription", version)]
struct Options {
    /// Where the archive is.
    #[command(flatten)]
    archive: ArchiveOptions,

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

/// How many fragments a poll takes at the most.
const FRAGMENT_LIMIT: usize = 10;
/// How long to wait until the archive has written the published messages.
const DEADLINE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let options = Options::parse();
    failure::exit_code(options.archive.with_client(|aeron| run(&options, aeron)))
}

fn run(options: &Options, aeron: &Aeron) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let archive = options.archive.connect(aeron)?;
    let (channel, stream_id) = (&for_recording(&options.channel)?, options.stream_id);

    // Messages that are published before the first subscription are in the recording only.
    let mut publication = archive.add_recorded_exclusive_publication(channel, stream_id)?;
    let turns = Turns::awaiting("the recording", &interrupt);
    let recording_id = await_recording(&archive, publication.session_id(), turns)?;
    let mut turns = Turns::awaiting("a place for a message", &interrupt);
    let mut position = 0;
    for number in 1..=options.messages {
        position = publish(&mut publication, text(number).as_bytes(), &mut turns)?;
    }
    archive.await_recorded(recording_id, position, DEADLINE)?;
    output.line(format_args!("Recording {recording_id} has {} messages", options.messages))?;

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
    let subscription = PersistentSubscription::new(aeron, options.archive.context()?, context)?;
    let mut receiver = Receiver { subscription, events, received: 0 };

    let mut turns = Turns::awaiting("the live stream", &interrupt);
    while !receiver.subscription.is_live() {
        let work = receiver.poll(&mut output)?;
        turns.idle(work)?;
    }
    let last = 2 * options.messages;
    receiver.receive_live(&mut publication, last, &mut output, &interrupt)?;

    // The publisher goes. The recording stops, and the subscription is back in it.
    drop(publication);
    let mut turns = Turns::awaiting("the end of the recording", &interrupt);
    while receiver.subscription.is_live() || archive.stop_position(recording_id)?.is_none() {
        let work = receiver.poll(&mut output)?;
        turns.idle(work)?;
    }

    // Another publisher begins where the recording has stopped.
    let recording = archive
        .recording(recording_id)?
        .ok_or_else(|| Failure::Run("the recording is gone".to_owned()))?;
    let continuation = recording
        .continuation(&channel.to_string())?
        .ok_or_else(|| Failure::Run("somebody else records on".to_owned()))?;
    archive.extend_recording(recording_id, channel, stream_id, SourceLocation::Local, true)?;
    let mut publication = aeron.add_exclusive_publication(continuation, stream_id)?;
    let turns = Turns::awaiting("the recording", &interrupt);
    await_recording(&archive, publication.session_id(), turns)?;
    let last = 3 * options.messages;
    receiver.receive_live(&mut publication, last, &mut output, &interrupt)?;
    output.line(format_args!("Done: {last} messages received, none lost or repeated"))
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
        output: &mut Output<'_>,
        interrupt: &std::sync::Arc<Interrupt>,
    ) -> Result<(), Failure> {
        let mut turns = Turns::awaiting("messages", interrupt);
        let mut next = self.received + 1;
        while self.received < last || !self.subscription.is_live() {
            if next <= last {
                // Not awaited: the same thread has to poll before an offer is accepted.
                match publication.offer(text(next).as_bytes()) {
                    Ok(_) => next += 1,
                    Err(error) if error.is_retryable() => {}
                    Err(error) => return Err(Failure::run("cannot publish", error)),
                }
            }
            let work = self.poll(output)?;
            turns.idle(work)?;
        }
        Ok(())
    }

    fn poll(&mut self, output: &mut Output<'_>) -> Result<usize, Failure> {
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
                    output
                        .line(format_args!("Joined the live stream after {received} messages"))?;
                }
                PersistentSubscriptionEvent::LiveLeft => {
                    output.line(format_args!("Left the live stream after {received} messages"))?;
                }
                PersistentSubscriptionEvent::Error(error) => failure::warn(error),
                _ => {}
            }
        }
        match unexpected {
            Some(text) => Err(Failure::Run(format!("message {received} is \"{text}\""))),
            None => Ok(work),
        }
    }
}

fn text(number: u64) -> String {
    format!("Hello {number}")
}
