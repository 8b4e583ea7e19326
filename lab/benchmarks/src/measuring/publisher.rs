//! The publisher's loop.

use rusteron_client::{IdleStrategy, OfferError};

use crate::measuring::message_path::Publish;
use crate::measuring::run::Run;

/// How many messages are published between two looks at whether to go on, as in Aeron's sample.
const BURST_LENGTH: usize = 1_000_000;

/// How many bytes are, at the most: long messages would make a burst last for minutes.
const BURST_BYTES: usize = 64 << 20;

/// How many messages of a length are published between two looks at whether to go on.
pub fn burst_length(message_length: usize) -> usize {
    BURST_LENGTH.min(BURST_BYTES.div_ceil(message_length.max(1)))
}

/// Publishes a message again and again, as fast as the subscriber allows, until the run is stopped.
/// Returns how many messages were accepted.
///
/// # Errors
/// Errors that do not pass by waiting; see [`OfferError::is_retryable`].
pub fn publish<P: Publish, I: IdleStrategy>(
    publication: &mut P,
    message: &[u8],
    idle: &mut I,
    run: &Run,
) -> Result<u64, OfferError> {
    let burst_length = burst_length(message.len());
    let mut messages = 0;
    let mut refusals = Refusals::default();
    'running: while run.is_running() {
        for _ in 0..burst_length {
            // The only offer in the program: the compiler builds it into the loop.
            while let Err(error) = publication.offer(message) {
                refusals.begin(error, messages, idle)?;
                if !run.is_running() {
                    break 'running;
                }
                idle.idle(0);
            }
            messages += 1;
        }
    }
    Ok(messages)
}

/// Refused offers. The counter of accepted offers is separate: it is all that the loop changes
/// while offers are accepted.
#[derive(Debug, Default)]
struct Refusals {
    /// How many messages had been published at the last refusal.
    at: Option<u64>,
}

impl Refusals {
    /// Lets the idle strategy start over at the first refusal of a message.
    #[cold]
    fn begin<I: IdleStrategy>(
        &mut self,
        error: OfferError,
        messages: u64,
        idle: &mut I,
    ) -> Result<(), OfferError> {
        if !error.is_retryable() {
            return Err(error);
        }
        if self.at != Some(messages) {
            self.at = Some(messages);
            idle.reset();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each offer with the result of a function of the offer's number.
    struct Scripted<F>(u64, F);

    impl<F: FnMut(u64) -> Result<(), OfferError> + Send> Publish for Scripted<F> {
        fn offer(&mut self, _message: &[u8]) -> Result<(), OfferError> {
            self.0 += 1;
            (self.1)(self.0)
        }
    }

    #[derive(Default)]
    struct Recorder(Vec<&'static str>);

    impl IdleStrategy for Recorder {
        fn idle(&mut self, _: usize) {
            self.0.push("idle");
        }
        fn reset(&mut self) {
            self.0.push("reset");
        }
    }

    #[test]
    fn rejected_offers_are_repeated_and_idling_starts_over() {
        let run = Run::new(1);
        let mut publication = Scripted(0, |offer| match offer {
            1 => Err(OfferError::NotConnected),
            2 => Err(OfferError::BackPressured),
            4 => Err(OfferError::AdminAction),
            7 => {
                run.stop();
                Err(OfferError::BackPressured)
            }
            _ => Ok(()),
        });
        let mut idle = Recorder::default();
        assert_eq!(publish(&mut publication, b"m", &mut idle, &run), Ok(3));
        assert_eq!(idle.0, ["reset", "idle", "idle", "reset", "idle", "reset"]);
    }

    #[test]
    fn stop_is_noticed_without_back_pressure() {
        let run = Run::new(1);
        let message = vec![0; BURST_BYTES / 4];
        let mut publication = Scripted(0, |_| {
            run.stop();
            Ok(())
        });
        assert_eq!(publish(&mut publication, &message, &mut Recorder::default(), &run), Ok(4));
    }
}
