//! Receives messages from `basic_publisher` or any other Aeron publisher, and prints them.
//!
//! Shows:
//! - connecting to a media driver that runs already, in Rust, C or Java;
//! - adding a subscription with handlers for publishers that come and go;
//! - polling in a loop that idles when there was nothing to do.
//!
//! Start a media driver first. A publisher that begins later is found by itself.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use clap::Parser;
use rusteron_client::{Aeron, Backoff, ChannelUri, Context, IdleStrategy};

/// Receives messages from a channel and stream
#[derive(Debug, Parser)]
#[command(name = "basic_subscriber", version)]
struct Options {
    /// Directory of the running media driver [default: Aeron's default directory]
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Channel to subscribe to
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=127.0.0.1:20121")]
    channel: ChannelUri,

    /// Stream id within the channel
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to receive before the end
    #[arg(long, value_name = "N", default_value_t = 10)]
    messages: usize,
}

/// How many fragments a poll receives at most: few, so that the publisher learns early that it may
/// go on.
const FRAGMENT_LIMIT: usize = 10;

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

    let mut context = Context::new()?;
    if let Some(dir) = &options.aeron_dir {
        context.set_dir(dir)?;
    }
    let aeron = Aeron::connect(context)?;

    // The handlers run on the client's own thread, the conductor, and must not block it. They send a note
    // to this thread. A send fails only when this function has ended, and then the note is not needed.
    let (came, publishers) = mpsc::channel();
    let went = came.clone();
    let mut subscription = aeron
        .subscription_builder(&options.channel, options.stream_id)
        .on_available_image(move |image| {
            let (session, source) = (image.session_id(), image.source_identity());
            let _ = came.send(format!("Publisher {session} from {source} has come"));
        })
        .on_unavailable_image(move |image| {
            let (session, position) = (image.session_id(), image.position());
            let _ = went.send(format!("Publisher {session} has gone at position {position}"));
        })
        .add()?;
    writeln!(out, "Subscribed to {} stream {}", subscription.channel(), subscription.stream_id())?;

    let mut idle = Backoff::default();
    let mut received = 0;
    let mut lines = Vec::new();
    while received < options.messages && RUNNING.load(Ordering::Relaxed) {
        // The message is lent for the call. It is whole, even if it came in several fragments. The handler
        // only makes a note: printing may block, and could fail.
        let handler = |message: &[u8], header: &rusteron_client::Header<'_>| {
            received += 1;
            lines.push(format!(
                "Received \"{}\" from session {}, position {}",
                String::from_utf8_lossy(message),
                header.session_id(),
                header.position()
            ));
        };
        let fragments = subscription.poll(handler, FRAGMENT_LIMIT)?;
        for line in publishers.try_iter().chain(lines.drain(..)) {
            writeln!(out, "{line}")?;
        }
        idle.idle(fragments);
    }
    writeln!(out, "Done: {received} messages received")?;
    Ok(())
}
