//! A service that survives the restart of its peer and of its media driver.
//!
//! Two of these talk to each other: what one publishes, the other subscribes to. Shows:
//! - a session: client, publication and subscription, which are made and dropped together;
//! - a loop around sessions, which ends for errors that no later attempt can mend, and for Ctrl-C;
//! - numbered messages, which tell the receiver of losses and of a new peer.
//!
//! `docs/reconnecting.md` has the recipe in words. Try it: start two services with one driver, then
//! kill and start again the driver or a service.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{
    Aeron, Backoff, ChannelUri, Context, ErrorKind, ExclusivePublication, Header, IdleStrategy,
    Subscription,
};

/// Exchanges numbered messages with a peer, and reconnects when the peer or the driver comes back
#[derive(Debug, Parser)]
#[command(name = "reconnecting", version)]
struct Options {
    /// Directory of the media driver [default: Aeron's default directory]
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Channel to publish on
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    publish: ChannelUri,

    /// Stream id to publish on; the peer subscribes to it
    #[arg(long, value_name = "ID", default_value_t = 1001)]
    publish_stream_id: i32,

    /// Channel to subscribe to
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    subscribe: ChannelUri,

    /// Stream id to subscribe to; the peer publishes on it
    #[arg(long, value_name = "ID", default_value_t = 1002)]
    subscribe_stream_id: i32,

    /// Time between two messages
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    interval: humantime::Duration,

    /// Print a line each time so many messages have arrived
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..))]
    report: u64,
}

/// How long to wait before the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a driver of another user may take to let this process read its files.
const PERMISSION_TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::new();
    let on_interrupt = shutdown.clone();
    ctrlc::set_handler(move || on_interrupt.signal())?;

    // These outlive the sessions: the numbers go on after a reconnection.
    let mut sender = Sender::new();
    let mut receiver = Receiver::new(options.report);
    let mut denied_since = None;
    while !shutdown.is_signalled() {
        let session = Session::connect(options, &shutdown);
        let ended = session.and_then(|session| match session {
            Some(session) => session.run(options, &mut sender, &mut receiver, &shutdown),
            None => Ok(()),
        });
        match ended {
            // The signal.
            Ok(()) => break,
            Err(error) if !may_pass(&error) => return Err(error.into()),
            Err(error) => {
                if error.kind() != ErrorKind::Io(io::ErrorKind::PermissionDenied) {
                    denied_since = None;
                } else if denied_since.get_or_insert_with(Instant::now).elapsed()
                    > PERMISSION_TIMEOUT
                {
                    return Err(error.into());
                }
                println!("Disconnected: {error}");
                shutdown.wait_timeout(PAUSE);
            }
        }
    }
    println!("Done: sent {}, received {}", sender.next_number - 1, receiver.received);
    Ok(())
}

/// Returns whether a later attempt can succeed. A driver that is gone or not there yet may come back. An
/// invalid channel stays invalid. A denied permission passes if the driver is just starting.
fn may_pass(error: &rusteron_client::Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::InvalidArgument
            | ErrorKind::InvalidChannel
            | ErrorKind::IncompatibleDriver
            | ErrorKind::Io(io::ErrorKind::NotADirectory)
    )
}

/// The streams of a client. They keep it open, end with it, and are made anew together.
struct Session {
    publication: ExclusivePublication,
    subscription: Subscription,
}

impl Session {
    /// Connects to the driver, and adds the streams. Returns `None` after the signal.
    fn connect(
        options: &Options,
        shutdown: &ShutdownSignal,
    ) -> rusteron_client::Result<Option<Self>> {
        let mut context = Context::new()?;
        if let Some(dir) = &options.aeron_dir {
            context.set_dir(dir)?;
        }
        // Each of these waits for the driver, up to the driver timeout. Polled, so that the signal ends the wait.
        let mut connecting = Aeron::async_connect(context)?;
        let Some(aeron) = poll_until(shutdown, || connecting.poll())? else { return Ok(None) };
        println!("Connected to the driver in {}", aeron.context().dir().display());
        let mut adding =
            aeron.async_add_exclusive_publication(&options.publish, options.publish_stream_id)?;
        let Some(publication) = poll_until(shutdown, || adding.poll())? else { return Ok(None) };
        let mut adding =
            aeron.async_add_subscription(&options.subscribe, options.subscribe_stream_id)?;
        let Some(subscription) = poll_until(shutdown, || adding.poll())? else { return Ok(None) };
        Ok(Some(Self { publication, subscription }))
    }

