//! One publication that sends to several destinations.
//!
//! Shows a multi-destination publication (MDC). Its channel has `control-mode=manual` and no endpoint.
//! `add_destination` and `remove_destination` change its destinations. The driver sends each message to
//! every destination. A later destination gets the messages that are published from then on. With
//! `control-mode=dynamic` and a control address, subscribers would announce themselves instead.

use std::error::Error;
use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{
    Aeron, Backoff, ChannelUri, Context, ControlMode, Header, IdleStrategy, Publication,
    Subscription,
};
use rusteron_media_driver::MediaDriver;

/// Sends to two UDP destinations with one publication
#[derive(Debug, Parser)]
#[command(name = "multi_destination_publication", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

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
    let receiver = |name, endpoint: String| -> Result<Receiver, Box<dyn Error>> {
        let channel = ChannelUri::udp().endpoint(endpoint).build()?;
        let subscription = aeron.add_subscription(&channel, options.stream_id)?;
        Ok(Receiver { name, channel, subscription, received: 0 })
    };
    let [first, second] = free_endpoints()?;
    let mut receivers = [receiver("first", first)?, receiver("second", second)?];

    let channel = ChannelUri::udp().control_mode(ControlMode::Manual).build()?;
    let publication = aeron.add_publication(&channel, options.stream_id)?;
    for Receiver { name, channel, .. } in &receivers {
        // The destination is the endpoint where the subscriber listens.
        publication.add_destination(channel)?;
        println!("Added the {name} destination, {channel}");
    }
    // One subscriber is enough for a publication to be connected. The other subscriber would miss the
    // messages that are published before it is there.
    let mut idle = Idle::awaiting("a connection of each subscriber");
    while !receivers.iter().all(|receiver| receiver.subscription.is_connected()) {
        idle.idle(0)?;
    }
    for number in 1..=options.messages {
        publish(&publication, &format!("Message {number} to both"))?;
        receive(&mut receivers)?;
    }

    // Destinations can go while others stay.
    let [first, second] = &mut receivers;
    publication.remove_destination(&first.channel)?;
    println!("Removed the {} destination", first.name);
    for number in 1..=options.messages {
        publish(&publication, &format!("Message {number} to one"))?;
        receive(std::slice::from_mut(second))?;
    }
    // Messages that reached the removed destination nevertheless would be waiting.
    first.received += first.subscription.poll(|_, _| {}, 10)?;
    println!("Done: {} and {} messages received", first.received, second.received);
    Ok(())
}

/// Offers a message until it is accepted.
fn publish(publication: &Publication, message: &str) -> Result<(), Box<dyn Error>> {
    let mut idle = Idle::awaiting("an accepted offer");
    while let Err(error) = publication.offer(message.as_bytes()) {
        if !error.is_retryable() {
            return Err(error.into());
        }
        idle.idle(0)?;
    }
    Ok(())
}

/// Waits until each of the receivers has one message more.
fn receive(receivers: &mut [Receiver]) -> Result<(), Box<dyn Error>> {
    let mut idle = Idle::awaiting("a message");
    for Receiver { name, subscription, received, .. } in receivers {
        let mut line = None;
        while line.is_none() {
            let handler = |message: &[u8], _: &Header<'_>| {
                line =
                    Some(format!("The {name} received \"{}\"", String::from_utf8_lossy(message)));
            };
            idle.idle(subscription.poll(handler, 1)?)?;
        }
        *received += 1;
        println!("{}", line.unwrap_or_default());
    }
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

/// Two UDP endpoints of this machine that are free now.
fn free_endpoints() -> io::Result<[String; 2]> {
    // Both sockets exist at the same time, so that the ports differ.
    let sockets = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    Ok([sockets.0.local_addr()?.to_string(), sockets.1.local_addr()?.to_string()])
}
