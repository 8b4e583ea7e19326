//! Round trips: one thread sends messages, another sends them back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rusteron_client::{IdleStrategy, PollError};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_core::scan;
use rusteron_test_support::programs::Process;

use crate::measuring::measurement::{self, Plan};
use crate::measuring::message_path::{Publish, Receive};
use crate::processes::java;

/// The longest latency that is told apart, in nanoseconds: a minute.
const LONGEST: u64 = 60_000_000_000;

/// After how many idle iterations a loop looks whether it should still wait.
const IDLE_ITERATIONS: u32 = 1024;

/// The shortest message: it holds the time at which it was sent.
pub const MIN_MESSAGE_LENGTH: usize = size_of::<u64>();

/// An empty histogram of latencies in nanoseconds, with three significant digits.
///
/// # Errors
/// None that could happen: the bounds are valid.
pub fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new_with_bounds(1, LONGEST, 3).map_err(|error| Failure::run("histogram", error))
}

/// Reads the histogram that a process prints: `latency NANOSECONDS COUNT` for each value, and a
/// line that begins with `done`, which is returned. Lines before that say `ready`.
///
/// # Errors
/// [`Failure::Run`] if the process ends, or prints anything else; [`Failure::Interrupted`].
pub fn read_histogram(
    program: &mut Process,
    interrupt: &ShutdownSignal,
) -> Result<(Histogram<u64>, String), Failure> {
    let mut histogram = histogram()?;
    loop {
        let line = program.line(interrupt)?;
        let mut fields = line.split(' ');
        match fields.next() {
            Some("ready") => {}
            Some("latency") => {
                let nanos = java::number(&line, fields.next())?;
                histogram.saturating_record_n(nanos, java::number(&line, fields.next())?);
            }
            Some("done") => return Ok((histogram, line)),
            _ => return Err(Failure::Run(format!("not understood: {line:?}"))),
        }
    }
}

/// Where a thread sends to and receives from.
#[derive(Debug)]
pub struct End<P, S> {
    /// The publication that the thread sends to.
    pub publication: P,
    /// The subscription that the thread receives from.
    pub subscription: S,
}

/// Measures the latencies of messages from one end to the other, on a thread of its own, and back.
/// An interrupt ends it early.
///
/// With an interval, messages are sent at fixed times. Latencies are counted from these times, also
/// for messages that could not be sent in time because other threads were slow. Without one, each
/// is sent as soon as the last one is back.
///
/// # Errors
/// [`Failure::Run`] if a stream is closed, or a message is on its way for longer than the plan's
/// timeout.
pub fn measure<P: Publish, S: Receive>(
    near: &mut End<P, S>,
    far: &mut End<P, S>,
    plan: &Plan,
    interval: Option<Duration>,
    interrupt: &ShutdownSignal,
) -> Result<Histogram<u64>, Failure> {
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        // Ends the other thread however this one ends.
        let stop = Stop(&running);
        let ponger = measurement::spawn(scope, "pong", || {
            let _stop = Stop(&running);
            pong(far, &mut plan.idle.new_strategy(), &running)
        })?;
        let measured = ping(near, plan, interval, &running, interrupt);
        drop(stop);
        // Where both have failed, this is the cause.
        measurement::join(ponger, "pong")?;
        measured
    })
}

/// Clears a flag when dropped.
#[derive(Debug)]
pub struct Stop<'a>(pub &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Sends back whatever comes, until told to stop.
///
/// # Errors
/// [`Failure::Run`] if a stream is closed.
pub fn pong<P: Publish, S: Receive>(
    end: &mut End<P, S>,
    idle: &mut impl IdleStrategy,
    running: &AtomicBool,
) -> Result<(), Failure> {
    while running.load(Ordering::Relaxed) {
        let mut failure = None;
        let messages = end
            .subscription
            .receive(|message| {
                while let Err(error) = end.publication.offer(message) {
                    if !error.is_retryable() {
                        failure = Some(error);
                    }
                    if failure.is_some() || !running.load(Ordering::Relaxed) {
                        break;
                    }
                    idle.idle(0);
                }
            })
            .map_err(|error| Failure::run("poll", error))?;
        if let Some(error) = failure {
            return Err(Failure::run("offer", error));
        }
        idle.idle(messages);
    }
    Ok(())
}

