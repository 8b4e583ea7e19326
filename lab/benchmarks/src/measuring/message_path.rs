//! The way that messages go.
//!
//! The loops are generic over these traits, so that a comparison of this way with others differs in
//! nothing but the path.

use rusteron_client::{Header, OfferError, PollError, Publisher, Subscription};

use crate::measuring::measurement::FRAGMENT_LIMIT;

/// Sends messages.
pub trait Publish: Send {
    /// Offers one message.
    ///
    /// # Errors
    /// Nothing has been sent; see [`OfferError`].
    fn offer(&mut self, message: &[u8]) -> Result<(), OfferError>;
}

/// Receives messages and counts their bytes.
pub trait Poll: Send {
    /// Receives up to `fragment_limit` fragments, adds their payload lengths to `bytes` and returns
    /// how many they were.
    ///
    /// # Errors
    /// See [`PollError`].
    fn poll(&mut self, bytes: &mut u64, fragment_limit: usize) -> Result<usize, PollError>;
}

/// Through Rust.
impl<P: Publisher> Publish for P {
    #[inline(always)]
    fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
        Publisher::offer(self, message).map(|_| ())
    }
}

/// Through Rust.
impl Poll for Subscription {
    #[inline(always)]
    fn poll(&mut self, bytes: &mut u64, fragment_limit: usize) -> Result<usize, PollError> {
        let count = |fragment: &[u8], _: &Header<'_>| *bytes += fragment.len() as u64;
        Subscription::poll(self, count, fragment_limit)
    }
}

/// Receives messages for a round trip.
pub trait Receive: Send {
    /// Receives up to [`FRAGMENT_LIMIT`] messages, and returns how many they were.
    ///
    /// # Errors
    /// See [`PollError`].
    fn receive(&mut self, handler: impl FnMut(&[u8])) -> Result<usize, PollError>;
}

/// Through Rust.
impl Receive for Subscription {
    #[inline(always)]
    fn receive(&mut self, mut handler: impl FnMut(&[u8])) -> Result<usize, PollError> {
        Subscription::poll(self, |message: &[u8], _: &Header<'_>| handler(message), FRAGMENT_LIMIT)
    }
}

/// Through Rust, and in fragments, as the C functions do without an assembler.
#[derive(Debug)]
pub struct Fragments(pub Subscription);

impl Poll for Fragments {
    #[inline(always)]
    fn poll(&mut self, bytes: &mut u64, fragment_limit: usize) -> Result<usize, PollError> {
        let count = |fragment: &[u8], _: &Header<'_>| *bytes += fragment.len() as u64;
        self.0.poll_fragments(count, fragment_limit)
    }
}

/// A stream without Aeron.
#[cfg(test)]
pub(crate) mod pipe {
    use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

    use rusteron_client::{CloseCause, OfferError, PollError};

    use super::{Poll, Publish, Receive};

    pub(crate) struct Sending(pub(crate) SyncSender<Vec<u8>>);

    pub(crate) struct Receiving(Receiver<Vec<u8>>);

    pub(crate) fn pipe() -> (Sending, Receiving) {
        let (sender, receiver) = sync_channel(64);
        (Sending(sender), Receiving(receiver))
    }

    impl Publish for Sending {
        fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
            self.0.try_send(message.to_vec()).map_err(|error| match error {
                TrySendError::Full(_) => OfferError::BackPressured,
                TrySendError::Disconnected(_) => OfferError::Closed(CloseCause::Handle),
            })
        }
    }

    impl Receive for Receiving {
        fn receive(&mut self, mut handler: impl FnMut(&[u8])) -> Result<usize, PollError> {
            match self.0.try_recv() {
                Ok(message) => handler(&message),
                Err(TryRecvError::Empty) => return Ok(0),
                Err(TryRecvError::Disconnected) => {
                    return Err(PollError::Closed(CloseCause::Handle));
                }
            }
            Ok(1)
        }
    }

    impl Poll for Receiving {
        fn poll(&mut self, bytes: &mut u64, _: usize) -> Result<usize, PollError> {
            self.receive(|message| *bytes += message.len() as u64)
        }
    }
}
