//! The subscriber's loop.

use std::time::Instant;

use rusteron_client::{IdleStrategy, PollError};

use crate::measuring::measurement::{FRAGMENT_LIMIT, Plan};
use crate::measuring::message_path::Poll;
use crate::measuring::run::Run;

/// Receives until the run is stopped, and then the rest of the messages published until then.
/// Returns the bytes of all, with those that were received before.
///
/// # Errors
/// If the subscription was closed.
pub fn receive<S: Poll, I: IdleStrategy>(
    subscription: &mut S,
    mut bytes: u64,
    plan: &Plan,
    idle: &mut I,
    run: &Run,
) -> Result<u64, PollError> {
    let mut drain = None;
    loop {
        if !run.is_running() {
            let drain = drain.get_or_insert_with(|| Drain::new(bytes));
            if drain.is_finished(bytes, plan, run) {
                return Ok(bytes);
            }
        }
        // The only poll in the program: the compiler builds poll and handler into the loop.
        let fragments = subscription.poll(&mut bytes, FRAGMENT_LIMIT)?;
        if fragments > 0 {
            run.set_received_bytes(bytes);
        }
        idle.idle(fragments);
    }
}

/// After the stop: the subscriber still receives the messages that are on their way.
#[derive(Debug)]
struct Drain {
    /// How many bytes had been received at the last look, and when that had changed.
    bytes: u64,
    last_arrival: Instant,
}

impl Drain {
    #[cold]
    fn new(bytes: u64) -> Self {
        Self { bytes, last_arrival: Instant::now() }
    }

    /// Returns whether there is nothing more to wait for. If messages are missing, the caller will
    /// see it.
    #[cold]
    fn is_finished(&mut self, bytes: u64, plan: &Plan, run: &Run) -> bool {
        if bytes != self.bytes {
            self.bytes = bytes;
            self.last_arrival = Instant::now();
        }
        let expected = run.expected().map(|messages| messages * plan.message_length as u64);
        expected.is_some_and(|expected| bytes >= expected)
            || self.last_arrival.elapsed() >= plan.timeout
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rusteron_client::{IdleStrategyKind, NoOp};

    use super::*;

    /// Receives the result of a function of the poll's number, in messages of 32 bytes.
    struct Scripted<F>(u64, F);

    impl<F: FnMut(u64) -> Result<usize, PollError> + Send> Poll for Scripted<F> {
        fn poll(&mut self, bytes: &mut u64, _: usize) -> Result<usize, PollError> {
            self.0 += 1;
            let fragments = (self.1)(self.0)?;
            *bytes += 32 * fragments as u64;
            Ok(fragments)
        }
    }

    const PLAN: Plan = Plan {
        message_length: 32,
        idle: IdleStrategyKind::NoOp,
        warmup: Duration::ZERO,
        measure: Duration::ZERO,
        timeout: Duration::from_secs(3600),
    };

    #[test]
    fn messages_on_their_way_at_the_stop_are_received() {
        let run = Run::new(1);
        let mut subscription = Scripted(0, |poll| {
            Ok(match poll {
                1 => 10,
                3 => {
                    run.stop();
                    10
                }
                9 => {
                    run.add_published(27);
                    0
                }
                10 => 7,
                2 | 4..9 => 0,
                _ => unreachable!("everything has arrived"),
            })
        });
        assert_eq!(receive(&mut subscription, 0, &PLAN, &mut NoOp, &run), Ok(27 * 32));
        assert_eq!(run.received_bytes(), 27 * 32);
    }

    #[test]
    fn missing_messages_are_awaited_until_the_timeout() {
        let run = Run::new(1);
        run.add_published(1);
        run.stop();
        let plan = Plan { timeout: Duration::from_millis(1), ..PLAN };
        assert_eq!(receive(&mut Scripted(0, |_| Ok(0)), 0, &plan, &mut NoOp, &run), Ok(0));
    }

    #[test]
    fn abandoned_run_is_not_waited_for() {
        let run = Run::new(1);
        run.abandon();
        let mut subscription = Scripted(0, |_| unreachable!("nothing to wait for"));
        assert_eq!(receive(&mut subscription, 0, &PLAN, &mut NoOp, &run), Ok(0));
    }
}