/// Sends messages to a thread that sends them back while `running`, and measures how long that
/// takes.
///
/// # Errors
/// As [`measure`].
pub fn ping<P: Publish, S: Receive>(
    end: &mut End<P, S>,
    plan: &Plan,
    interval: Option<Duration>,
    running: &AtomicBool,
    interrupt: &ShutdownSignal,
) -> Result<Histogram<u64>, Failure> {
    let mut pinger = Pinger {
        message: vec![0; plan.message_length.max(MIN_MESSAGE_LENGTH)],
        histogram: histogram()?,
        start: Instant::now(),
        measure_from: nanos(plan.warmup),
        sent: 0,
        received: 0,
    };
    let watch = Watch { plan, running, interrupt, iterations: 0, since: pinger.start };
    let finished = match interval {
        None => pinger.ping_pong(end, watch),
        Some(interval) => pinger.pace(end, nanos(interval).max(1), watch),
    };
    match finished {
        Ok(()) | Err(Failure::Interrupted) => Ok(pinger.histogram),
        Err(failure) => Err(failure),
    }
}

/// As messages carry it.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The state of the thread that measures. All times are nanoseconds since the start.
struct Pinger {
    message: Vec<u8>,
    histogram: Histogram<u64>,
    start: Instant,
    measure_from: u64,
    sent: u64,
    received: u64,
}

impl Pinger {
    fn now(&self) -> u64 {
        nanos(self.start.elapsed())
    }

    /// Offers a message that carries a time; `false` if that has to be repeated.
    #[inline(always)]
    fn offer<P: Publish>(&mut self, publication: &mut P, time: u64) -> Result<bool, Failure> {
        self.message[..MIN_MESSAGE_LENGTH].copy_from_slice(&time.to_ne_bytes());
        match publication.offer(&self.message) {
            Ok(()) => {
                self.sent += 1;
                Ok(true)
            }
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(Failure::run("ping", error)),
        }
    }

    /// Receives the messages that have come back.
    #[inline(always)]
    fn poll<S: Receive>(&mut self, subscription: &mut S) -> Result<usize, Failure> {
        let messages = subscription.receive(|message| {
            let time = message.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            if time >= self.measure_from {
                let latency = nanos(self.start.elapsed()).saturating_sub(time);
                self.histogram.saturating_record(latency.max(1));
            }
            self.received += 1;
        });
        messages.map_err(|error: PollError| Failure::run("ping", error))
    }

    fn ping_pong<P: Publish, S: Receive>(
        &mut self,
        end: &mut End<P, S>,
        mut watch: Watch<'_>,
    ) -> Result<(), Failure> {
        let mut idle = watch.plan.idle.new_strategy();
        let until = self.measure_from.saturating_add(nanos(watch.plan.measure));
        loop {
            if watch.interrupt.is_signalled() {
                return Err(Failure::Interrupted);
            }
            let now = self.now();
            // At least one, however long the scheduler keeps it.
            if now >= until && !self.histogram.is_empty() {
                return Ok(());
            }
            while !self.offer(&mut end.publication, now)? {
                watch.idle(&mut idle, 0)?;
            }
            while self.received < self.sent {
                let messages = self.poll(&mut end.subscription)?;
                watch.idle(&mut idle, messages)?;
            }
        }
    }

    fn pace<P: Publish, S: Receive>(
        &mut self,
        end: &mut End<P, S>,
        interval: u64,
        mut watch: Watch<'_>,
    ) -> Result<(), Failure> {
        let mut idle = watch.plan.idle.new_strategy();
        let until = self.measure_from.saturating_add(nanos(watch.plan.measure));
        let mut intended = 0;
        while intended < until || self.received < self.sent {
            let mut work = 0;
            // One at a time, so that late messages do not delay the reading of those that have come
            // back.
            if intended < until
                && self.now() >= intended
                && self.offer(&mut end.publication, intended)?
            {
                intended += interval;
                work = 1;
            }
            work += self.poll(&mut end.subscription)?;
            let is_nothing_due = self.received == self.sent;
            watch.idle_until_due(&mut idle, work, is_nothing_due)?;
        }
        Ok(())
    }
}

/// Looks now and then whether waiting still makes sense.
struct Watch<'a> {
    plan: &'a Plan,
    running: &'a AtomicBool,
    interrupt: &'a ShutdownSignal,
    /// Iterations without work.
    iterations: u32,
    /// When they began, roughly.
    since: Instant,
}

