//! Writes messages into the log buffer itself.
//!
//! Shows claims. A claim is a range of the log buffer that no subscriber reads yet. The program writes its
//! message there, without a buffer of its own and without a copy, and then
//! - `commit` publishes the message;
//! - `abort`, or dropping the claim, makes padding of the range, and subscribers skip it.
//!
//! A claim holds one fragment at the most. Longer messages are offered, as one message shows. Each
//! message has its checksum in the reserved value: 8 bytes of the header that belong to the application.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{
    Aeron, Backoff, ChannelUri, Context, Header, IdleStrategy, OfferError, PollError, Subscription,
};
use rusteron_media_driver::MediaDriver;

/// Claims ranges of a log buffer, commits some and aborts others
#[derive(Debug, Parser)]
#[command(name = "claims", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many quotes to publish; every third is withdrawn
    #[arg(long, value_name = "N", default_value_t = 6)]
    messages: u64,
}

/// A number and a price, 8 bytes each.
const QUOTE_LENGTH: usize = 16;

/// How long a loop may make no progress.
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

    let mut context = Context::new()?;
    let _embedded_driver = match &options.aeron_dir {
        Some(dir) => {
            context.set_dir(dir)?;
            None
        }
        None => {
            let driver = MediaDriver::launch_embedded()?;
            context.set_dir(driver.aeron_dir())?;
            Some(driver)
        }
    };
    let aeron = Aeron::connect(context)?;

    let mut publication = aeron.add_exclusive_publication("aeron:ipc", options.stream_id)?;
    // Messages of our own session only: a running driver may have others on the same stream.
    let own = ChannelUri::ipc().session_id(publication.session_id()).build()?;
    let subscription = aeron.add_subscription(&own, options.stream_id)?;
    let mut receiver = Receiver { subscription, received: 0 };

    let mut expected = 0;
    let mut idle = Idle::awaiting("a granted claim");
    for number in 1..=options.messages {
        // The subscriber is on this thread. Without polls in between, it falls behind and claims are rejected.
        idle.idle(receiver.poll()?)?;
        let mut claim = loop {
            match publication.try_claim(QUOTE_LENGTH) {
                Ok(claim) => break claim,
                // No subscriber is connected yet, or the subscriber is behind, or the log was being rotated.
                // Claim again after a poll.
                Err(error) if error.is_retryable() => idle.idle(receiver.poll()?)?,
                Err(error) => return Err(error.into()),
            }
        };
        // The claim is the message's bytes.
        claim[..8].copy_from_slice(&number.to_le_bytes());
        claim[8..].copy_from_slice(&(100 + number).to_le_bytes());
        let checksum = checksum(&claim);
        claim.set_reserved_value(checksum);
        if number % 3 == 0 {
            // As when something goes wrong halfway: `?` would drop the claim, with the same effect.
            claim.abort();
            println!("Quote {number} withdrawn");
        } else {
            // The position is the stream's after the message.
            let position = claim.commit()?;
            expected += 1;
            println!("Quote {number} published, position {position}");
        }
    }

    let length = publication.max_payload_length() + 1;
    match publication.try_claim(length) {
        Err(OfferError::MessageTooLong { max_message_length, .. }) => println!(
            "A claim of {length} bytes is too long, the maximum is {max_message_length}: offered"
        ),
        Err(error) => return Err(error.into()),
        Ok(_) => return Err(format!("a claim of {length} bytes was granted").into()),
    }
    // A message of any length, which is copied.
    let message = vec![b'x'; length];
    let mut idle = Idle::awaiting("an accepted offer");
    while let Err(error) = publication.offer_with_reserved_value(&message, checksum) {
        if !error.is_retryable() {
            return Err(error.into());
        }
        idle.idle(receiver.poll()?)?;
    }
    expected += 1;

    let mut idle = Idle::awaiting("the messages");
    while receiver.received < expected {
        idle.idle(receiver.poll()?)?;
    }
    println!("Done: {} messages received", receiver.received);
    Ok(())
}

/// Receives and prints messages.
struct Receiver {
    subscription: Subscription,
    received: u64,
}

impl Receiver {
    fn poll(&mut self) -> Result<usize, PollError> {
        let mut lines = Vec::new();
        let handler = |message: &[u8], header: &Header<'_>| lines.push(describe(message, header));
        let fragments = self.subscription.poll(handler, 10)?;
        self.received += lines.len() as u64;
        for line in lines {
            println!("{line}");
        }
        Ok(fragments)
    }
}

fn describe(message: &[u8], header: &Header<'_>) -> String {
    // Of a message in several fragments, each has a reserved value; this is the first one's.
    let field = |at: usize| message.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    match (field(0).map(u64::from_le_bytes), field(8).map(u64::from_le_bytes)) {
        (Some(number), Some(price)) if message.len() == QUOTE_LENGTH => {
            let is_intact = header.reserved_value() == checksum(message);
            let verdict = if is_intact { "intact" } else { "damaged" };
            format!("Received quote {number} of {price}, {verdict}")
        }
        _ => format!("Received {} bytes", message.len()),
    }
}

/// Adler's sum, which is short.
fn checksum(bytes: &[u8]) -> i64 {
    const MODULUS: i64 = 65_521;
    let (low, high) = bytes.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + i64::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
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
