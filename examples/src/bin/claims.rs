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
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use rusteron_client::{
    Aeron, Backoff, ChannelUri, Context, ExclusivePublication, Header, IdleStrategy, OfferError,
    Position,
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

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
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
    let mut subscription = aeron.add_subscription(&own, options.stream_id)?;

    let mut backoff = Backoff::default();
    let mut expected = 0;
    for number in 1..=options.messages {
        let mut claim = loop {
            match publication.try_claim(QUOTE_LENGTH) {
                Ok(claim) => break claim,
                // No subscriber is connected yet, or subscribers are slower than this program, or the log was
                // being rotated. Claim again after a pause.
                Err(error) if error.is_retryable() => idle(&mut backoff, 0)?,
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
    offer(&mut publication, &vec![b'x'; length], &mut backoff)?;
    expected += 1;

    let mut received = 0;
    let mut lines = Vec::new();
    while received < expected {
        let handler = |message: &[u8], header: &Header<'_>| {
            received += 1;
            lines.push(describe(message, header));
        };
        let fragments = subscription.poll(handler, 10)?;
        for line in lines.drain(..) {
            println!("{line}");
        }
        idle(&mut backoff, fragments)?;
    }
    println!("Done: {received} messages received");
    Ok(())
}

/// Publishes a message of any length, which is copied.
fn offer(
    publication: &mut ExclusivePublication,
    message: &[u8],
    backoff: &mut Backoff,
) -> Result<Position, Box<dyn Error>> {
    loop {
        match publication.offer_with_reserved_value(message, checksum) {
            Ok(position) => return Ok(position),
            Err(error) if error.is_retryable() => idle(backoff, 0)?,
            Err(error) => return Err(error.into()),
        }
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

/// Idles if there was no work. An error ends the program after Ctrl-C.
fn idle(backoff: &mut Backoff, work_count: usize) -> Result<(), Box<dyn Error>> {
    if !RUNNING.load(Ordering::Relaxed) {
        return Err("interrupted".into());
    }
    backoff.idle(work_count);
    Ok(())
}
