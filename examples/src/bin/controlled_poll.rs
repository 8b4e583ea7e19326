//! A handler that decides about the position of its stream, message by message.
//!
//! Shows the four actions of a controlled poll. Everything is published before the first poll. With
//! each message, the program prints the subscriber's position at that moment, as the publisher and
//! other processes can read it:
//! - `Continue`: the position moves when the poll ends;
//! - `Commit`: the position moves now, before the next message of the same poll;
//! - `Abort`: the poll ends, and the same message comes again with the next one;
//! - `Break`: the poll ends after this message.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{Action, Aeron, Backoff, ChannelUri, Context, IdleStrategy};
use rusteron_media_driver::MediaDriver;

/// Shows commit, abort and break of a controlled poll
#[derive(Debug, Parser)]
#[command(name = "controlled_poll", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,
}

/// Each message names the action to answer it with.
const MESSAGES: [(&str, Action); 6] = [
    ("first", Action::Continue),
    ("second", Action::Continue),
    ("to be committed", Action::Commit),
    ("to be aborted once", Action::Abort),
    ("to be broken after", Action::Break),
    ("last", Action::Continue),
];

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

    let mut idle = Idle::awaiting("the image");
    let position_id = loop {
        // Every process can read this subscriber's position in this counter.
        let image = subscription.image_at_index(0);
        if let Some(id) = image.map(|image| image.subscriber_position_id()) {
            break id;
        }
        idle.idle(0)?;
    };
    let deadline = Instant::now() + DEADLINE;
    for (text, _) in MESSAGES {
        publication.offer_deadline(text.as_bytes(), deadline, &mut Backoff::default())?;
    }

    let counters = aeron.counters_reader();
    let mut has_aborted = false;
    let mut accepted = 0;
    let mut polls = 0;
    let mut lines = Vec::new();
    let mut idle = Idle::awaiting("the messages");
    while accepted < MESSAGES.len() {
        polls += 1;
        let handler = |message: &[u8], _: &rusteron_client::Header<'_>| {
            let action = MESSAGES
                .iter()
                .find(|(text, _)| text.as_bytes() == message)
                .map_or(Action::Continue, |(_, action)| *action);
            // A handler that always aborts receives the same message for ever.
            let action = match action {
                Action::Abort if has_aborted => Action::Continue,
                action => action,
            };
            if action == Action::Abort {
                has_aborted = true
            } else {
                accepted += 1
            }
            lines.push(format!(
                "Poll {polls}, position {:4}: \"{}\" -> {action:?}",
                counters.value(position_id).unwrap_or(0),
                String::from_utf8_lossy(message)
            ));
            action
        };
        // The returned number does not count an aborted message.
        let fragments = subscription.controlled_poll(handler, 10)?;
        if !lines.is_empty() {
            let position = counters.value(position_id).unwrap_or(0);
            lines.push(format!("Poll {polls} took {fragments} messages; position {position}"));
        }
        for line in lines.drain(..) {
            println!("{line}");
        }
        idle.idle(fragments)?;
    }
    println!("Done: {accepted} messages in {polls} polls");
    Ok(())
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
