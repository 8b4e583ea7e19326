//! A handler that decides about the position of its stream, message by message.
//!
//! Shows the four actions of a controlled poll. Everything is published before the first poll. With
//! each message, the program prints the subscriber's position at that moment, as the publisher and
//! other processes can read it:
//! - `Continue`: the position moves when the poll ends;
//! - `Commit`: the position moves now, before the next message of the same poll;
//! - `Abort`: the poll ends, and the same message comes again with the next one;
//! - `Break`: the poll ends after this message.

use std::process::ExitCode;

use clap::Parser;
use rusteron_client::{Action, ChannelUri};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::{Driver, DriverOption, Turns};

/// Shows commit, abort and break of a controlled poll
#[derive(Debug, Parser)]
#[command(name = "controlled_poll", version)]
struct Options {
    #[command(flatten)]
    driver: DriverOption,

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

fn main() -> ExitCode {
    failure::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let driver = Driver::start(&options.driver)?;
    let aeron = driver.connect()?;

    let mut publication = aeron.add_exclusive_publication("aeron:ipc", options.stream_id)?;
    // Messages of our own session only: a running driver may have others on the same stream.
    let own = ChannelUri::ipc().session_id(publication.session_id()).build()?;
    let mut subscription = aeron.add_subscription(&own, options.stream_id)?;

    let mut turns = Turns::awaiting("the connection", &interrupt);
    let position_id = loop {
        // Every process can read this subscriber's position in this counter.
        let image = subscription.image_at_index(0);
        if let Some(id) = image.map(|image| image.subscriber_position_id()) {
            break id;
        }
        turns.idle(0)?;
    };
    for (text, _) in MESSAGES {
        while let Err(error) = publication.offer(text.as_bytes()) {
            if !error.is_retryable() {
                return Err(error.into());
            }
            turns.idle(0)?;
        }
    }

    let counters = aeron.counters_reader();
    let mut has_aborted = false;
    let mut accepted = 0;
    let mut polls = 0;
    let mut lines = Vec::new();
    let mut turns = Turns::awaiting("messages", &interrupt);
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
            output.line(line)?;
        }
        turns.idle(fragments)?;
    }
    output.line(format_args!("Done: {accepted} messages in {polls} polls"))
}
