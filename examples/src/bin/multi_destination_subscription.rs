//! One subscription that receives from several sources.
//!
//! The channel has `control-mode=manual` and no endpoint. The program adds and removes destinations, which are
//! addresses to listen on. Two publishers send to two of them, and their messages arrive in one subscription, each in
//! an image of its own.

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy};
use rusteron_media_driver::MediaDriver;

const STREAM_ID: i32 = 1001;
const SOURCES: usize = 2;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;

    let mut subscription = aeron.add_subscription("aeron:udp?control-mode=manual", STREAM_ID)?;
    let mut publications = Vec::new();
    for _ in 0..SOURCES {
        // Any free port. Publishers on other machines need a fixed one.
        let address = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
        // The subscription listens there, and the publication sends to it.
        let channel = format!("aeron:udp?endpoint={address}");
        subscription.add_destination(&channel)?;
        publications.push(aeron.add_exclusive_publication(&channel, STREAM_ID)?);
    }
    for publication in &mut publications {
        let message = format!("to {}", publication.channel());
        publication.offer_until(message.as_bytes(), Instant::now() + TIMEOUT)?;
    }

    let mut received = 0;
    let mut idle = Backoff::default();
    while received < SOURCES {
        let handler = |message: &[u8], header: &Header<'_>| {
            received += 1;
            let (text, session) = (String::from_utf8_lossy(message), header.session_id());
            println!("Received \"{text}\" from session {session}");
        };
        idle.idle(subscription.poll(handler, 10)?);
    }

    // A source can go while others stay.
    subscription.remove_destination(publications[0].channel())?;
    while subscription.local_addresses()?.len() == SOURCES {
        idle.idle(0); // The driver closes the socket on its own.
    }
    println!("Still listening on {:?}", subscription.local_addresses()?);
    Ok(())
}
