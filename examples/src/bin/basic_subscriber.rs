//! Prints the messages of `basic_publisher` or any other Aeron publisher, until Ctrl-C.
//!
//! Start a media driver first, such as `cargo run --bin media_driver`. The environment variable `AERON_DIR` names its
//! directory, unless that is Aeron's default. Publishers may start before or after this program.

use std::error::Error;

use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy};

/// Between machines, `aeron:udp?endpoint=HOST:PORT` with this machine's host.
const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
/// How many fragments a poll receives at most. Publishers learn after each poll that they may go on.
const FRAGMENT_LIMIT: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::on_interrupt()?;
    let aeron = Aeron::connect(Context::new()?)?;
    let mut subscription = aeron
        .subscription_builder(CHANNEL, STREAM_ID)
        // These handlers run on the client's own thread, the conductor, and must not hold it up.
        .on_available_image(|image| {
            println!("Publisher {} has come from {}", image.session_id(), image.source_identity());
        })
        .on_unavailable_image(|image| {
            println!("Publisher {} has gone at {}", image.session_id(), image.position());
        })
        .add()?;
    println!("Subscribed to {CHANNEL} stream {STREAM_ID}");

    // The message is lent for the call. It is whole, even if it came in several fragments.
    let print = |message: &[u8], header: &Header<'_>| {
        let (text, session) = (String::from_utf8_lossy(message), header.session_id());
        println!("Received \"{text}\" from session {session}, position {}", header.position());
    };
    let mut idle = Backoff::default();
    while !shutdown.is_signalled() {
        let fragments = subscription.poll(print, FRAGMENT_LIMIT)?;
        // Spins, yields and then sleeps, as long as there is nothing to receive.
        idle.idle(fragments);
    }
    Ok(())
}
