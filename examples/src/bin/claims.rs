//! Writes messages into the log buffer itself.
//!
//! A claim is a range of the log buffer that no subscriber reads yet. The program writes its message there, without a
//! buffer of its own and without a copy. Then `commit` publishes the message. `abort`, or dropping the claim, makes
//! padding of the range, which subscribers skip.

use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy, OfferError};
use rusteron_media_driver::MediaDriver;

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
/// A number and a price, 8 bytes each.
const QUOTE_LENGTH: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;
    let mut publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)?;
    let mut subscription = aeron.add_subscription(CHANNEL, STREAM_ID)?;
    let (deadline, mut idle) = (Instant::now() + TIMEOUT, Backoff::default());
    publication.await_connected(deadline, &mut idle)?;

    for number in 1..=4_u64 {
        // Under back pressure, try again as after an offer. The first claim also meets it, until the driver has moved
        // the publication's limit.
        let mut claim = loop {
            match publication.try_claim(QUOTE_LENGTH) {
                Err(error) if error.is_retryable() && Instant::now() < deadline => idle.idle(0),
                result => break result?,
            }
        };
        claim[..8].copy_from_slice(&number.to_le_bytes());
        claim[8..].copy_from_slice(&(100 + number).to_le_bytes());
        // 8 bytes of the message's header belong to the application, for a checksum or a time.
        claim.set_reserved_value(-1);
        if number == 3 {
            claim.abort();
            println!("Quote {number} withdrawn");
        } else {
            println!("Quote {number} published, position {}", claim.commit()?);
        }
    }

    // A claim holds one fragment at the most. Longer messages are offered, which copies them.
    let length = publication.max_payload_length() + 1;
    if let Err(error @ OfferError::MessageTooLong { .. }) = publication.try_claim(length) {
        println!("No claim: {error}");
    }
    publication.offer_until(&vec![b'x'; length], Instant::now() + TIMEOUT)?;

    let mut received = 0;
    while received < 4 {
        let handler = |message: &[u8], header: &Header<'_>| {
            received += 1;
            if message.len() == QUOTE_LENGTH {
                let number = u64::from_le_bytes(*message.first_chunk().expect("8 bytes"));
                println!("Received quote {number}, reserved value {}", header.reserved_value());
            } else {
                println!("Received {} bytes", message.len());
            }
        };
        idle.idle(subscription.poll(handler, 10)?);
    }
    Ok(())
}
