//! Encodes Rust values with serde, in the format of the crate `postcard`.
//!
//! Any type that derives `Serialize` and `Deserialize` can be a message: an enumeration with texts, options
//! and lists too. The format is compact, and has neither names nor versions of fields. Sender and receiver
//! need the same types.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{Aeron, Backoff, ChannelUri, Context, Header, IdleStrategy, Subscription};
use rusteron_media_driver::MediaDriver;
use serde::{Deserialize, Serialize};

/// Sends values of an enumeration
#[derive(Debug, Parser)]
#[command(name = "typed_serde", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many orders to publish
    #[arg(long, value_name = "N", default_value_t = 3)]
    messages: u64,
}

/// The messages of the stream. Texts are borrowed from the message, so that decoding allocates nothing.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Event<'a> {
    Order { number: u64, price: Option<i64>, venue: &'a str },
    Closed,
}

/// Longest encoded event in bytes.
const MAX_LENGTH: usize = 1024;

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

    let mut publication = aeron.add_exclusive_publication("aeron:ipc", options.stream_id)?;
    // Messages of our own session only: a running driver may have others on the same stream.
    let own = ChannelUri::ipc().session_id(publication.session_id()).build()?;
    let mut subscription = aeron.add_subscription(&own, options.stream_id)?;

    let orders = (1..=options.messages).map(|number| {
        // An order without a price is filled at any price.
        let price = (number % 2 == 1).then_some(100 + number as i64);
        Event::Order { number, price, venue: "Zürich" }
    });
    let mut buffer = [0; MAX_LENGTH];
    let mut end = 0;
    let mut idle = Idle::awaiting("an accepted offer");
    for event in orders.chain([Event::Closed]) {
        // The length is known after encoding, so the event is encoded here, and copied by the offer.
        let message = postcard::to_slice(&event, &mut buffer)?;
        end = loop {
            match publication.offer(message) {
                Ok(position) => break position,
                Err(error) if error.is_retryable() => idle.idle(poll(&mut subscription)?)?,
                Err(error) => return Err(error.into()),
            }
        };
        idle.idle(poll(&mut subscription)?)?;
    }
    let mut idle = Idle::awaiting("the messages");
    while subscription.image_at_index(0).is_none_or(|image| image.position() < end) {
        idle.idle(poll(&mut subscription)?)?;
    }
    println!("Done");
    Ok(())
}

fn poll(subscription: &mut Subscription) -> Result<usize, Box<dyn Error>> {
    let mut lines = Vec::new();
    let handler = |message: &[u8], _: &Header<'_>| lines.push(describe(message));
    let fragments = subscription.poll(handler, 10)?;
    for line in lines {
        println!("{line}");
    }
    Ok(fragments)
}

fn describe(message: &[u8]) -> String {
    match postcard::from_bytes(message) {
        Ok(Event::Order { number, price: Some(price), venue }) => {
            format!("Received order {number} at {price} for {venue}")
        }
        Ok(Event::Order { number, price: None, venue }) => {
            format!("Received order {number} at any price for {venue}")
        }
        Ok(Event::Closed) => "Received the end".to_owned(),
        // A message may come from a program of another version.
        Err(error) => format!("Received {} bytes, which are no event: {error}", message.len()),
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
