//! One publication that sends to several destinations.
//!
//! The channel has `control-mode=manual` and no endpoint. The program adds and removes destinations, and the driver
//! sends each message to all of them. A later destination gets the messages that are published from then on. With
//! `control-mode=dynamic` and a control address, subscribers would announce themselves instead.

use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy, PollError, Subscription};
use rusteron_media_driver::MediaDriver;

const STREAM_ID: i32 = 1001;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;

    // Port 0 is any free port. A subscriber on another machine would have a fixed one.
    let mut first = aeron.add_subscription("aeron:udp?endpoint=127.0.0.1:0", STREAM_ID)?;
    let mut second = aeron.add_subscription("aeron:udp?endpoint=127.0.0.1:0", STREAM_ID)?;
    let publication = aeron.add_publication("aeron:udp?control-mode=manual", STREAM_ID)?;
    let first_id = publication.add_destination(destination(&first)?)?;
    publication.add_destination(destination(&second)?)?;

    // One subscriber is enough for a publication to be connected, and the other one would miss the first messages.
    for subscription in [&first, &second] {
        subscription.await_connected(Instant::now() + TIMEOUT, &mut Backoff::default())?;
    }
    publication.offer_until(b"to both", Instant::now() + TIMEOUT)?;
    println!("The first received \"{}\"", receive(&mut first)?);
    println!("The second received \"{}\"", receive(&mut second)?);

    publication.remove_destination_by_id(first_id)?;
    publication.offer_until(b"to one", Instant::now() + TIMEOUT)?;
    println!("The second received \"{}\"", receive(&mut second)?);
    println!("The first received {} more", first.poll(|_, _| {}, 10)?);
    Ok(())
}

/// Returns the channel to a subscriber's socket.
fn destination(subscription: &Subscription) -> Result<String, Box<dyn Error>> {
    // `None` until the driver has opened the socket.
    let mut idle = Backoff::default();
    loop {
        if let Some(endpoint) = subscription.resolved_endpoint()? {
            return Ok(format!("aeron:udp?endpoint={endpoint}"));
        }
        idle.idle(0);
    }
}

/// Waits for the next message.
fn receive(subscription: &mut Subscription) -> Result<String, PollError> {
    let mut text = String::new();
    let mut idle = Backoff::default();
    while text.is_empty() {
        let handler =
            |message: &[u8], _: &Header<'_>| text = String::from_utf8_lossy(message).into_owned();
        idle.idle(subscription.poll(handler, 1)?);
    }
    Ok(text)
}
