//! The subscriber's loop.

use std::time::{Duration, Instant};

use rusteron_client::{IdleStrategy, PollError};

use crate::measuring::message_path::Poll;
use crate::measuring::run::{Remainder, Run};

/// The facts that the subscriber needs besides its subscription.
#[derive(Debug, Clone, Copy)]
pub struct Expectation {
    /// The length of each message in bytes.
    pub message_length: usize,
    /// How many fragments a poll receives at the most.
    pub fragment_limit: usize,
    /// How long nothing may arrive, after the stop, before the rest is given up.
    pub timeout: Duration,
}

/// Receives until the run is stopped, and then the rest of the messages published until then. Returns the bytes of all.
///
/// # Errors
/// If the subscription was closed.
pub fn receive<S: Poll, I: IdleStrategy>(
    subscription: &mut S,
    expectation: Expectation,
    idle: &mut I,
    run: &Run,
) -> Result<u64, PollError> {
    go_on_receiving(subscription, 0, expectation, idle, run)
}

/// [`receive`], by a subscriber that has received something already.
///
/// # Errors
/// If the subscription was closed.
pub fn go_on_receiving<S: Poll, I: IdleStrategy>(
    subscription: &mut S,
    mut bytes: u64,
    expectation: Expectation,
    idle: &mut I,
    run: &Run,
) -> Result<u64, PollError> {
    let mut drain = None;
    loop {
        if !run.is_running() {
            let drain = drain.get_or_insert_with(|| Drain::new(bytes));
            if drain.is_finished(bytes, &expectation, run) {
                return Ok(bytes);
            }
        }
        // The only poll in the program: the compiler builds poll and handler into the loop.
        let fragments = subscription.poll(&mut bytes, expectation.fragment_limit)?;
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

    /// Returns whether there is nothing more to wait for. If messages are missing, the caller will see it.
    #[cold]
    fn is_finished(&mut self, bytes: u64, expectation: &Expectation, run: &Run) -> bool {
        if bytes != self.bytes {
            self.bytes = bytes;
            self.last_arrival = Instant::now();
        }
        let has_all = match run.remainder() {
            Remainder::Abandoned => true,
            Remainder::Messages(count) => bytes >= count * expectation.message_length as u64,
            Remainder::Unknown => false,
        };
        has_all || self.last_arrival.elapsed() >= expectation.timeout
    }
}

#[cfg(test)]
mod tests {
    use rusteron_client::{CloseCause, NoOp};

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

    const EXPECTATION: Expectation =
        Expectation { message_length: 32, fragment_limit: 10, timeout: Duration::from_secs(3600) };

    #[test]
    fn what_is_on_its_way_at_the_stop_is_received() {
        let run = Run::new(1);
        let mut subscription = Scripted(0, |poll| {
            Ok(match poll {
                1 => 10,
                2 => 0,
                3 => {
                    run.stop();
                    10
                }
                4..9 => 0,
                9 => {
                    run.add_published(27);
                    0
                }
                10 => 7,
                _ => unreachable!("everything has arrived"),
            })
        });
        let received = receive(&mut subscription, EXPECTATION, &mut NoOp, &run).expect("open");
        assert_eq!(received, 27 * 32);
        assert_eq!(run.received_bytes(), 27 * 32);
    }

    #[test]
    fn what_does_not_arrive_is_given_up() {
        let run = Run::new(1);
        run.add_published(1);
        run.stop();
        let expectation = Expectation { timeout: Duration::from_millis(1), ..EXPECTATION };
        let received = receive(&mut Scripted(0, |_| Ok(0)), expectation, &mut NoOp, &run);
        assert_eq!(received, Ok(0));
    }

    #[test]
    fn an_abandoned_run_is_not_waited_for() {
        let run = Run::new(1);
        run.abandon();
        let mut subscription = Scripted(0, |_| unreachable!("nothing to wait for"));
        assert!(receive(&mut subscription, EXPECTATION, &mut NoOp, &run).is_ok());
    }

    #[test]
    fn a_closed_subscription_ends_the_loop() {
        let mut subscription =
            Scripted(
                0,
                |poll| if poll < 5 { Ok(1) } else { Err(PollError::Closed(CloseCause::Handle)) },
            );
        let received = receive(&mut subscription, EXPECTATION, &mut NoOp, &Run::new(1));
        assert!(matches!(received, Err(PollError::Closed(_))));
    }
}
