//! Publishes ten messages, for `basic_subscriber` or any other Aeron subscriber.
//!
//! Start a media driver first, such as `cargo run --bin media_driver`. The environment variable `AERON_DIR` names its
//! directory, unless that is Aeron's default.

use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Context};

/// Between machines, `aeron:udp?endpoint=HOST:PORT` with the subscriber's host.
const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const MESSAGES: u64 = 10;
/// How long a message may wait for a subscriber.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    // A context has Aeron's defaults, changed by the variables `AERON_…` of the environment.
    let aeron = Aeron::connect(Context::new()?)?;
    let publication = aeron.add_publication(CHANNEL, STREAM_ID)?;
    println!("Publishing on {CHANNEL} stream {STREAM_ID}, session {}", publication.session_id());

    for number in 1..=MESSAGES {
        let message = format!("Hello {number}");
        // `offer` returns at once, and rejects the message while no subscriber is connected or subscribers are slow.
        // `offer_until` offers the message again until it is accepted.
        let position = publication.offer_until(message.as_bytes(), Instant::now() + TIMEOUT)?;
        println!("Published \"{message}\", position {position}");
    }
    // The messages are in the log buffer. The driver sends them even after the publication is dropped.
    println!("Done: {MESSAGES} messages published");
    Ok(())
}
