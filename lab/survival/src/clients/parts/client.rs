//! The loop that publishers and subscribers have in common: a client that is made anew whenever it has ended.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, CloseCause, Context, Error, Result};

use super::{PartOptions, fork};
use crate::clients::leaks::CLIENT_HEARTBEAT;
use crate::clients::settings;
use crate::party::{Notice, Order, Orders, say};

/// How long to wait before another client is made.
const PAUSE: Duration = Duration::from_millis(10);
/// How often a client without a conductor thread does the conductor's work: often enough for the driver, and
/// seldom enough for most polls to come before it.
const WORK: Duration = Duration::from_millis(10);
/// The time within which a client whose publications or subscriptions are closed says why.
const REASON: Duration = Duration::from_secs(2);

/// The interval at which the supervisor is told how many messages there were.
const TICK: Duration = Duration::from_millis(200);
/// How often a forked child uses its resources: a publisher does not offer with each use.
const USES: usize = 100;

/// Why a loop has come to its end.
pub(super) enum End {
    /// The supervisor wants it.
    Asked,
    /// The client, or one of its resources, is closed, with an error if a call reported one.
    Closed(Option<Error>),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Closed(Some(error))
    }
}

/// The publisher or subscriber that the loop works on.
pub(super) trait Work {
    /// Makes the resources with a client.
    fn join(&mut self, aeron: &Aeron) -> Result<()>;
    /// Does something; returns whether there was something to do.
    fn work(&mut self) -> std::result::Result<bool, End>;
    /// Sends messages of a checkpoint, or of none.
    fn set_checkpoint(&mut self, checkpoint: u64);
    /// The client has ended. `had_timed_out` says whether the client had timed out.
    fn leave(&mut self, had_timed_out: bool);
    /// The numbers of messages that came and that were skipped.
    fn counts(&self) -> (u64, u64);
}

/// Connects a client whose errors are of no interest.
pub(super) fn connect(options: &PartOptions) -> Result<Aeron> {
    let mut context = Context::new()?;
    context.set_dir(&options.dir)?.set_driver_timeout(settings::DRIVER_TIMEOUT)?;
    Aeron::connect(context)
}

/// Gives the part one client after the other until the supervisor asks for the end.
pub(super) fn run(part: &mut impl Work, options: &PartOptions, orders: &Orders) {
    // Clients with a conductor thread and clients without take turns.
    let mut has_conductor = options.index % 2 == 1;
    loop {
        has_conductor = !has_conductor;
        match Client::connect(options, has_conductor) {
            Ok(client) => {
                let end = client.run(part, orders);
                let is_over = matches!(end, End::Asked);
                let mut error = None;
                if let End::Closed(known) = end {
                    client.await_reason();
                    error = client.reason.get().cloned().or(known);
                }
                part.leave(client.had_timed_out() && !is_over);
                tell(part);
                drop(client);
                if is_over {
                    return;
                }
                say(&Notice::Ended(error.map_or("Closed".to_owned(), describe)));
            }
            Err(error) => say(&Notice::Refused(describe(error))),
        }
        match orders.wait(PAUSE) {
            Some(Order::End) => return,
            Some(Order::Checkpoint(number)) => part.set_checkpoint(number),
            Some(Order::Fork) | None => {}
        }
    }
}

fn tell(part: &impl Work) {
    let (messages, skipped) = part.counts();
    say(&Notice::Messages(messages, skipped));
}

fn describe(error: Error) -> String {
    format!("{:?} {error}", error.kind())
}

struct Client {
    aeron: Aeron,
    has_conductor: bool,
    /// The first error that the client's error handler was given.
    reason: Arc<OnceLock<Error>>,
}

/// Uses all resources in a child that was forked with them, which must refuse that. Then ends as a part that was asked
/// to end: drops them all.
fn end_of_child(part: &mut impl Work) -> End {
    let is_refused = (0..USES).any(|_| matches!(part.work(), Err(End::Closed(_))));
    assert!(is_refused, "a forked child uses its parent's client");
    End::Asked
}

impl Client {
    fn connect(options: &PartOptions, has_conductor: bool) -> Result<Self> {
        let reason = Arc::new(OnceLock::new());
        let mut context = Context::new()?;
        let handler = Arc::clone(&reason);
        context
            .set_dir(&options.dir)?
            .set_driver_timeout(settings::DRIVER_TIMEOUT)?
            .set_keepalive_interval(settings::KEEPALIVE)?
            .set_resource_linger_duration(settings::LINGER)?
            .set_use_conductor_agent_invoker(!has_conductor)?
            .set_error_handler(move |error| _ = handler.set(error.clone()))?;
        Ok(Self { aeron: Aeron::connect(context)?, has_conductor, reason })
    }

    fn run(&self, part: &mut impl Work, orders: &Orders) -> End {
        if let Err(error) = part.join(&self.aeron) {
            say(&Notice::Refused(describe(error.clone())));
            return error.into();
        }
        say(&Notice::Ready);
        let mut last_work = Instant::now();
        let mut last_told = last_work;
        loop {
            if last_told.elapsed() >= TICK {
                last_told = Instant::now();
                tell(part);
            }
            match self.step(part, orders, &mut last_work) {
                // A millisecond is long enough for others to run, and short enough for the streams.
                Ok(true) => std::thread::sleep(Duration::from_micros(100)),
                Ok(false) => std::thread::sleep(Duration::from_millis(1)),
                Err(end) => return end,
            }
        }
    }

    fn step(
        &self,
        part: &mut impl Work,
        orders: &Orders,
        last_work: &mut Instant,
    ) -> std::result::Result<bool, End> {
        match orders.next() {
            Some(Order::End) => return Err(End::Asked),
            Some(Order::Fork) if fork() => return Err(end_of_child(part)),
            Some(Order::Checkpoint(number)) => part.set_checkpoint(number),
            Some(Order::Fork) | None => {}
        }
        let is_busy = part.work()?;
        // An image that cannot be mapped is an error that ends nothing. But its publisher waits for this subscriber
        // for ever: a client that has reported an error is replaced.
        if let Some(error) = self.reason.get() {
            return Err(error.clone().into());
        }
        if self.has_conductor {
            if self.aeron.is_closed() {
                return Err(End::Closed(None));
            }
        } else if last_work.elapsed() >= WORK {
            *last_work = Instant::now();
            self.aeron.do_work()?;
        }
        Ok(is_busy)
    }

    /// Returns whether the driver, or the client itself, has noticed that the client did not do its duty in time.
    fn had_timed_out(&self) -> bool {
        // Another error may have come first.
        let (counters, id) = (self.aeron.counters_reader(), self.aeron.client_id());
        counters.find_by_type_id_and_registration_id(CLIENT_HEARTBEAT, id).is_none()
            || matches!(
                self.aeron.close_cause(),
                Some(CloseCause::ClientTimeout | CloseCause::ConductorServiceTimeout { .. })
            )
    }

    /// Waits until the client has noticed as well that it is closed.
    fn await_reason(&self) {
        let deadline = Instant::now() + REASON;
        while self.reason.get().is_none() && Instant::now() < deadline {
            if !self.has_conductor {
                // The error is the reason, and the handler was given it.
                let _ = self.aeron.do_work();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
