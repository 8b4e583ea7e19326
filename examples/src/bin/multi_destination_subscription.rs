//! One subscription that receives from several places.
//!
//! Shows a multi-destination subscription: its channel has `control-mode=manual` and no endpoint,
//! and it is told by `add_destination` and `remove_destination` where to listen. Two publishers send
//! to two ports of 127.0.0.1, and their messages arrive in one subscription, an image for each.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use rusteron_client::{ChannelUri, ControlMode};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::{self, Driver, DriverOption, Turns};

/// Receives from two UDP sources with one subscription
#[derive(Debug, Parser)]
#[command(name = "multi_destination_subscription", version)]
struct Options {
    #[command(flatten)]
    driver: DriverOption,

    /// Stream id within all channels
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages each source sends
    #[arg(long, value_name = "N", default_value_t = 5)]
    messages: usize,
}

fn main() -> ExitCode {
    failure::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let driver = Driver::start(&options.driver)?;
    let aeron = driver.connect()?;

    let channel = ChannelUri::udp().control_mode(ControlMode::Manual).build()?;
    let mut subscription = aeron.add_subscription(&channel, options.stream_id)?;
    // Publisher and destination are told the same endpoint: one sends to it, one listens there.
    let mut channels = Vec::new();
    for endpoint in sample::free_endpoints::<2>()? {
        let channel = ChannelUri::udp().endpoint(endpoint).build()?;
        subscription.add_destination(&channel)?;
        channels.push(channel);
    }
    // Each with how many messages it has sent.
    let mut sources = Vec::new();
    for channel in &channels {
        sources.push((aeron.add_exclusive_publication(channel, options.stream_id)?, 0));
    }
    // The driver opens the sockets on its own; then they have addresses.
    let mut turns = Turns::awaiting("the sockets", &interrupt);
    let addresses = loop {
        let addresses = subscription.local_addresses()?;
        if addresses.len() == sources.len() {
            break addresses;
        }
        turns.idle(0)?;
    };
    output.line(format_args!("Listening on {}", joined(&addresses)))?;

    let mut turns = Turns::awaiting("messages", &interrupt);
    let mut received = 0;
    let mut lines = Vec::new();
    while received < sources.len().saturating_mul(options.messages) {
        let mut work_count = 0;
        for (publication, sent) in &mut sources {
            if *sent == options.messages {
                continue;
            }
            let message = format!("Message {} to {}", *sent + 1, publication.channel());
            match publication.offer(message.as_bytes()) {
                Ok(_) => {
                    *sent += 1;
                    work_count += 1;
                }
                // Not yet connected, or more than the subscriber takes: at the next turn.
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let handler = |message: &[u8], header: &rusteron_client::Header<'_>| {
            received += 1;
            let text = String::from_utf8_lossy(message);
            lines.push(format!("Received \"{text}\" from session {}", header.session_id()));
        };
        work_count += subscription.poll(handler, 10)?;
        for line in lines.drain(..) {
            output.line(line)?;
        }
        turns.idle(work_count)?;
    }

    // Sources can go while others stay.
    if let Some(channel) = channels.first() {
        subscription.remove_destination(channel)?;
    }
    let mut turns = Turns::awaiting("the socket to be closed", &interrupt);
    while subscription.local_addresses()?.len() == sources.len() {
        turns.idle(0)?;
    }
    let left = joined(&subscription.local_addresses()?);
    output.line(format_args!("Removed the first destination; still listening on {left}"))?;
    output.line(format_args!("Done: {received} messages received"))
}

fn joined(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}
