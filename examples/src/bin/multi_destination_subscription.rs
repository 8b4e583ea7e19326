//! One subscription that receives from several sources.
//!
//! Shows a multi-destination subscription: its channel has `control-mode=manual` and no endpoint,
//! and it is told by `add_destination` and `remove_destination` where to listen. Two publishers send
//! to two ports of 127.0.0.1, and their messages arrive in one subscription, an image for each.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{Aeron, Backoff, ChannelUri, Context, ControlMode, IdleStrategy};
use rusteron_media_driver::MediaDriver;

/// Receives from two UDP sources with one subscription
#[derive(Debug, Parser)]
#[command(name = "multi_destination_subscription", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id within all channels
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages each source sends
    #[arg(long, value_name = "N", default_value_t = 5)]
    messages: usize,
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

    let channel = ChannelUri::udp().control_mode(ControlMode::Manual).build()?;
    let mut subscription = aeron.add_subscription(&channel, options.stream_id)?;
    // Publisher and destination are told the same endpoint: one sends to it, one listens there.
    let mut channels = Vec::new();
    for endpoint in free_endpoints()? {
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
    let mut idle = Idle::awaiting("the sockets");
    let addresses = loop {
        let addresses = subscription.local_addresses()?;
        if addresses.len() == sources.len() {
            break addresses;
        }
        idle.idle(0)?;
    };
    println!("Listening on {}", joined(&addresses));

    let mut received = 0;
    let mut lines = Vec::new();
    let mut idle = Idle::awaiting("the messages");
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
                // Not yet connected, or back pressure: offered again in the next iteration.
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
            println!("{line}");
        }
        idle.idle(work_count)?;
    }

    // Sources can go while others stay.
    if let Some(channel) = channels.first() {
        subscription.remove_destination(channel)?;
    }
    let mut idle = Idle::awaiting("the removal of the destination");
    while subscription.local_addresses()?.len() == sources.len() {
        idle.idle(0)?;
    }
    let left = joined(&subscription.local_addresses()?);
    println!("Removed the first destination; still listening on {left}");
    println!("Done: {received} messages received");
    Ok(())
}

fn joined(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
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
