//! Writes Rust structures into the log buffer, and reads them in place, with the crate `zerocopy`.
//!
//! A claim and a message start at a multiple of 32 bytes in memory. Therefore a structure with numbers of
//! 8 bytes can lie in them as it is. `zerocopy` checks alignment and length, and needs no `unsafe` here.
//!
//! The numbers are in the byte order of this machine. Types such as `zerocopy::little_endian::U64` serve
//! machines of different byte orders.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{Aeron, Backoff, ChannelUri, Context, Header, IdleStrategy, Subscription};
use rusteron_media_driver::MediaDriver;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Sends structures without encoding them
#[derive(Debug, Parser)]
#[command(name = "typed_zerocopy", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many quotes to publish
    #[arg(long, value_name = "N", default_value_t = 3)]
    messages: u64,
}

/// One message has one quote. A longer message has many.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Quote {
    number: u64,
    price: i64,
    quantity: u32,
    /// `IntoBytes` refuses structures with gaps, so the gap has a name.
    _padding: u32,
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

    let mut publication = aeron.add_exclusive_publication("aeron:ipc", options.stream_id)?;
    // Messages of our own session only: a running driver may have others on the same stream.
    let own = ChannelUri::ipc().session_id(publication.session_id()).build()?;
    let mut subscription = aeron.add_subscription(&own, options.stream_id)?;

    let mut idle = Idle::awaiting("a granted claim");
    for number in 1..=options.messages {
        let mut claim = loop {
            match publication.try_claim(size_of::<Quote>()) {
                Ok(claim) => break claim,
                Err(error) if error.is_retryable() => idle.idle(poll(&mut subscription)?)?,
                Err(error) => return Err(error.into()),
            }
        };
        // A view of the claim. The fields are written into the log buffer, and not copied there.
        let quote = Quote::mut_from_bytes(&mut claim).map_err(|error| error.to_string())?;
        *quote = Quote { number, price: 100 + number as i64, quantity: 5, _padding: 0 };
        claim.commit()?;
        idle.idle(poll(&mut subscription)?)?;
    }

    // More quotes than a fragment holds. The subscription assembles the message in aligned memory.
    let book: Vec<_> =
        (0..1_000).map(|number| Quote { number, price: -1, quantity: 1, _padding: 0 }).collect();
    let mut idle = Idle::awaiting("an accepted offer");
    let end = loop {
        match publication.offer(book.as_bytes()) {
            Ok(position) => break position,
            Err(error) if error.is_retryable() => idle.idle(poll(&mut subscription)?)?,
            Err(error) => return Err(error.into()),
        }
    };
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
    // A view of the message, which lies in the log buffer or in the subscription's memory.
    match <[Quote]>::ref_from_bytes(message) {
        Ok([quote]) => {
            format!("Received quote {}: {} at {}", quote.number, quote.quantity, quote.price)
        }
        Ok(quotes) => format!("Received a book of {} quotes", quotes.len()),
        // A message may come from a program of another version.
        Err(_) => format!("Received {} bytes, which are no quotes", message.len()),
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
