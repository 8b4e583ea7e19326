//! The publisher's loop.

use rusteron_client::{IdleStrategy, OfferError};

use crate::measuring::message_path::Publish;
use crate::measuring::run::Run;

/// How many messages are published between two looks at whether to go on, as in Aeron's sample.
const BURST_LENGTH: usize = 1_000_000;

/// How many bytes are, at the most: long messages would make a burst last for minutes.
const BURST_BYTES: usize = 64 << 20;

/// The counts of a publisher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Published {
    /// Messages that were accepted.
    pub messages: u64,
    /// Offers refused because the subscriber was behind.
    pub back_pressured: u64,
    /// Offers refused because the log buffer was being rotated.
    pub admin_actions: u64,
    /// Offers refused because no subscriber was connected.
    pub not_connected: u64,
}

impl Published {
    /// Adds up the counts of several publishers.
    pub fn sum(publishers: impl IntoIterator<Item = Self>) -> Self {
        publishers.into_iter().fold(Self::default(), |sum, one| Self {
            messages: sum.messages + one.messages,
            back_pressured: sum.back_pressured + one.back_pressured,
            admin_actions: sum.admin_actions + one.admin_actions,
            not_connected: sum.not_connected + one.not_connected,
        })
    }
}

/// How many messages of a length are published between two looks at whether to go on.
pub fn burst_length(message_length: usize) -> usize {
    BURST_LENGTH.min(BURST_BYTES.div_ceil(message_length.max(1)))
}

/// Publishes a message again and again, as fast as the subscriber allows, until the run is stopped.
///
/// # Errors
/// Errors that do not pass by waiting; see [`OfferError::is_retryable`].
pub fn publish<P: Publish, I: IdleStrategy>(
    publication: &mut P,
    message: &[u8],
    idle: &mut I,
    run: &Run<'_>,
) -> Result<Published, OfferError> {
    let burst_length = burst_length(message.len());
    let mut messages = 0;
    let mut refusals = Refusals::default();
    'running: while run.is_running() {
        for _ in 0..burst_length {
            // The only offer in the program: the compiler builds it into the loop.
            while let Err(error) = publication.offer(message) {
                refusals.count(error, messages, idle)?;
                if !run.is_running() {
                    break 'running;
                }
                idle.idle(0);
            }
            messages += 1;
        }
    }
    Ok(Published { messages, ..refusals.counts })
}

/// Refused offers. The counter of accepted offers is separate: it is all that the loop changes
/// while offers are accepted.
#[derive(Debug, Default)]
struct Refusals {
    counts: Published,
    /// How many messages had been published at the last refusal.
    at: Option<u64>,
}

impl Refusals {
    /// Counts a refusal; if it is the message's first, the idle strategy starts over.
    #[cold]
    fn count<I: IdleStrategy>(
        &mut self,
        error: OfferError,
        messages: u64,
        idle: &mut I,
    ) -> Result<(), OfferError> {
        match error {
            OfferError::BackPressured => self.counts.back_pressured += 1,
            OfferError::AdminAction => self.counts.admin_actions += 1,
            OfferError::NotConnected => self.counts.not_connected += 1,
            error => return Err(error),
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
    use rusteron_client::{CloseCause, NoOp};

    use super::*;
    use crate::command_line::interrupt::Interrupt;

    /// Answers each offer with the result of a function of the offer's number.
    struct Scripted<F>(u64, F);

    impl<F: FnMut(u64) -> Result<(), OfferError> + Send> Publish for Scripted<F> {
        fn offer(&mut self, _message: &[u8]) -> Result<(), OfferError> {
            self.0 += 1;
            (self.1)(self.0)
        }
    }

    #[test]
    fn refused_offers_are_repeated_and_counted() {
        let interrupt = Interrupt::default();
        let run = Run::new(&interrupt, 1);
        let mut publication = Scripted(0, |offer| match offer {
            1 => Err(OfferError::NotConnected),
            2 => Err(OfferError::BackPressured),
            4 => Err(OfferError::AdminAction),
            100 => {
                run.stop();
                Err(OfferError::BackPressured)
            }
            _ => Ok(()),
        });
        let published = publish(&mut publication, &[0; 32], &mut NoOp, &run);
        let expected =
            Published { messages: 96, back_pressured: 2, admin_actions: 1, not_connected: 1 };
        assert_eq!(published, Ok(expected));
    }

    #[test]
    fn each_message_has_its_idling_start_over() {
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

        let interrupt = Interrupt::default();
        let run = Run::new(&interrupt, 1);
        let mut publication = Scripted(0, |offer| match offer {
            1 | 2 | 4 => Err(OfferError::BackPressured),
            7 => {
                run.stop();
                Err(OfferError::BackPressured)
            }
            _ => Ok(()),
        });
        let mut idle = Recorder::default();
        let published = publish(&mut publication, b"m", &mut idle, &run);
        assert_eq!(published.map(|published| published.messages), Ok(3));
        assert_eq!(idle.0, ["reset", "idle", "idle", "reset", "idle", "reset"]);
    }

    #[test]
    fn what_does_not_pass_ends_the_loop() {
        let interrupt = Interrupt::default();
        for error in [OfferError::Closed(CloseCause::Handle), OfferError::MaxPositionExceeded] {
            let mut publication = Scripted(0, |offer| if offer < 9 { Ok(()) } else { Err(error) });
            let published = publish(&mut publication, b"m", &mut NoOp, &Run::new(&interrupt, 1));
            assert_eq!(published, Err(error));
        }
    }

    #[test]
    fn a_stop_is_noticed_without_back_pressure() {
        let interrupt = Interrupt::default();
        let run = Run::new(&interrupt, 1);
        let message = vec![0; BURST_BYTES / 4];
        let mut publication = Scripted(0, |_| {
            run.stop();
            Ok(())
        });
        let published = publish(&mut publication, &message, &mut NoOp, &run);
        assert_eq!(published.map(|published| published.messages), Ok(4));
    }
}
