//! Encodes messages with codecs that Aeron's SBE tool has generated, for programs in other languages too.
//!
//! `examples/market_data/schema.xml` describes the messages. The tool generates codecs for Rust, Java, C, C++
//! and others from it; `just sbe-codecs` generates those of Rust, which need no library. Fields lie at fixed
//! offsets, and are read and written where they are.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use market_data::quote_codec::{self, QuoteDecoder, QuoteEncoder};
use market_data::side::Side;
use market_data::{ReadBuf, SBE_SCHEMA_ID, WriteBuf, message_header_codec};
use rusteron_client::{Aeron, Backoff, ChannelUri, Context, Header, IdleStrategy, Subscription};
use rusteron_media_driver::MediaDriver;

/// Sends messages of an SBE schema
#[derive(Debug, Parser)]
#[command(name = "typed_sbe", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many quotes to publish
    #[arg(long, value_name = "N", default_value_t = 3)]
    messages: u64,
}

/// The header that names the kind of a message.
const HEADER_LENGTH: usize = message_header_codec::ENCODED_LENGTH;
/// The fields with fixed offsets.
const BLOCK_LENGTH: usize = quote_codec::SBE_BLOCK_LENGTH as usize;
/// The length of a text, before the text.
const TEXT_LENGTH: usize = 2;

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
    let mut subscription = aeron.add_subscription(&own, options.stream_id)?;

    let mut end = 0;
    let mut idle = Idle::awaiting("a granted claim");
    for number in 1..=options.messages {
        let venue = "Zürich";
        let mut claim = loop {
            let length = HEADER_LENGTH + BLOCK_LENGTH + TEXT_LENGTH + venue.len();
            match publication.try_claim(length) {
                Ok(claim) => break claim,
                Err(error) if error.is_retryable() => idle.idle(poll(&mut subscription)?)?,
                Err(error) => return Err(error.into()),
            }
        };
        // The encoder writes into the log buffer. Texts come last, in the order of the schema.
        let quote = QuoteEncoder::default().wrap(WriteBuf::new(&mut claim), HEADER_LENGTH);
        let mut quote = quote.header(0).parent()?;
        quote.number(number).price(100 + number as i64).quantity(5).side(Side::ASK).venue(venue);
        end = claim.commit()?;
        idle.idle(poll(&mut subscription)?)?;
    }
    let mut idle = Idle::awaiting("the messages");
    while subscription.image_at_index(0).is_none_or(|image| image.position() < end) {
        idle.idle(poll(&mut subscription)?)?;
    }
    println!("Done");
    Ok(())
}

fn poll(subscription: &mut Subscription) -> Result<usize, Box<dyn Error>> {
    let mut lines = Vec::new();
    let handler = |message: &[u8], _: &Header<'_>| lines.push(describe(message));
    let fragments = subscription.poll(handler, 10)?;
    for line in lines {
        println!("{line}");
    }
    Ok(fragments)
}

fn describe(message: &[u8]) -> String {
    decode(message)
        .unwrap_or_else(|| format!("Received {} bytes, which are no quote", message.len()))
}

/// `None` if the message is no quote. The decoders panic at the end of a message, so each length is checked
/// first.
fn decode(message: &[u8]) -> Option<String> {
    let buffer = ReadBuf::new(message);
    if message.len() < HEADER_LENGTH {
        return None;
    }
    let header = message_header_codec::MessageHeaderDecoder::default().wrap(buffer, 0);
    let kind = (header.schema_id(), header.template_id());
    // A newer schema may have added fields, and so have a longer block.
    let block_length = usize::from(header.block_length());
    let texts = HEADER_LENGTH + block_length;
    if kind != (SBE_SCHEMA_ID, quote_codec::SBE_TEMPLATE_ID)
        || block_length < BLOCK_LENGTH
        || message.len() < texts + TEXT_LENGTH
    {
        return None;
    }
    let mut quote = QuoteDecoder::default().header(header, 0);
    let (start, length) = quote.venue_decoder();
    let venue = String::from_utf8_lossy(message.get(start..start + length)?);
    let (number, quantity, price) = (quote.number(), quote.quantity(), quote.price());
    Some(format!("Received quote {number}: {quantity} at {price}, {} of {venue}", quote.side()))
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
