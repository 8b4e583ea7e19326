//! A handler that decides about the position of its stream, message by message.
//!
//! The subscriber's position is where the next poll begins. The publisher and other processes can read it. With each
//! message, this program prints the position at that moment.

use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_client::{Action, Aeron, Backoff, Context, Header, IdleStrategy};
use rusteron_media_driver::MediaDriver;

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Each message names the action that answers it.
const MESSAGES: [(&str, Action); 6] = [
    // The position moves when the poll ends.
    ("first", Action::Continue),
    ("second", Action::Continue),
    // The position moves now, before the next message of the same poll.
    ("to be committed", Action::Commit),
    // The poll ends, and the same message comes again with the next poll.
    ("to be aborted once", Action::Abort),
    // The poll ends after this message.
    ("to be broken after", Action::Break),
    ("last", Action::Continue),
];

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;
    let mut publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)?;
    let mut subscription = aeron.add_subscription(CHANNEL, STREAM_ID)?;
    for (text, _) in MESSAGES {
        publication.offer_until(text.as_bytes(), Instant::now() + TIMEOUT)?;
    }

    // An accepted offer does not mean that this client has heard of the image. The image's position is a counter.
    subscription.await_connected(Instant::now() + TIMEOUT, &mut Backoff::default())?;
    let image = subscription.image_at_index(0).ok_or("no image")?;
    let position_id = image.subscriber_position_id();
    let counters = aeron.counters_reader();
    let position = || counters.value(position_id).unwrap_or(0);

    let (mut next, mut has_aborted) = (0, false);
    let mut idle = Backoff::default();
    while next < MESSAGES.len() {
        let handler = |message: &[u8], _: &Header<'_>| {
            let mut action = MESSAGES[next].1;
            if action == Action::Abort && has_aborted {
                // A handler that always aborts receives the same message for ever.
                action = Action::Continue;
            }
            let text = String::from_utf8_lossy(message);
            println!("Position {:3}: \"{text}\" -> {action:?}", position());
            if action == Action::Abort {
                has_aborted = true;
            } else {
                next += 1;
            }
            action
        };
        let fragments = subscription.controlled_poll(handler, 10)?;
        if fragments > 0 {
            println!("Poll of {fragments} messages ends at position {}", position());
        }
        idle.idle(fragments);
    }
    Ok(())
}
