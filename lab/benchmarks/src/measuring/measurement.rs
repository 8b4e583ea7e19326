//! Runs a publisher and a subscriber against each other, and measures.

use std::fmt;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use rusteron_client::{IdleStrategyKind, OfferError, PollError};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_core::scan;

use crate::command_line::run_options::SLICE;
use crate::measuring::message_path::{Poll, Publish};
use crate::measuring::publisher;
use crate::measuring::run::Run;
use crate::measuring::subscriber;

/// How many fragments a poll receives at the most, as in Aeron's samples.
pub const FRAGMENT_LIMIT: usize = 10;

/// The measurement of a stream or of round trips: its messages and its duration.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The length of each message in bytes.
    pub message_length: usize,
    /// Idle strategy of both loops when they cannot go on.
    pub idle: IdleStrategyKind,
    /// How long to run before measuring.
    pub warmup: Duration,
    /// How long to measure.
    pub measure: Duration,
    /// How long no message may arrive before that is an error.
    pub timeout: Duration,
}

impl Plan {
    /// The message that is published again and again.
    pub fn message(&self) -> Vec<u8> {
        (0..=u8::MAX).cycle().take(self.message_length).collect()
    }
}

/// Publishes on one thread, receives on another, and samples from this one, until the plan is
/// fulfilled or the interrupt requested. Returns the median of the rates of all slices in messages
/// per second. `mark` is called at the beginning of the measured time and at its end.
///
/// If the end cuts the last slice shorter than half of the others, that slice is left out, unless
/// it is the only one. At the return, all published messages have been received.
///
/// # Errors
/// - [`Failure::Run`] if the publication or the subscription was closed, if no message arrives for
///   longer than the plan's timeout, or if not all messages arrive;
/// - an error that `mark` returns.
pub fn measure<P: Publish, S: Poll>(
    publication: &mut P,
    subscription: &mut S,
    plan: &Plan,
    interrupt: &ShutdownSignal,
    mark: impl FnMut() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let message = plan.message();
    let publish =
        |run: &Run| publisher::publish(publication, &message, &mut plan.idle.new_strategy(), run);
    let receive = |run: &Run| {
        let mut idle = plan.idle.new_strategy();
        subscriber::receive(subscription, 0, plan, &mut idle, run)
    };
    measure_loops(vec![publish], receive, plan, interrupt, mark)
}

