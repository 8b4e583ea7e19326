//! A service that survives the restart of its peers and of its media driver.
//!
//! Start two of these on one driver, then kill and restart the driver or one of them. The environment variable
//! `AERON_DIR` names the driver's directory. `docs/reconnecting.md` explains the recipe.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Backoff, Context, ErrorKind, Header, IdleStrategy, Result};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
/// Time between two messages.
const INTERVAL: Duration = Duration::from_millis(10);
/// How many messages of a peer arrive for each line of output.
const REPORT: u64 = 100;
/// Time before the next attempt to connect.
const PAUSE: Duration = Duration::from_millis(500);

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::on_interrupt()?;
    // This state outlives the sessions: the numbers go on after a reconnection.
    let mut state = State {
        incarnation: SystemTime::UNIX_EPOCH.elapsed()?.as_nanos() as u64,
        sent: 0,
        next_numbers: HashMap::new(),
    };
    while !shutdown.is_signalled() {
        match run_session(&mut state, &shutdown) {
            Ok(()) => {}
            Err(error) if !may_pass(&error) => return Err(error.into()),
            Err(error) => {
                println!("Disconnected: {error}");
                shutdown.wait_timeout(PAUSE);
            }
        }
    }
    println!("Done: sent {} messages", state.sent);
    Ok(())
}

/// Returns whether a later attempt can succeed. A driver that is gone may come back, and a file that may not be read
/// may belong to a driver that is starting. An invalid setting stays invalid.
fn may_pass(error: &rusteron_client::Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::InvalidArgument
            | ErrorKind::InvalidChannel
            | ErrorKind::IncompatibleDriver
            | ErrorKind::Io(io::ErrorKind::NotADirectory)
    )
}

/// Exchanges messages until the signal, or until the client has lost its driver. A closed client never opens again,
/// so client and streams are made together, and dropped together.
fn run_session(state: &mut State, shutdown: &ShutdownSignal) -> Result<()> {
    // Waits for a driver, on another thread, so that the signal ends this wait.
    let mut connecting = Aeron::async_connect(Context::new()?)?;
    let aeron = loop {
        if let Some(aeron) = connecting.poll()? {
            break aeron;
        }
        if shutdown.wait_timeout(Duration::from_millis(5)) {
            return Ok(());
        }
    };
    let mut publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)?;
    let mut subscription = aeron.add_subscription(CHANNEL, STREAM_ID)?;
    println!("Connected to the driver in {}", aeron.context().dir().display());

    let mut next_message = Instant::now();
    let mut idle = Backoff::default();
    while !shutdown.is_signalled() {
        let mut work_count = 0;
        if Instant::now() >= next_message {
            next_message += INTERVAL;
            work_count += 1;
            match publication.offer(&state.next_message()) {
                Ok(_) => {}
                // No subscriber is connected, or one is slow. This service gives the message up, and its receivers see
                // the gap. Another one may offer it again.
                Err(error) if error.is_retryable() => {}
                // The client is closed. Everything has to be made anew.
                Err(error) => return Err(error.into()),
            }
        }
        let handler = |message: &[u8], _: &Header<'_>| state.on_message(message);
        work_count += subscription.poll(handler, 10)?;
        idle.idle(work_count);
    }
    Ok(())
}

struct State {
    /// Tells this run of the service from earlier ones: the time of its start.
    incarnation: u64,
    sent: u64,
    /// The number that comes next, by the sender's incarnation.
    next_numbers: HashMap<u64, u64>,
}

impl State {
    fn next_message(&mut self) -> [u8; 16] {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&self.incarnation.to_le_bytes());
        message[8..].copy_from_slice(&self.sent.to_le_bytes());
        self.sent += 1;
        message
    }

    fn on_message(&mut self, message: &[u8]) {
        let Some((incarnation, rest)) = message.split_first_chunk() else { return };
        let Ok(number) = rest.try_into().map(u64::from_le_bytes) else { return };
        let incarnation = u64::from_le_bytes(*incarnation);
        if incarnation == self.incarnation {
            return;
        }
        let next = self.next_numbers.entry(incarnation).or_insert_with(|| {
            println!("New peer {incarnation}, first heard at {number}");
            number
        });
        if number > *next {
            println!("Lost {} messages of peer {incarnation}", number - *next);
        }
        // An image of an earlier session may still deliver older messages.
        *next = (*next).max(number + 1);
        if number % REPORT == 0 {
            println!("Received {number} of peer {incarnation}");
        }
    }
}
