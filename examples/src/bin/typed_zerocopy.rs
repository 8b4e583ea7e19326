//! Writes Rust structures into the log buffer, and reads them in place, with the crate `zerocopy`.
//!
//! Claims and messages start at multiples of 32 bytes in memory. Therefore a structure with numbers of 8 bytes can lie
//! in them as it is. `zerocopy` checks alignment and length, and needs no `unsafe` here. The numbers are in the byte
//! order of this machine. Types such as `zerocopy::little_endian::U64` serve machines of different byte orders.

use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy};
use rusteron_media_driver::MediaDriver;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Quote {
    number: u64,
    price: i64,
    quantity: u32,
    /// `IntoBytes` refuses structures with gaps, so the gap has a name.
    _padding: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;
    let mut publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)?;
    let mut subscription = aeron.add_subscription(CHANNEL, STREAM_ID)?;
    let (deadline, mut idle) = (Instant::now() + TIMEOUT, Backoff::default());
    publication.await_connected(deadline, &mut idle)?;

    let mut claim = loop {
        match publication.try_claim(size_of::<Quote>()) {
            Err(error) if error.is_retryable() && Instant::now() < deadline => idle.idle(0),
            result => break result?,
        }
    };
    // A view of the claim: the fields are written into the log buffer, and not copied there.
    let quote = Quote::mut_from_bytes(&mut claim).map_err(|error| error.to_string())?;
    *quote = Quote { number: 1, price: 101, quantity: 5, _padding: 0 };
    claim.commit()?;

    // More quotes than a fragment holds. The subscription assembles the message in aligned memory.
    let book = [Quote { number: 2, price: 102, quantity: 1, _padding: 0 }; 1000];
    publication.offer_until(book.as_bytes(), Instant::now() + TIMEOUT)?;

    let mut received = 0;
    while received < 2 {
        // A view of the message, which lies in the log buffer or in the subscription's memory.
        let handler = |message: &[u8], _: &Header<'_>| {
            received += 1;
            match <[Quote]>::ref_from_bytes(message) {
                Ok([quote]) => println!("Received quote {} at {}", quote.number, quote.price),
                Ok(quotes) => println!("Received a book of {} quotes", quotes.len()),
                // The sender may be of another version.
                Err(_) => println!("Received {} bytes, which are no quotes", message.len()),
            }
        };
        idle.idle(subscription.poll(handler, 10)?);
    }
    Ok(())
}