    /// Exchanges messages until the signal, or until the client has lost its driver.
    fn run(
        mut self,
        options: &Options,
        sender: &mut Sender,
        receiver: &mut Receiver,
        shutdown: &ShutdownSignal,
    ) -> rusteron_client::Result<()> {
        let mut idle = Backoff::default();
        let mut next_send = Instant::now();
        let mut was_connected = false;
        while !shutdown.is_signalled() {
            // The restart of a peer ends no session: Aeron finds the new peer by itself.
            let is_connected = self.publication.is_connected();
            if is_connected != was_connected {
                println!("{}", if is_connected { "A peer has come" } else { "The peer has gone" });
                was_connected = is_connected;
            }

            let mut work_count = 0;
            if Instant::now() >= next_send {
                next_send = Instant::now() + *options.interval;
                work_count += 1;
                match self.publication.offer(&sender.next_message()) {
                    Ok(_) => {}
                    // No peer, or a peer that does not keep up. This program gives the message up: its number
                    // is used, so that the peer sees the gap. Another program may retain the message.
                    Err(error) if error.is_retryable() => {}
                    // The client is closed, or the stream is at its maximum position. Both need a new session.
                    Err(error) => return Err(error.into()),
                }
            }
            let handler = |message: &[u8], header: &Header<'_>| {
                receiver.on_message(header.session_id(), message);
            };
            work_count += self.subscription.poll(handler, 10)?;
            if receiver.next_numbers.len() > self.subscription.image_count() {
                let subscription = &mut self.subscription;
                receiver
                    .next_numbers
                    .retain(|id, _| subscription.image_by_session_id(*id).is_some());
            }
            idle.idle(work_count);
        }
        Ok(())
    }
}

/// Polls until there is an outcome. Returns `None` after the signal.
fn poll_until<T>(
    shutdown: &ShutdownSignal,
    mut poll: impl FnMut() -> rusteron_client::Result<Option<T>>,
) -> rusteron_client::Result<Option<T>> {
    loop {
        if let Some(outcome) = poll()? {
            return Ok(Some(outcome));
        }
        if shutdown.wait_timeout(Duration::from_millis(5)) {
            return Ok(None);
        }
    }
}

/// Numbers messages.
struct Sender {
    /// The time of the sender's start, so a later sender has a higher incarnation.
    incarnation: u64,
    next_number: u64,
}

impl Sender {
    fn new() -> Self {
        let since_epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self { incarnation: since_epoch.as_nanos() as u64, next_number: 1 }
    }

    fn next_message(&mut self) -> [u8; 16] {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&self.incarnation.to_le_bytes());
        message[8..].copy_from_slice(&self.next_number.to_le_bytes());
        self.next_number += 1;
        message
    }
}

/// Checks the numbers of messages.
///
/// The images of an old and of a new session exist side by side for a while, and a poll takes turns between
/// them. So messages of the old session can arrive after messages of the new one. Numbers are in order
/// within a session only.
struct Receiver {
    report: u64,
    received: u64,
    /// The incarnation of the sender, and the number that comes next, by session id.
    next_numbers: HashMap<i32, (u64, u64)>,
    /// The newest incarnation of the sender, and the number after its highest.
    newest: Option<(u64, u64)>,
}

impl Receiver {
    fn new(report: u64) -> Self {
        Self { report, received: 0, next_numbers: HashMap::new(), newest: None }
    }

    fn on_message(&mut self, session_id: i32, message: &[u8]) {
        let word = |range| message.get(range).and_then(|bytes: &[u8]| bytes.try_into().ok());
        let (Some(incarnation), Some(number)) = (word(0..8), word(8..16)) else {
            println!("Ignored a message of {} bytes", message.len());
            return;
        };
        let (incarnation, number) = (u64::from_le_bytes(incarnation), u64::from_le_bytes(number));
        match self.next_numbers.get(&session_id) {
            Some(&(known, next)) if known == incarnation => {
                if number > next {
                    println!("Lost {} messages: {next} to {}", number - next, number - 1);
                }
                if number < next {
                    // The sender of this program never repeats a message. Another sender may.
                    println!("Repeated message {number}");
                    return;
                }
            }
            _ => self.on_session(incarnation, number),
        }
        self.next_numbers.insert(session_id, (incarnation, number + 1));
        self.newest = self.newest.max(Some((incarnation, number + 1)));
        self.received += 1;
        if self.received % self.report == 0 {
            println!("Received {number}");
        }
    }

    /// Compares the first message of a session with the newest message of all sessions.
    fn on_session(&self, incarnation: u64, number: u64) {
        let Some((newest, next)) = self.newest else {
            println!("First heard the peer at {number}");
            return;
        };
        if incarnation > newest {
            println!(
                "The peer is new: the old one was last heard at {}, the new one at {number}",
                next - 1
            );
        } else if incarnation < newest {
            println!("Late messages of an old peer, from {number} on");
        } else if number > next {
            println!(
                "Lost {} messages: {next} to {}, unless the old session still delivers them",
                number - next,
                number - 1
            );
        }
    }
}