impl Watch<'_> {
    /// Idles if there was no work.
    #[inline(always)]
    fn idle<I: IdleStrategy>(&mut self, idle: &mut I, work: usize) -> Result<(), Failure> {
        self.idle_until_due(idle, work, false)
    }

    /// Idles as [`idle`](Self::idle) does. If no message is due to come back, the timeout does not
    /// count.
    #[inline(always)]
    fn idle_until_due<I: IdleStrategy>(
        &mut self,
        idle: &mut I,
        work: usize,
        is_nothing_due: bool,
    ) -> Result<(), Failure> {
        if work > 0 {
            self.iterations = 0;
        } else {
            self.iterations += 1;
            if self.iterations % IDLE_ITERATIONS == 0 {
                self.look(is_nothing_due)?;
            }
        }
        idle.idle(work);
        Ok(())
    }

    #[cold]
    fn look(&mut self, is_nothing_due: bool) -> Result<(), Failure> {
        if self.interrupt.is_signalled() {
            return Err(Failure::Interrupted);
        }
        if !self.running.load(Ordering::Relaxed) {
            return Err(Failure::Run("ping: the other side has ended".to_owned()));
        }
        if self.iterations == IDLE_ITERATIONS || is_nothing_due {
            self.since = Instant::now();
            self.iterations = IDLE_ITERATIONS;
        } else if self.since.elapsed() >= self.plan.timeout {
            let waited = scan::format_duration(self.plan.timeout);
            return Err(Failure::Run(format!("ping: nothing has come back for {waited}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rusteron_client::{IdleStrategyKind, OfferError, Yielding};

    use super::*;
    use crate::measuring::message_path::pipe::{Receiving, Sending, pipe};

    type PipeEnd = End<Sending, Receiving>;

    fn ends() -> (PipeEnd, PipeEnd) {
        let ((pings, far), (pongs, near)) = (pipe(), pipe());
        (
            End { publication: pings, subscription: near },
            End { publication: pongs, subscription: far },
        )
    }

    const PLAN: Plan = Plan {
        message_length: 32,
        idle: IdleStrategyKind::Yielding,
        warmup: Duration::ZERO,
        measure: Duration::from_millis(20),
        timeout: Duration::from_secs(3600),
    };

    const INTERVAL: Option<Duration> = Some(Duration::from_millis(1));

    fn measured(plan: &Plan, interval: Option<Duration>) -> Histogram<u64> {
        let (mut near, mut far) = ends();
        measure(&mut near, &mut far, plan, interval, &ShutdownSignal::new()).expect("latencies")
    }

    #[test]
    fn every_round_trip_after_the_warmup_is_counted() {
        let closed = measured(&PLAN, None);
        assert!(!closed.is_empty() && closed.min() > 0);
        assert_eq!(measured(&PLAN, INTERVAL).len(), 20);
        let warmup = Duration::from_millis(15);
        let plan = Plan { warmup, measure: Duration::from_millis(5), ..PLAN };
        assert_eq!(measured(&plan, INTERVAL).len(), 5);
    }

    #[test]
    fn waiting_to_be_sent_is_part_of_a_latency() {
        /// Takes a message only at the third time it is asked to, a while after the first.
        struct Slow(u32, Sending);
        impl Publish for Slow {
            fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
                self.0 += 1;
                if self.0 < 3 {
                    thread::sleep(Duration::from_millis(10));
                    return Err(OfferError::BackPressured);
                }
                self.1.offer(message)
            }
        }
        let (near, mut far) = ends();
        let mut near =
            End { publication: Slow(0, near.publication), subscription: near.subscription };
        let running = AtomicBool::new(true);
        let histogram = thread::scope(|scope| {
            let stop = Stop(&running);
            scope.spawn(|| pong(&mut far, &mut Yielding, &running));
            let histogram = ping(&mut near, &PLAN, INTERVAL, &running, &ShutdownSignal::new());
            drop(stop);
            histogram
        })
        .expect("latencies");
        assert_eq!(histogram.len(), 20);
        // The first was to be sent 20 ms before it was, the tenth 11 ms.
        assert!(histogram.max() >= 19_900_000, "{}", histogram.max());
        assert!(histogram.value_at_quantile(0.5) >= 10_000_000);
    }

    #[test]
    fn message_that_does_not_come_back_is_a_failure() {
        let (mut near, _far) = ends();
        let plan = Plan { timeout: Duration::from_millis(1), ..PLAN };
        let running = AtomicBool::new(true);
        let failure = ping(&mut near, &plan, None, &running, &ShutdownSignal::new());
        let text = "ping: nothing has come back for 1ms".to_owned();
        assert_eq!(failure.map(|_| ()), Err(Failure::Run(text)));
    }

    #[test]
    fn interrupt_or_closed_stream_ends_it() {
        let plan = Plan { measure: Duration::from_secs(3600), ..PLAN };
        let (mut near, mut far) = ends();
        let interrupt = ShutdownSignal::new();
        interrupt.signal();
        measure(&mut near, &mut far, &plan, None, &interrupt).expect("what was measured");
        drop(far);
        let (_, mut elsewhere) = ends();
        let failure = measure(&mut near, &mut elsewhere, &plan, None, &ShutdownSignal::new());
        failure.expect_err("a closed stream");
    }
}
