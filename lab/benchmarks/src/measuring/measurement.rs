//! Runs a publisher and a subscriber against each other, and measures.

use std::fmt;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rusteron_client::{IdleStrategyKind, OfferError, PollError};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_core::scan;

use crate::measuring::message_path::{Poll, Publish};
use crate::measuring::publisher;
use crate::measuring::run::Run;
use crate::measuring::subscriber::{self, Expectation};

/// The measurement: its messages and its duration.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The length of each message in bytes.
    pub message_length: usize,
    /// How many fragments a poll receives at the most.
    pub fragment_limit: usize,
    /// Idle strategy of both loops when they cannot go on.
    pub idle: IdleStrategyKind,
    /// How long a slice is.
    pub interval: Duration,
    /// How long to run before measuring.
    pub warmup: Duration,
    /// How long to measure.
    pub measured: Duration,
    /// How long no message may arrive before that is an error.
    pub timeout: Duration,
}

impl Plan {
    /// The message that is published again and again.
    pub fn message(&self) -> Vec<u8> {
        (0..=u8::MAX).cycle().take(self.message_length).collect()
    }

    /// Returns the parts of the plan that a subscriber has to know.
    pub fn expectation(&self) -> Expectation {
        Expectation {
            message_length: self.message_length,
            fragment_limit: self.fragment_limit,
            timeout: self.timeout,
        }
    }
}

/// The phase that a slice of time belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the measurement.
    WarmUp,
    /// The measurement itself.
    Measured,
}

/// The messages that arrived during a slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// How long the slice really was.
    pub elapsed: Duration,
    /// Whole messages.
    pub messages: u64,
    /// Payload bytes.
    pub bytes: u64,
}

impl Slice {
    /// Messages per second.
    pub fn messages_per_second(&self) -> f64 {
        self.messages as f64 / self.elapsed.max(Duration::from_nanos(1)).as_secs_f64()
    }
}

/// The results of a plan.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The slices of the measured time.
    pub slices: Vec<Slice>,
    /// The published messages, warm-up included.
    pub published: u64,
    /// The received bytes, warm-up included.
    pub received: u64,
}

/// Publishes on one thread, receives on another, and samples from this one, until the plan is
/// fulfilled or the interrupt requested. `observe` is told of every slice at its end.
///
/// If the end cuts the last slice shorter than half the interval, that slice is left out, unless it is the
/// only one. At the return, all published messages have been received.
///
/// # Errors
/// - [`Failure::Run`] if the publication or the subscription was closed, if no message arrives for
///   longer than the plan's timeout, or if not all messages arrive;
/// - an error that `observe` returns.
pub fn measure<P: Publish, S: Poll>(
    publication: &mut P,
    subscription: &mut S,
    plan: &Plan,
    interrupt: &ShutdownSignal,
    observe: impl FnMut(Phase, &Slice) -> Result<(), Failure>,
) -> Result<Measurement, Failure> {
    let message = plan.message();
    let publish =
        |run: &Run| publisher::publish(publication, &message, &mut plan.idle.new_strategy(), run);
    let receive = |run: &Run| {
        let mut idle = plan.idle.new_strategy();
        subscriber::receive(subscription, plan.expectation(), &mut idle, run)
    };
    measure_loops(vec![publish], receive, plan, interrupt, observe)
}

