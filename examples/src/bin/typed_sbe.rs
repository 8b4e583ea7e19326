//! Encodes messages with codecs that Aeron's SBE tool has generated, for programs in other languages too.
//!
//! `src/market_data/schema.xml` describes the messages. The tool generates codecs for Rust, Java, C, C++ and others
//! from it; `src/market_data/generate` generates those of Rust, which need no library. Fields lie at fixed offsets, and
//! are read and written where they are.

use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy};
use rusteron_examples::market_data::message_header_codec::{self, MessageHeaderDecoder};
use rusteron_examples::market_data::quote_codec::{self, QuoteDecoder, QuoteEncoder};
use rusteron_examples::market_data::side::Side;
use rusteron_examples::market_data::{ReadBuf, SBE_SCHEMA_ID, WriteBuf};
use rusteron_media_driver::MediaDriver;

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const TIMEOUT: Duration = Duration::from_secs(10);

/// The header names the kind of a message. Fields with fixed offsets follow, then texts, each after its length.
const HEADER_LENGTH: usize = message_header_codec::ENCODED_LENGTH;
const BLOCK_LENGTH: usize = quote_codec::SBE_BLOCK_LENGTH as usize;
const TEXT_LENGTH: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;
    let mut publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)?;
    let mut subscription = aeron.add_subscription(CHANNEL, STREAM_ID)?;
    let (deadline, mut idle) = (Instant::now() + TIMEOUT, Backoff::default());
    publication.await_connected(deadline, &mut idle)?;

    let venue = "Zürich";
    let mut claim = loop {
        match publication.try_claim(HEADER_LENGTH + BLOCK_LENGTH + TEXT_LENGTH + venue.len()) {
            Err(error) if error.is_retryable() && Instant::now() < deadline => idle.idle(0),
            result => break result?,
        }
    };
    // The encoder writes into the log buffer. Texts come last, in the order of the schema.
    let quote = QuoteEncoder::default().wrap(WriteBuf::new(&mut claim), HEADER_LENGTH);
    let mut quote = quote.header(0).parent()?;
    quote.number(1).price(101).quantity(5).side(Side::ASK).venue(venue);
    claim.commit()?;

    let handler = |message: &[u8], _: &Header<'_>| match decode(message) {
        Some(text) => println!("Received {text}"),
        None => println!("Received {} bytes, which are no quote", message.len()),
    };
    while subscription.poll(handler, 10)? == 0 {
        idle.idle(0);
    }
    Ok(())
}

/// Returns `None` if the message is no quote. The decoders panic behind the end of a message, so each length is checked
/// first.
fn decode(message: &[u8]) -> Option<String> {
    if message.len() < HEADER_LENGTH {
        return None;
    }
    let header = MessageHeaderDecoder::default().wrap(ReadBuf::new(message), 0);
    let kind = (header.schema_id(), header.template_id());
    // A newer schema may have added fields, and so have a longer block.
    let block_length = usize::from(header.block_length());
    if kind != (SBE_SCHEMA_ID, quote_codec::SBE_TEMPLATE_ID)
        || block_length < BLOCK_LENGTH
        || message.len() < HEADER_LENGTH + block_length + TEXT_LENGTH
    {
        return None;
    }
    let mut quote = QuoteDecoder::default().header(header, 0);
    let (start, length) = quote.venue_decoder();
    let venue = String::from_utf8_lossy(message.get(start..start + length)?);
    let (number, side, price) = (quote.number(), quote.side(), quote.price());
    Some(format!("quote {number}: {side} {} at {price} in {venue}", quote.quantity()))
}