/// [`measure`], with loops of the caller's and any number of publishers, each on a thread of its
/// own.
///
/// # Errors
/// As [`measure`].
pub fn measure_loops<P, S>(
    publishers: Vec<P>,
    subscriber: S,
    plan: &Plan,
    interrupt: &ShutdownSignal,
    mark: impl FnMut() -> Result<(), Failure>,
) -> Result<f64, Failure>
where
    P: FnOnce(&Run) -> Result<u64, OfferError> + Send,
    S: FnOnce(&Run) -> Result<u64, PollError> + Send,
{
    let run = Run::new(publishers.len());
    // The threads' loops borrow the run, and own what they run.
    let shared = &run;
    let (rate, published, received) = thread::scope(|scope| {
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
        let rate = Sampler::new(&run, plan, interrupt).sample(mark);
        if rate.is_ok() {
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
        Ok::<_, Failure>((rate, published.iter().sum::<u64>(), received?))
    })?;
    let rate = rate?;
    if received != published * plan.message_length as u64 {
        return Err(Failure::Run(format!(
            "{received} bytes were received of {published} messages of {} bytes that were published",
            plan.message_length
        )));
    }
    Ok(rate)
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

/// Waits for the end of a thread.
///
/// # Errors
/// [`Failure::Run`] with its error, or if it panicked.
pub fn join<T, E: fmt::Display>(
    thread: ScopedJoinHandle<'_, Result<T, E>>,
    name: &str,
) -> Result<T, Failure> {
    match thread.join() {
        Ok(result) => result.map_err(|error| Failure::run(name, error)),
        Err(_) => Err(Failure::Run(format!("the {name}'s thread panicked"))),
    }
}

/// Reads the subscriber's counter at regular times.
struct Sampler<'a> {
    run: &'a Run,
    plan: &'a Plan,
    interrupt: &'a ShutdownSignal,
    /// The time of the last sample.
    taken: Instant,
    /// The received bytes in that sample.
    bytes: u64,
    /// For how long nothing has arrived, in whole slices: time in which the process was suspended
    /// does not count.
    silence: Duration,
}

impl<'a> Sampler<'a> {
    fn new(run: &'a Run, plan: &'a Plan, interrupt: &'a ShutdownSignal) -> Self {
        Self { run, plan, interrupt, taken: Instant::now(), bytes: 0, silence: Duration::ZERO }
    }

    /// The median rate of the measured time; 0 if that did not begin.
    fn sample(&mut self, mut mark: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
        if !self.plan.warmup.is_zero() {
            self.sample_phase(self.plan.warmup)?;
        }
        mark()?;
        if self.interrupt.is_signalled() || !self.run.is_running() {
            return Ok(0.0);
        }
        let rates = self.sample_phase(self.plan.measure)?;
        mark()?;
        Ok(median(&rates).unwrap_or(0.0))
    }

    /// The rates of slices.
    fn sample_phase(&mut self, length: Duration) -> Result<Vec<f64>, Failure> {
        let end = self.taken + length;
        let mut rates = Vec::new();
        let mut tick = self.taken;
        loop {
            tick += SLICE;
            // Later than planned, if the process was suspended: missed slices are not made up for.
            tick = tick.max(self.taken + SLICE / 2);
            let deadline = end.min(tick);
            let remaining = deadline.saturating_duration_since(Instant::now());
            let is_interrupted = self.interrupt.wait_timeout(remaining);
            let is_last = is_interrupted || !self.run.is_running() || deadline == end;
            let (elapsed, rate) = self.take();
            if is_counted(elapsed, is_last && rates.is_empty()) {
                rates.push(rate);
            }
            if is_last {
                return Ok(rates);
            }
            if self.silence >= self.plan.timeout {
                let silence = scan::format_duration(self.silence);
                return Err(Failure::Run(format!("no message has arrived for {silence}")));
            }
        }
    }

    /// The time since the last sample, and the messages per second.
    fn take(&mut self) -> (Duration, f64) {
        let bytes = self.run.received_bytes();
        let now = Instant::now();
        let elapsed = now - self.taken;
        let length = self.plan.message_length as u64;
        // The difference of whole messages counts a message in fragments once.
        let messages = bytes / length - self.bytes / length;
        self.silence = if bytes > self.bytes { Duration::ZERO } else { self.silence + SLICE };
        self.taken = now;
        self.bytes = bytes;
        (elapsed, messages as f64 / elapsed.max(Duration::from_nanos(1)).as_secs_f64())
    }
}

/// Returns whether a slice is long enough for a rate. Without any other, a short one counts, too.
fn is_counted(elapsed: Duration, is_only: bool) -> bool {
    elapsed >= SLICE / 2 || is_only
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
    use rusteron_client::Yielding;

    use super::*;
    use crate::measuring::message_path::pipe::{Sending, pipe};

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
        idle: IdleStrategyKind::Yielding,
        warmup: Duration::from_millis(5),
        measure: Duration::from_millis(25),
        timeout: Duration::from_secs(3600),
    };

    const ENDLESS: Plan = Plan { measure: Duration::from_secs(3600), ..PLAN };

    #[test]
    fn median_is_between_the_middle_values() {
        for (values, expected) in [
            (&[][..], None),
            (&[7.0], Some(7.0)),
            (&[4.0, 1.0, 3.0, 2.0], Some(2.5)),
            (&[9.0, 1.0, 3.0], Some(3.0)),
        ] {
            assert_eq!(median(values), expected);
        }
    }

    #[test]
    fn rates_are_whole_messages_in_the_real_time() {
        let (run, interrupt) = (Run::new(1), ShutdownSignal::new());
        let mut sampler = Sampler::new(&run, &PLAN, &interrupt);
        // The last byte of a message in fragments completes 1001 messages.
        for (before, bytes, messages) in [(0, 32_000, 1000.0), (31, 32_032, 1001.0), (32, 63, 0.0)]
        {
            let length = Duration::from_millis(1250);
            let taken = Instant::now().checked_sub(length).expect("a time");
            sampler.taken = taken;
            sampler.bytes = before;
            run.set_received_bytes(bytes);
            let (elapsed, rate) = sampler.take();
            assert!(elapsed >= length, "{elapsed:?}");
            assert_eq!(rate, messages / elapsed.as_secs_f64(), "{bytes} bytes after {before}");
            assert_eq!(sampler.bytes, bytes);
            assert_eq!(sampler.taken, taken + elapsed);
        }
    }

    #[test]
    fn short_last_slice_is_left_out() {
        assert!(is_counted(SLICE, false) && is_counted(SLICE / 2, false));
        assert!(!is_counted(SLICE / 10, false));
        assert!(is_counted(SLICE / 10, true), "the only slice counts");
        let (run, interrupt) = (Run::new(1), ShutdownSignal::new());
        let rates = Sampler::new(&run, &PLAN, &interrupt).sample_phase(SLICE / 10);
        assert_eq!(rates, Ok(vec![0.0]));
    }

    #[test]
    fn several_publishers_are_counted_together() {
        let (mut sender, mut receiver) = pipe();
        let second = Sending(sender.0.clone());
        let mut senders = [&mut sender, &mut { second }];
        let message = PLAN.message();
        let publishers = senders
            .iter_mut()
            .map(|sender| |run: &Run| publisher::publish(*sender, &message, &mut Yielding, run))
            .collect();
        let receive = |run: &Run| subscriber::receive(&mut receiver, 0, &PLAN, &mut Yielding, run);
        let mut marks = 0;
        let mark = || {
            marks += 1;
            Ok(())
        };
        measure_loops(publishers, receive, &PLAN, &ShutdownSignal::new(), mark).expect("a rate");
        assert_eq!(marks, 2);
    }

    #[test]
    fn missing_messages_are_a_failure() {
        let publish = |run: &Run| {
            while run.is_running() {
                thread::yield_now();
            }
            Ok(1)
        };
        let receive = |_: &Run| Ok(31);
        let interrupt = ShutdownSignal::new();
        let failure = measure_loops(vec![publish], receive, &PLAN, &interrupt, || Ok(()));
        let failure = failure.expect_err("a byte is missing").to_string();
        assert!(failure.starts_with("31 bytes were received of 1 messages"), "{failure}");
    }

    #[test]
    fn interrupt_ends_an_endless_plan() {
        let (mut sender, mut receiver) = pipe();
        let interrupt = ShutdownSignal::new();
        let mark = || {
            interrupt.signal();
            Ok(())
        };
        measure(&mut sender, &mut receiver, &ENDLESS, &interrupt, mark).expect("an end");
    }

    #[test]
    fn closed_streams_end_the_run() {
        let interrupt = ShutdownSignal::new();
        let (mut sender, _) = pipe();
        let failure = measure(&mut sender, &mut Hole, &ENDLESS, &interrupt, || Ok(()));
        assert!(matches!(failure, Err(Failure::Run(text)) if text.starts_with("publisher: ")));
        let (_, mut receiver) = pipe();
        let failure = measure(&mut Hole, &mut receiver, &ENDLESS, &interrupt, || Ok(()));
        assert!(matches!(failure, Err(Failure::Run(text)) if text.starts_with("subscriber: ")));
    }

    #[test]
    fn silence_is_a_failure_after_the_timeout() {
        let plan = Plan { timeout: Duration::from_millis(30), ..ENDLESS };
        let failure = measure(&mut Hole, &mut Hole, &plan, &ShutdownSignal::new(), || Ok(()));
        let failure = failure.expect_err("silence").to_string();
        assert!(failure.starts_with("no message has arrived for"), "{failure}");
    }

    #[test]
    fn failing_mark_ends_the_run() {
        let (mut sender, mut receiver) = pipe();
        let full = Failure::Run("full".to_owned());
        let mark = || Err(full.clone());
        let failure = measure(&mut sender, &mut receiver, &ENDLESS, &ShutdownSignal::new(), mark);
        assert_eq!(failure, Err(full));
    }
}