/// [`measure`], with loops of the caller's and any number of publishers, each on a thread of its own.
///
/// # Errors
/// As [`measure`].
pub fn measure_loops<P, S>(
    publishers: Vec<P>,
    subscriber: S,
    plan: &Plan,
    interrupt: &ShutdownSignal,
    observe: impl FnMut(Phase, &Slice) -> Result<(), Failure>,
) -> Result<Measurement, Failure>
where
    P: FnOnce(&Run) -> Result<u64, OfferError> + Send,
    S: FnOnce(&Run) -> Result<u64, PollError> + Send,
{
    let run = Run::new(publishers.len());
    // The threads' loops borrow the run, and own what they run.
    let shared = &run;
    let (slices, published, received) = thread::scope(|scope| {
        // Whatever happens on this thread, the others are to end before the scope waits for them.
        let guard = run.guard();
        let publishers: Vec<_> = publishers
            .into_iter()
            .map(|publish| {
                spawn(scope, "publisher", move || {
                    let guard = shared.guard();
                    let published = publish(shared)?;
                    shared.add_published(published);
                    guard.disarm();
                    Ok::<_, OfferError>(published)
                })
            })
            .collect::<Result<_, _>>()?;
        let subscriber = spawn(scope, "subscriber", move || {
            let guard = shared.guard();
            let received = subscriber(shared)?;
            guard.disarm();
            Ok::<_, PollError>(received)
        })?;
        let mut sampler = Sampler::new(&run, plan, interrupt, observe);
        let slices = sampler.sample();
        if slices.is_ok() {
            run.stop();
            guard.disarm();
        } else {
            drop(guard);
        }
        // Where several have failed, the publishers are the first to know. All are joined first.
        let published: Vec<_> =
            publishers.into_iter().map(|publisher| join(publisher, "publisher")).collect();
        let received = join(subscriber, "subscriber");
        let published = published.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Failure>((slices, published.iter().sum::<u64>(), received?))
    })?;
    let slices = slices?;
    if received != published * plan.message_length as u64 {
        return Err(Failure::Run(format!(
            "{} bytes were received of {} messages of {} bytes that were published",
            received, published, plan.message_length
        )));
    }
    Ok(Measurement { slices, published, received })
}

/// Starts a thread.
///
/// # Errors
/// [`Failure::Run`] if the operating system refuses it.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Failure> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, body)
        .map_err(|error| Failure::run(format_args!("cannot start the {name}'s thread"), error))
}

/// The median of the slices' rates, in messages per second; 0 without slices.
pub fn median_rate(slices: &[Slice]) -> f64 {
    let rates: Vec<f64> = slices.iter().map(Slice::messages_per_second).collect();
    median(&rates).unwrap_or(0.0)
}

fn join<T, E: fmt::Display>(
    thread: ScopedJoinHandle<'_, Result<T, E>>,
    name: &str,
) -> Result<T, Failure> {
    match thread.join() {
        Ok(result) => result.map_err(|error| Failure::run(name, error)),
        Err(_) => Err(Failure::Run(format!("the {name}'s thread panicked"))),
    }
}

/// Reads the subscriber's counter at regular times.
struct Sampler<'a, F> {
    run: &'a Run,
    plan: &'a Plan,
    interrupt: &'a ShutdownSignal,
    observe: F,
    /// The time of the last sample.
    taken: Instant,
    /// The received bytes in that sample.
    bytes: u64,
    /// For how long nothing has arrived, in whole slices: time in which the process was suspended
    /// does not count.
    silence: Duration,
}

impl<'a, F: FnMut(Phase, &Slice) -> Result<(), Failure>> Sampler<'a, F> {
    fn new(run: &'a Run, plan: &'a Plan, interrupt: &'a ShutdownSignal, observe: F) -> Self {
        let taken = Instant::now();
        Self { run, plan, interrupt, observe, taken, bytes: 0, silence: Duration::ZERO }
    }

    /// The slices of the measured time.
    fn sample(&mut self) -> Result<Vec<Slice>, Failure> {
        if !self.plan.warmup.is_zero() {
            self.sample_phase(Phase::WarmUp, self.plan.warmup)?;
        }
        if self.is_ended() {
            Ok(Vec::new())
        } else {
            self.sample_phase(Phase::Measured, self.plan.measured)
        }
    }

    fn sample_phase(&mut self, phase: Phase, length: Duration) -> Result<Vec<Slice>, Failure> {
        let end = self.taken + length;
        let mut slices = Vec::new();
        let mut tick = self.taken;
        loop {
            tick += self.plan.interval;
            // Later than planned, if the process was suspended: missed slices are not made up for.
            tick = tick.max(self.taken + self.plan.interval / 2);
            let deadline = end.min(tick);
            let remaining = deadline.saturating_duration_since(Instant::now());
            let is_interrupted = self.interrupt.wait_timeout(remaining);
            let is_last = is_interrupted || !self.run.is_running() || deadline == end;
            let slice = self.take();
            if slice.elapsed >= self.plan.interval / 2 || (is_last && slices.is_empty()) {
                (self.observe)(phase, &slice)?;
                slices.push(slice);
            }
            if is_last {
                return Ok(slices);
            }
            self.check_silence(&slice)?;
        }
    }

