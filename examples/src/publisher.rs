//! The publisher's loop.

use rusteron_client::{IdleStrategy, OfferError};

use crate::message_path::Publish;
use crate::number;
use crate::run::Run;

/// How many messages are published between two looks at whether to go on, as in Aeron's sample.
const BURST_LENGTH: usize = 1_000_000;

/// How many bytes are, at the most: long messages would make a burst last for minutes.
const BURST_BYTES: usize = 64 << 20;

/// What a publisher did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Published {
    /// Messages that were taken.
    pub messages: u64,
    /// Offers refused because the subscriber was behind.
    pub back_pressured: u64,
    /// Offers refused because the log buffer was being rotated.
    pub admin_actions: u64,
    /// Offers refused because no subscriber was connected.
    pub not_connected: u64,
}

impl Published {
    /// Refused offers, for whatever reason, for each message that was taken.
    pub fn back_pressure_ratio(&self) -> f64 {
        number::ratio(self.refused(), self.messages)
    }

    /// Refused offers, for whatever reason.
    pub fn refused(&self) -> u64 {
        self.back_pressured + self.admin_actions + self.not_connected
    }
}

/// Publishes a message again and again, as fast as the subscriber allows, until the run is stopped.
///
/// # Errors
/// What does not pass by waiting; see [`OfferError::is_retryable`].
pub fn publish<P: Publish, I: IdleStrategy>(
    publication: &mut P,
    message: &[u8],
    idle: &mut I,
    run: &Run<'_>,
) -> Result<Published, OfferError> {
    let burst_length = BURST_LENGTH.min(BURST_BYTES.div_ceil(message.len().max(1)));
    let mut published = Published::default();
    'running: while run.is_running() {
        for _ in 0..burst_length {
            if let Err(refusal) = publication.offer(message) {
                if !retry(publication, message, refusal, idle, &mut published, run)? {
                    break 'running;
                }
            }
            published.messages += 1;
        }
    }
    Ok(published)
}

/// Offers a message that was refused until it is taken: `true`; or until the run is stopped: `false`.
///
/// Apart from the loop above, which then needs no memory but the log buffer.
#[inline(never)]
fn retry<P: Publish, I: IdleStrategy>(
    publication: &mut P,
    message: &[u8],
    mut refusal: OfferError,
    idle: &mut I,
    published: &mut Published,
    run: &Run<'_>,
) -> Result<bool, OfferError> {
    idle.reset();
    loop {
        match refusal {
            OfferError::BackPressured => published.back_pressured += 1,
            OfferError::AdminAction => published.admin_actions += 1,
            OfferError::NotConnected => published.not_connected += 1,
            error => return Err(error),
        }
        if !run.is_running() {
            return Ok(false);
        }
        idle.idle(0);
        match publication.offer(message) {
            Ok(()) => return Ok(true),
            Err(error) => refusal = error,
        }
    }
}

#[cfg(test)]
mod tests {
    use rusteron_client::NoOp;

    use super::*;
    use crate::interrupt::Interrupt;

    /// Answers with what a function of the number of the offer says.
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
        let run = Run::new(&interrupt);
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
        assert_eq!(expected.back_pressure_ratio(), 4.0 / 96.0);
    }

    #[test]
    fn what_does_not_pass_ends_the_loop() {
        let interrupt = Interrupt::default();
        for error in [OfferError::Closed, OfferError::MaxPositionExceeded] {
            let mut publication = Scripted(0, |offer| if offer < 9 { Ok(()) } else { Err(error) });
            let published = publish(&mut publication, b"m", &mut NoOp, &Run::new(&interrupt));
            assert_eq!(published, Err(error));
        }
    }

    #[test]
    fn a_stop_is_noticed_without_back_pressure() {
        let interrupt = Interrupt::default();
        let run = Run::new(&interrupt);
        let message = vec![0; BURST_BYTES / 4];
        let mut publication = Scripted(0, |_| {
            run.stop();
            Ok(())
        });
        let published = publish(&mut publication, &message, &mut NoOp, &run);
        assert_eq!(published.map(|published| published.messages), Ok(4));
    }
}
