//! Publishes a number of messages, for `basic_subscriber` or any other Aeron subscriber to receive.
//!
//! Shows:
//! - connecting to a media driver that runs already, in Rust, C or Java;
//! - adding a publication, which waits for the driver but not for a subscriber;
//! - offering messages, and handling a message that is rejected.
//!
//! Start a media driver first, and `basic_subscriber` before or after this.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use rusteron_client::{Aeron, Backoff, ChannelUri, Context, IdleStrategy};

/// Publishes messages on a channel and stream
#[derive(Debug, Parser)]
#[command(name = "basic_publisher", version)]
struct Options {
    /// Directory of the running media driver [default: Aeron's default directory]
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Channel to publish on
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=127.0.0.1:20121")]
    channel: ChannelUri,

    /// Stream id within the channel
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to publish
    #[arg(long, value_name = "N", default_value_t = 10)]
    messages: u64,
}

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            // The reader has closed the output, as in `… | head`.
            Some(io::ErrorKind::BrokenPipe) => ExitCode::SUCCESS,
            _ => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;
    let mut out = io::stdout();

    // A context begins with Aeron's defaults and the variables `AERON_…` of the environment.
    let mut context = Context::new()?;
    if let Some(dir) = &options.aeron_dir {
        context.set_dir(dir)?;
    }
    let aeron = Aeron::connect(context)?;
    let publication = aeron.add_publication(&options.channel, options.stream_id)?;
    writeln!(
        out,
        "Publishing on {} stream {}, session {}",
        publication.channel(),
        publication.stream_id(),
        publication.session_id()
    )?;

    let mut idle = Backoff::default();
    for number in 1..=options.messages {
        let message = format!("Hello {number}");
        let position = loop {
            if !RUNNING.load(Ordering::Relaxed) {
                return Ok(());
            }
            match publication.offer(message.as_bytes()) {
                // The message is in the log buffer; the position is the stream's after it.
                Ok(position) => break position,
                // No subscriber is connected yet, or subscribers are slower than this program, or
                // the log was being rotated. Offer the same message again after a pause.
                Err(error) if error.is_retryable() => idle.idle(0),
                // The publication is closed, or the message too long.
                Err(error) => return Err(error.into()),
            }
        };
        idle.reset();
        writeln!(out, "Published \"{message}\", position {position}")?;
    }
    // The driver sends the remaining messages even after the publication is dropped.
    writeln!(out, "Done: {} messages published", options.messages)?;
    Ok(())
}
