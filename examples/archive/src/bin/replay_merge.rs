//! Joins a live stream late, without missing its earlier messages.
//!
//! Shows `ReplayMerge`. A recording is replayed until it has caught up with the live stream. Then the
//! subscription receives the live stream, without a message lost or repeated. The publisher goes on
//! meanwhile.
//!
//! Needs an archive that runs already, such as Java's: `just run-archive-java`.

use std::error::Error;
use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_archive::{Archive, Context, RecordingPos, ReplayMerge};
use rusteron_client::{
    Aeron, Backoff, ChannelUri, Context as ClientContext, ExclusivePublication, IdleStrategy,
    Position,
};

/// Replays a recording, and goes over to the live stream
#[derive(Debug, Parser)]
#[command(name = "replay_merge", version)]
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

    /// Stream id within the channel
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to publish before the subscriber comes, and again after it has merged
    #[arg(long, value_name = "N", default_value_t = 1000)]
    messages: u64,
}

/// How many fragments a poll receives at most.
const FRAGMENT_LIMIT: usize = 10;
/// How long the archive, or the merge, may make no progress.
const DEADLINE: Duration = Duration::from_secs(60);
/// How often there is a message once a subscriber has come. Replays are faster, and so catch up.
const INTERVAL: Duration = Duration::from_millis(1);

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
    let mut context = Context::new()?;
    context
        .set_control_request_channel(&options.control_channel.to_string())?
        .set_control_response_channel(&options.response_channel.to_string())?;
    let archive = Archive::connect(&aeron, context).map_err(|error| {
        format!("cannot connect to the archive at {}: {error}", options.control_channel)
    })?;

    // Subscribers come to the publication by themselves, at its control address. It waits for the
    // slowest of them (fc=min), and the archive counts as one (ssc=true).
    let [control, endpoint] = free_endpoints()?;
    let channel =
        format!("aeron:udp?control={control}|control-mode=dynamic|fc=min|ssc=true|term-length=64k");
    let publication = archive.add_recorded_exclusive_publication(&channel, options.stream_id)?;
    let session_id = publication.session_id();
    let recording_id = await_recording(&archive, session_id)?;

    let mut publisher = Publisher { publication, sent: 0, position: 0, next: Instant::now() };
    for _ in 0..options.messages {
        publisher.publish()?;
    }
    archive.await_recorded(recording_id, publisher.position, DEADLINE)?;
    println!("Recording {recording_id} has {} messages", publisher.sent);

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
    let mut idle = Idle::awaiting("the merge");
    while !merge.is_merged() {
        publisher.publish_if_due()?;
        let fragments =
            merge.poll(|text, header| receiver.take(text, header.position()), FRAGMENT_LIMIT)?;
        receiver.check()?;
        idle.idle(fragments)?;
    }
    let (received, position) = (receiver.received, receiver.position);
    println!("Merged after {received} messages, at position {position}");

    // From here on it is a subscription like any other. The session with the archive is ours again.
    let (_archive, mut subscription) = merge.into_parts()?;
    let last = publisher.sent + options.messages;
    let mut idle = Idle::awaiting("the live messages");
    while receiver.received < last {
        if publisher.sent < last {
            publisher.publish_if_due()?;
        }
        let fragments = subscription
            .poll(|text, header| receiver.take(text, header.position()), FRAGMENT_LIMIT)?;
        receiver.check()?;
        idle.idle(fragments)?;
    }
    println!("Done: {last} messages received, none lost or repeated");
    Ok(())
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
    fn publish(&mut self) -> Result<(), Box<dyn Error>> {
        let message = text(self.sent + 1);
        self.position = publish(&mut self.publication, message.as_bytes())?;
        self.sent += 1;
        Ok(())
    }

    fn publish_if_due(&mut self) -> Result<(), Box<dyn Error>> {
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
            Err(error) => Err(error.into()),
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

    /// Returns the first mismatch. Messages are lost or repeated then, and may never all arrive.
    fn check(&mut self) -> Result<(), Box<dyn Error>> {
        self.unexpected.take().map_or(Ok(()), |text| Err(text.into()))
    }
}

fn text(number: u64) -> String {
    format!("Hello {number}")
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

/// Two UDP endpoints of this machine that are free now.
fn free_endpoints() -> io::Result<[String; 2]> {
    // Both sockets exist at the same time, so that the ports differ.
    let sockets = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    Ok([sockets.0.local_addr()?.to_string(), sockets.1.local_addr()?.to_string()])
}
