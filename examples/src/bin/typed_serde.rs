//! Encodes Rust values with serde, in the format of the crate `postcard`.
//!
//! Any type that derives `Serialize` and `Deserialize` can be a message: an enumeration with texts, options and lists
//! too. The format is compact, and has neither names nor versions of fields. Sender and receiver need the same types.

use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy};
use rusteron_media_driver::MediaDriver;
use serde::{Deserialize, Serialize};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const TIMEOUT: Duration = Duration::from_secs(10);

/// The messages of the stream. Texts are borrowed from the message, so that decoding allocates nothing.
#[derive(Debug, Serialize, Deserialize)]
enum Event<'a> {
    Order { number: u64, price: Option<i64>, venue: &'a str },
    Closed,
}

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;
    let mut publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)?;
    let mut subscription = aeron.add_subscription(CHANNEL, STREAM_ID)?;

    let events = [
        Event::Order { number: 1, price: Some(101), venue: "Zürich" },
        Event::Order { number: 2, price: None, venue: "Zürich" },
        Event::Closed,
    ];
    let mut buffer = [0; 1024];
    for event in &events {
        // The length is known after encoding. So the event is encoded here, and the offer copies it.
        let message = postcard::to_slice(event, &mut buffer)?;
        publication.offer_until(message, Instant::now() + TIMEOUT)?;
    }

    let mut received = 0;
    let mut idle = Backoff::default();
    while received < events.len() {
        let handler = |message: &[u8], _: &Header<'_>| {
            received += 1;
            match postcard::from_bytes::<Event<'_>>(message) {
                Ok(event) => println!("Received {event:?}"),
                // The sender may be of another version.
                Err(error) => println!("Received {} bytes, no event: {error}", message.len()),
            }
        };
        idle.idle(subscription.poll(handler, 10)?);
    }
    Ok(())
}
