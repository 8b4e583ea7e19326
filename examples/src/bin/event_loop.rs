//! Adding publications and subscriptions without waiting for the media driver.
//!
//! The functions `async_add_…` return a `Registration`. It can be polled, by a loop that does other work meanwhile, or
//! awaited, as it is a future for any runtime.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::task::{self, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, IdleStrategy, Publication, Result, Subscription};
use rusteron_media_driver::MediaDriver;

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;

    // Polled. Both requests are on their way to the driver when the loop begins.
    let mut adding_publication = aeron.async_add_publication(CHANNEL, STREAM_ID)?;
    let mut adding_subscription = aeron.async_add_subscription(CHANNEL, STREAM_ID)?;
    let (mut publication, mut subscription) = (None, None);
    let mut idle = Backoff::default();
    while publication.is_none() || subscription.is_none() {
        // The outcome is returned once. The loop does whatever else the program is for.
        if publication.is_none() {
            publication = adding_publication.poll()?;
        }
        if subscription.is_none() {
            subscription = adding_subscription.poll()?;
        }
        idle.idle(0);
    }
    println!("Polled: added both");
    drop((publication, subscription));

    // Awaited, one after the other. A runtime's `join` would await both at the same time.
    let (publication, mut subscription) = block_on(add_both(&aeron))?;
    println!("Awaited: added both");
    publication.offer_until(b"hello", Instant::now() + TIMEOUT)?;
    while subscription.poll(|message, _| println!("Received {} bytes", message.len()), 10)? == 0 {
        idle.idle(0);
    }
    Ok(())
}

async fn add_both(aeron: &Aeron) -> Result<(Publication, Subscription)> {
    let publication = aeron.async_add_publication(CHANNEL, STREAM_ID)?.await?;
    let subscription = aeron.async_add_subscription(CHANNEL, STREAM_ID)?.await?;
    Ok((publication, subscription))
}

/// The smallest runtime: runs a future on this thread, which sleeps until the future can go on.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut task::Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
