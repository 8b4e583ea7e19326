//! One publication that sends to several destinations.
//!
//! Shows a multi-destination publication (MDC). Its channel has `control-mode=manual` and no endpoint.
//! `add_destination` and `remove_destination` change its destinations. The driver sends each message to
//! every destination. A later destination gets the messages that are published from then on. With
//! `control-mode=dynamic` and a control address, subscribers would announce themselves instead.

use std::process::ExitCode;

use clap::Parser;
use rusteron_client::{ChannelUri, ControlMode, Header, Publication, Subscription};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::{self, Driver, DriverOption, Turns};

/// Sends to two UDP destinations with one publication
#[derive(Debug, Parser)]
#[command(name = "multi_destination_publication", version)]
struct Options {
    #[command(flatten)]
    driver: DriverOption,

    /// Stream id within all channels
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to send to both destinations, and then again to one
    #[arg(long, value_name = "N", default_value_t = 5)]
    messages: usize,
}

/// A subscriber, and how many messages it has received.
struct Receiver {
    name: &'static str,
    channel: ChannelUri,
    subscription: Subscription,
    received: usize,
}

fn main() -> ExitCode {
    failure::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let driver = Driver::start(&options.driver)?;
    let aeron = driver.connect()?;
    let receiver = |name, endpoint: String| -> Result<Receiver, Failure> {
        let channel = ChannelUri::udp().endpoint(endpoint).build()?;
        let subscription = aeron.add_subscription(&channel, options.stream_id)?;
        Ok(Receiver { name, channel, subscription, received: 0 })
    };
    let [first, second] = sample::free_endpoints()?;
    let mut receivers = [receiver("first", first)?, receiver("second", second)?];

    let channel = ChannelUri::udp().control_mode(ControlMode::Manual).build()?;
    let publication = aeron.add_publication(&channel, options.stream_id)?;
    for Receiver { name, channel, .. } in &receivers {
        // The destination is the endpoint where the subscriber listens.
        publication.add_destination(channel)?;
        output.line(format_args!("Added the {name} destination, {channel}"))?;
    }
    // One subscriber is enough for a publication to be connected. The other subscriber would miss the
    // messages that are published before it is there.
    let mut turns = Turns::awaiting("the subscribers", &interrupt);
    while !receivers.iter().all(|receiver| receiver.subscription.is_connected()) {
        turns.idle(0)?;
    }
    let mut turns = Turns::awaiting("messages", &interrupt);
    for number in 1..=options.messages {
        publish(&publication, &format!("Message {number} to both"), &mut turns)?;
        receive(&mut receivers, &mut turns, &mut output)?;
    }

    // Destinations can go while others stay.
    let [first, second] = &mut receivers;
    publication.remove_destination(&first.channel)?;
    output.line(format_args!("Removed the {} destination", first.name))?;
    for number in 1..=options.messages {
        publish(&publication, &format!("Message {number} to one"), &mut turns)?;
        receive(std::slice::from_mut(second), &mut turns, &mut output)?;
    }
    // Messages that reached the removed destination nevertheless would be waiting.
    first.received += first.subscription.poll(|_, _| {}, 10)?;
    output.line(format_args!("Done: {} and {} messages received", first.received, second.received))
}

/// Offers a message until it is accepted.
fn publish(publication: &Publication, message: &str, turns: &mut Turns) -> Result<(), Failure> {
    while let Err(error) = publication.offer(message.as_bytes()) {
        if !error.is_retryable() {
            return Err(error.into());
        }
        turns.idle(0)?;
    }
    Ok(())
}

/// Waits until each of the receivers has one message more.
fn receive(
    receivers: &mut [Receiver],
    turns: &mut Turns,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    for Receiver { name, subscription, received, .. } in receivers {
        let mut line = None;
        while line.is_none() {
            let handler = |message: &[u8], _: &Header<'_>| {
                line =
                    Some(format!("The {name} received \"{}\"", String::from_utf8_lossy(message)));
            };
            turns.idle(subscription.poll(handler, 1)?)?;
        }
        *received += 1;
        output.line(line.unwrap_or_default())?;
    }
    Ok(())
}
