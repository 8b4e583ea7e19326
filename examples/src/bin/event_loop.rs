//! Adding publications and subscriptions without waiting for the media driver.
//!
//! Shows the two ways to use a `Registration`, which the functions `async_add_…` return:
//! - polled: in each iteration, the program's own loop looks whether the driver has answered, and does
//!   its other work meanwhile;
//! - awaited: a `Registration` is a future, for any runtime. The executor here is the smallest
//!   there is.

use std::error::Error;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{self, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{
    Aeron, Backoff, Context, IdleStrategy, Publication, Registration, Resource, Subscription,
};
use rusteron_media_driver::MediaDriver;

/// Adds a publication and a subscription from an event loop, and by futures
#[derive(Debug, Parser)]
#[command(name = "event_loop", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id of the first part, over IPC; the second part uses the next one
    #[arg(long, value_name = "ID", default_value_t = 1001,
          value_parser = clap::value_parser!(i32).range(0..i64::from(i32::MAX)))]
    stream_id: i32,

    /// How many messages to send in each part
    #[arg(long, value_name = "N", default_value_t = 5)]
    messages: usize,
}

/// Something that is being added, and then is there.
enum Stage<R: Resource> {
    Adding(Registration<R>),
    Added(R),
}

impl<R: Resource> Stage<R> {
    /// The resource, if the driver has confirmed it. Never waits.
    fn advance(&mut self) -> Result<Option<&mut R>, Box<dyn Error>> {
        if let Self::Adding(registration) = self {
            // The outcome is returned once: the caller has to retain it.
            match registration.poll()? {
                Some(resource) => *self = Self::Added(resource),
                None => return Ok(None),
            }
        }
        Ok(match self {
            Self::Adding(_) => None,
            Self::Added(resource) => Some(resource),
        })
    }
}

/// Wakes the thread that runs a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, which sleeps until the future can go on.
///
/// That it ends is up to the future: a registration fails after the driver timeout at the latest.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = task::Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// How long a loop may make no progress.
const DEADLINE: Duration = Duration::from_secs(60);

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Interrupted: the error is only the way out of a loop.
        Err(_) if !RUNNING.load(Ordering::Relaxed) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;

    let mut context = Context::new()?;
    let _embedded_driver = match &options.aeron_dir {
        Some(dir) => {
            context.set_dir(dir)?;
            None
        }
        None => {
            let driver = MediaDriver::launch_embedded()?;
            context.set_dir(driver.aeron_dir())?;
            Some(driver)
        }
    };
    let aeron = Aeron::connect(context)?;

    // Polled. Both requests are on their way to the driver when the loop begins.
    let stream_id = options.stream_id;
    let mut publication = Stage::Adding(aeron.async_add_publication("aeron:ipc", stream_id)?);
    let mut subscription = Stage::Adding(aeron.async_add_subscription("aeron:ipc", stream_id)?);
    let mut idle = Idle::awaiting("the driver or the messages");
    let (mut sent, mut received, mut spare) = (0, 0, 0_u64);
    while received < options.messages {
        let mut work_count = 0;
        if let Some(publication) = publication.advance()? {
            work_count += send(publication, &mut sent, options.messages)?;
        }
        if let Some(subscription) = subscription.advance()? {
            work_count += subscription.poll(|_, _| received += 1, 10)?;
        }
        // Here the loop would do whatever else the program is for.
        spare += u64::from(work_count == 0);
        idle.idle(work_count)?;
    }
    println!("Polled: {received} messages, {spare} iterations for other work");

    // Awaited, one after the other; a runtime's `join` would do both at the same time.
    let (publication, mut subscription) = block_on(add_both(&aeron, stream_id + 1))?;
    let (mut sent, mut received) = (0, 0);
    let mut idle = Idle::awaiting("the messages");
    while received < options.messages {
        let work_count = send(&publication, &mut sent, options.messages)?
            + subscription.poll(|_, _| received += 1, 10)?;
        idle.idle(work_count)?;
    }
    println!("Awaited: {received} messages");
    println!("Done");
    Ok(())
}

async fn add_both(
    aeron: &Aeron,
    stream_id: i32,
) -> rusteron_client::Result<(Publication, Subscription)> {
    let publication = aeron.async_add_publication("aeron:ipc", stream_id)?.await?;
    let subscription = aeron.async_add_subscription("aeron:ipc", stream_id)?.await?;
    Ok((publication, subscription))
}

/// Offers the next message if there is one to send; returns how many were accepted.
fn send(
    publication: &Publication,
    sent: &mut usize,
    messages: usize,
) -> Result<usize, Box<dyn Error>> {
    if *sent == messages {
        return Ok(0);
    }
    match publication.offer(b"hello") {
        Ok(_) => {
            *sent += 1;
            Ok(1)
        }
        Err(error) if error.is_retryable() => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Idles in a loop that waits for something.
struct Idle {
    awaited: &'static str,
    backoff: Backoff,
    deadline: Instant,
}

impl Idle {
    fn awaiting(awaited: &'static str) -> Self {
        Self { awaited, backoff: Backoff::default(), deadline: Instant::now() + DEADLINE }
    }

    /// Idles if there was no work. Returns an error after Ctrl-C, or after `DEADLINE` without work.
    fn idle(&mut self, work_count: usize) -> Result<(), Box<dyn Error>> {
        if !RUNNING.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        if work_count > 0 {
            self.deadline = Instant::now() + DEADLINE;
        } else if Instant::now() > self.deadline {
            return Err(format!("no progress for {DEADLINE:?}, awaiting {}", self.awaited).into());
        }
        self.backoff.idle(work_count);
        Ok(())
    }
}