    fn is_ended(&self) -> bool {
        self.interrupt.is_signalled() || !self.run.is_running()
    }

    fn take(&mut self) -> Slice {
        let bytes = self.run.received_bytes();
        let now = Instant::now();
        let length = self.plan.message_length as u64;
        let slice = Slice {
            elapsed: now - self.taken,
            // Of whole messages before and after, so that a message in fragments counts once.
            messages: bytes / length - self.bytes / length,
            bytes: bytes - self.bytes,
        };
        self.taken = now;
        self.bytes = bytes;
        slice
    }

    fn check_silence(&mut self, slice: &Slice) -> Result<(), Failure> {
        self.silence =
            if slice.bytes > 0 { Duration::ZERO } else { self.silence + self.plan.interval };
        if self.silence < self.plan.timeout {
            return Ok(());
        }
        Err(Failure::Run(format!(
            "no message has arrived for {}",
            scan::format_duration(self.silence)
        )))
    }
}

/// The median of some values, linear between the two in the middle; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len().checked_sub(1)? as f64 / 2.0;
    Some((sorted[middle.floor() as usize] + sorted[middle.ceil() as usize]) / 2.0)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, TryRecvError, TrySendError, channel};

    use rusteron_client::{CloseCause, Yielding};

    use super::*;

    #[test]
    fn median_is_between_the_middle_values() {
        for (values, expected) in [
            (vec![], None),
            (vec![7.0], Some(7.0)),
            (vec![4.0, 1.0, 3.0, 2.0], Some(2.5)),
            (vec![9.0, 1.0, 3.0], Some(3.0)),
        ] {
            assert_eq!(median(&values), expected);
        }
    }

    /// A stream without Aeron.
    struct Pipe<T>(T);

    impl Publish for Pipe<std::sync::mpsc::SyncSender<usize>> {
        fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
            self.0.try_send(message.len()).map_err(|error| match error {
                TrySendError::Full(_) => OfferError::BackPressured,
                TrySendError::Disconnected(_) => OfferError::Closed(CloseCause::Handle),
            })
        }
    }

    impl Poll for Pipe<Receiver<usize>> {
        fn poll(&mut self, bytes: &mut u64, _: usize) -> Result<usize, PollError> {
            match self.0.try_recv() {
                Ok(length) => *bytes += length as u64,
                Err(TryRecvError::Empty) => return Ok(0),
                Err(TryRecvError::Disconnected) => {
                    return Err(PollError::Closed(CloseCause::Handle));
                }
            }
            Ok(1)
        }
    }

    /// Takes messages, and delivers none.
    struct Hole;

    impl Publish for Hole {
        fn offer(&mut self, _: &[u8]) -> Result<(), OfferError> {
            Err(OfferError::BackPressured)
        }
    }

    impl Poll for Hole {
        fn poll(&mut self, _: &mut u64, _: usize) -> Result<usize, PollError> {
            Ok(0)
        }
    }

    const PLAN: Plan = Plan {
        message_length: 32,
        fragment_limit: 10,
        idle: IdleStrategyKind::Yielding,
        interval: Duration::from_millis(10),
        warmup: Duration::from_millis(5),
        measured: Duration::from_millis(25),
        timeout: Duration::from_secs(3600),
    };

    fn pipe() -> (Pipe<std::sync::mpsc::SyncSender<usize>>, Pipe<Receiver<usize>>) {
        let (sender, receiver) = std::sync::mpsc::sync_channel(64);
        (Pipe(sender), Pipe(receiver))
    }

    #[test]
    fn slices_add_up_and_nothing_is_lost() {
        let (mut sender, mut receiver) = pipe();
        let mut phases = Vec::new();
        let measurement =
            measure(&mut sender, &mut receiver, &PLAN, &ShutdownSignal::new(), |phase, _| {
                phases.push(phase);
                Ok(())
            })
            .expect("a measurement");
        assert_eq!(measurement.received, measurement.published * 32);
        let messages: u64 = measurement.slices.iter().map(|slice| slice.messages).sum();
        assert!(messages <= measurement.published);
        assert_eq!(phases.first(), Some(&Phase::WarmUp));
        let measured = phases.iter().filter(|phase| **phase == Phase::Measured).count();
        assert_eq!(measured, measurement.slices.len());
    }

    #[test]
    fn several_publishers_are_counted_together() {
        let (mut sender, mut receiver) = pipe();
        let second = Pipe(sender.0.clone());
        let mut senders = [&mut sender, &mut { second }];
        let message = PLAN.message();
        let publishers = senders
            .iter_mut()
            .map(|sender| |run: &Run| publisher::publish(*sender, &message, &mut Yielding, run))
            .collect();
        let receive =
            |run: &Run| subscriber::receive(&mut receiver, PLAN.expectation(), &mut Yielding, run);
        let interrupt = ShutdownSignal::new();
        let measurement = measure_loops(publishers, receive, &PLAN, &interrupt, |_, _| Ok(()))
            .expect("a measurement");
        assert!(measurement.published > 0);
        assert_eq!(measurement.received, measurement.published * 32);
    }

    #[test]
    fn an_interrupt_ends_an_endless_plan() {
        let (mut sender, mut receiver) = pipe();
        let interrupt = ShutdownSignal::new();
        let plan = Plan { measured: Duration::from_secs(3600), ..PLAN };
        let measurement = measure(&mut sender, &mut receiver, &plan, &interrupt, |phase, slice| {
            if phase == Phase::Measured && slice.messages > 0 {
                interrupt.signal();
            }
            Ok(())
        })
        .expect("a measurement");
        assert!(!measurement.slices.is_empty());
    }

    #[test]
    fn interrupted_warm_up_has_no_slices() {
        let (mut sender, mut receiver) = pipe();
        let interrupt = ShutdownSignal::new();
        interrupt.signal();
        let measurement = measure(&mut sender, &mut receiver, &PLAN, &interrupt, |_, _| Ok(()))
            .expect("a measurement");
        assert!(measurement.slices.is_empty());
    }

    #[test]
    fn a_stream_that_closes_ends_the_run() {
        let (mut sender, _) = pipe();
        let plan = Plan { measured: Duration::from_secs(3600), ..PLAN };
        let interrupt = ShutdownSignal::new();
        let failure = measure(&mut sender, &mut Hole, &plan, &interrupt, |_, _| Ok(()));
        assert_eq!(
            failure.map(|_| ()),
            Err(Failure::Run(
                "publisher: the publication is closed: it alone was closed, its client is open"
                    .to_owned()
            ))
        );

        let (sender, receiver): (Sender<usize>, _) = channel();
        drop(sender);
        let failure = measure(&mut Hole, &mut Pipe(receiver), &plan, &interrupt, |_, _| Ok(()));
        assert_eq!(
            failure.map(|_| ()),
            Err(Failure::Run(
                "subscriber: the subscription is closed: it alone was closed, its client is open"
                    .to_owned()
            ))
        );
    }

    #[test]
    fn silence_is_an_error_after_a_while() {
        let plan = Plan {
            measured: Duration::from_secs(3600),
            timeout: Duration::from_millis(30),
            ..PLAN
        };
        let failure = measure(&mut Hole, &mut Hole, &plan, &ShutdownSignal::new(), |_, _| Ok(()));
        let failure = failure.map(|_| ()).expect_err("silence");
        assert!(failure.to_string().starts_with("no message has arrived for"), "{failure}");
    }

    #[test]
    fn a_failing_observer_ends_the_run() {
        let (mut sender, mut receiver) = pipe();
        let plan = Plan { measured: Duration::from_secs(3600), ..PLAN };
        let full = Failure::Run("full".to_owned());
        let failure = measure(&mut sender, &mut receiver, &plan, &ShutdownSignal::new(), |_, _| {
            Err(full.clone())
        });
        assert_eq!(failure.map(|_| ()), Err(full));
    }

    #[test]
    fn rates_use_the_real_length_of_a_slice() {
        let slice =
            Slice { elapsed: Duration::from_millis(1250), messages: 1_000_000, bytes: 32_000_000 };
        assert_eq!(slice.messages_per_second(), 800_000.0);
    }
}
