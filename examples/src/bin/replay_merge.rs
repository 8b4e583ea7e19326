//! Joins a live stream late, without missing its earlier messages.
//!
//! Shows `ReplayMerge`. A recording is replayed until it has caught up with the live stream. Then the
//! subscription receives the live stream, without a message lost or repeated. The publisher goes on
//! meanwhile.
//!
//! Needs an archive that runs already, such as Java's: `just run-archive-java`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_archive::ReplayMerge;
use rusteron_client::{Aeron, ExclusivePublication, Position};
use rusteron_examples::archive::{ArchiveOptions, await_recording, publish};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::{Turns, free_endpoints};

/// Replays a recording, and goes over to the live stream
#[derive(Debug, Parser)]
#[command(name = "replay_merge", version)]
struct Options {
    /// Where the archive is.
    #[command(flatten)]
    archive: ArchiveOptions,

    /// Stream id within the channel
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to publish before the subscriber comes, and again after it has merged
    #[arg(long, value_name = "N", default_value_t = 1000)]
    messages: u64,
}

/// How many fragments a poll takes at the most.
const FRAGMENT_LIMIT: usize = 10;
/// How long the archive, or the merge, may make no progress.
const DEADLINE: Duration = Duration::from_secs(60);
/// How often there is a message once a subscriber has come. Replays are faster, and so catch up.
const INTERVAL: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let options = Options::parse();
    failure::exit_code(options.archive.with_client(|aeron| run(&options, aeron)))
}

fn run(options: &Options, aeron: &Aeron) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let archive = options.archive.connect(aeron)?;

    // Subscribers come to the publication by themselves, at its control address. It waits for the
    // slowest of them (fc=min), and the archive counts as one (ssc=true).
    let [control, endpoint] = free_endpoints()?;
    let channel =
        format!("aeron:udp?control={control}|control-mode=dynamic|fc=min|ssc=true|term-length=64k");
    let publication = archive.add_recorded_exclusive_publication(&channel, options.stream_id)?;
    let session_id = publication.session_id();
    let turns = Turns::awaiting("the recording", &interrupt);
    let recording_id = await_recording(&archive, session_id, turns)?;

    let mut publisher = Publisher { publication, sent: 0, position: 0, next: Instant::now() };
    let mut turns = Turns::awaiting("a place for a message", &interrupt);
    for _ in 0..options.messages {
        publisher.publish(&mut turns)?;
    }
    archive.await_recorded(recording_id, publisher.position, DEADLINE)?;
    output.line(format_args!("Recording {recording_id} has {} messages", publisher.sent))?;

    // The replay and the live stream are two destinations of one subscription, and one image, as both
    // have the publication's session id.
    let subscription =
        aeron.add_subscription("aeron:udp?control-mode=manual", options.stream_id)?;
    let mut merge = ReplayMerge::builder(
        format!("aeron:udp?session-id={session_id}"),
        "aeron:udp?endpoint=localhost:0",
        format!("aeron:udp?endpoint={endpoint}|control={control}"),
    )
    .progress_timeout(DEADLINE)
    .start(archive, subscription, recording_id)?;
    let mut receiver = Receiver::default();
    let mut turns = Turns::awaiting("the merge", &interrupt);
    while !merge.is_merged() {
        publisher.publish_if_due()?;
        let fragments =
            merge.poll(|text, header| receiver.take(text, header.position()), FRAGMENT_LIMIT)?;
        turns.idle(fragments)?;
    }
    let (received, position) = (receiver.received, receiver.position);
    output.line(format_args!("Merged after {received} messages, at position {position}"))?;

    // From here on it is a subscription like any other. The session with the archive is ours again.
    let (_archive, mut subscription) = merge.into_parts()?;
    let last = publisher.sent + options.messages;
    let mut turns = Turns::awaiting("messages", &interrupt);
    while receiver.received < last {
        if publisher.sent < last {
            publisher.publish_if_due()?;
        }
        let fragments = subscription
            .poll(|text, header| receiver.take(text, header.position()), FRAGMENT_LIMIT)?;
        turns.idle(fragments)?;
    }
    receiver.check()?;
    output.line(format_args!("Done: {last} messages received, none lost or repeated"))
}

/// Publishes numbered messages.
struct Publisher {
    publication: ExclusivePublication,
    sent: u64,
    position: Position,
    /// When the next message is due.
    next: Instant,
}

impl Publisher {
    fn publish(&mut self, turns: &mut Turns) -> Result<(), Failure> {
        let message = text(self.sent + 1);
        self.position = publish(&mut self.publication, message.as_bytes(), turns)?;
        self.sent += 1;
        Ok(())
    }

    fn publish_if_due(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        // Not awaited: the same thread has to poll before an offer is accepted.
        match self.publication.offer(text(self.sent + 1).as_bytes()) {
            Ok(position) => {
                self.position = position;
                self.sent += 1;
                self.next = now + INTERVAL;
                Ok(())
            }
            Err(error) if error.is_retryable() => Ok(()),
            Err(error) => Err(Failure::run("cannot publish", error)),
        }
    }
}

/// Counts messages, and compares them with the expected messages.
#[derive(Default)]
struct Receiver {
    received: u64,
    position: Position,
    unexpected: Option<String>,
}

impl Receiver {
    fn take(&mut self, message: &[u8], position: Position) {
        self.received += 1;
        self.position = position;
        let expected = text(self.received);
        if message != expected.as_bytes() && self.unexpected.is_none() {
            let message = String::from_utf8_lossy(message);
            self.unexpected = Some(format!("received \"{message}\" instead of \"{expected}\""));
        }
    }

    fn check(self) -> Result<(), Failure> {
        self.unexpected.map_or(Ok(()), |text| Err(Failure::Run(text)))
    }
}

fn text(number: u64) -> String {
    format!("Hello {number}")
}
