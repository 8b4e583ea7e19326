//! Both kinds of publication, for code that works with either.

use std::io::IoSlice;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Instant;

use crate::client::wait::{self, WaitError};
use crate::constants::PublicationConstants;
use crate::publication::{
    BufferClaim, ExclusivePublication, OfferedBatch, Publication, PublicationHandle, fragments,
};
use rusteron_core::error::{OfferError, Position};
use rusteron_core::idle::{Backoff, IdleStrategy};

/// A publication of either kind: the parameter of functions that send messages.
///
/// Implemented by [`ExclusivePublication`], [`Publication`], `&Publication`, which threads share, and
/// [`AnyPublication`], whose kind is chosen at run time. The methods are those of the publications
/// themselves, whose documentation has the details. [`handle`](Self::handle) leads to those that are
/// not repeated here.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use rusteron_client::{Publisher, WaitError};
///
/// fn greet(publisher: &mut impl Publisher) -> Result<(), WaitError> {
///     let text = format!("hello from session {}", publisher.session_id());
///     publisher.offer_until(text.as_bytes(), Instant::now() + Duration::from_secs(10))?;
///     Ok(())
/// }
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// # let _subscription = aeron.add_subscription("aeron:ipc", 1001)?;
///
/// greet(&mut aeron.add_publication("aeron:ipc", 1001)?)?;
/// greet(&mut aeron.add_exclusive_publication("aeron:ipc", 1001)?)?;
/// # Ok(())
/// # }
/// ```
pub trait Publisher: sealed::Publisher + Send {
    /// Offers one message; see [`ExclusivePublication::offer`].
    ///
    /// # Errors
    /// Nothing has been sent; see [`OfferError`].
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError>;

    /// Offers one message whose bytes lie in several slices; see
    /// [`ExclusivePublication::offer_parts`].
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    #[inline]
    fn offer_parts(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        let length = fragments::total_length(parts);
        if length > self.max_fragment(Internal(())) {
            return self.offer_fragments(Internal(()), length, fragments::with_parts(parts));
        }
        let mut claim = self.try_claim(length)?;
        fragments::copy_parts(parts, &mut claim);
        claim.commit()
    }

    /// Offers one message with reserved values; see
    /// [`ExclusivePublication::offer_with_reserved_value`].
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    #[inline]
    fn offer_with_reserved_value(
        &mut self,
        message: &[u8],
        mut supplier: impl FnMut(&[u8]) -> i64,
    ) -> Result<Position, OfferError> {
        let length = message.len();
        if length > self.max_fragment(Internal(())) {
            let fill = fragments::with_reserved_values(message, supplier);
            return self.offer_fragments(Internal(()), length, fill);
        }
        // If the supplier panics, the claim is aborted.
        let mut claim = self.try_claim(length)?;
        claim.copy_from_slice(message);
        let value = supplier(message);
        claim.set_reserved_value(value);
        claim.commit()
    }

    /// Offers messages until one is rejected; see [`ExclusivePublication::offer_batch`].
    fn offer_batch<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> OfferedBatch;

    /// Claims a range of the log buffer for a message; see [`ExclusivePublication::try_claim`].
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    fn try_claim(&mut self, length: usize) -> Result<BufferClaim<'_>, OfferError>;

    /// Returns the position after all messages so far, in bytes.
    ///
    /// # Errors
    /// [`OfferError::Closed`] once the publication is closed; [`OfferError::CorruptLogBuffer`] if
    /// another process has overwritten the tail.
    fn position(&self) -> Result<Position, OfferError>;

    /// Returns the common part of all publications: state, ids, lengths and destinations.
    fn handle(&self) -> &PublicationHandle;

    /// Offers one message until it is accepted; see [`ExclusivePublication::offer_until`].
    ///
    /// # Errors
    /// The message has not been sent; see [`ExclusivePublication::offer_deadline`].
    fn offer_until(&mut self, message: &[u8], deadline: Instant) -> Result<Position, WaitError> {
        self.offer_deadline(message, deadline, &mut Backoff::default())
    }

    /// Offers one message until it is accepted, with an idle strategy; see
    /// [`ExclusivePublication::offer_deadline`].
    ///
    /// # Errors
    /// The message has not been sent; see [`ExclusivePublication::offer_deadline`].
    fn offer_deadline(
        &mut self,
        message: &[u8],
        deadline: Instant,
        idle: &mut impl IdleStrategy,
    ) -> Result<Position, WaitError> {
        let client = Arc::clone(self.handle().client());
        wait::until(&client, deadline, idle, || self.offer(message))
            .map_err(|refusal| self.handle().wait_error(refusal))
    }

    /// Returns the position below which messages are accepted, in bytes.
    ///
    /// # Errors
    /// [`OfferError::Closed`] once the publication is closed.
    fn position_limit(&self) -> Result<Position, OfferError> {
        self.handle().position_limit()
    }

    /// Returns the distance from the position to its limit, in bytes.
    ///
    /// # Errors
    /// As for [`position`](Self::position).
    fn available_window(&self) -> Result<usize, OfferError> {
        self.handle().window(self.position()?)
    }

    /// Returns whether a subscriber is connected.
    fn is_connected(&self) -> bool {
        self.handle().is_connected()
    }

    /// Returns whether the publication is closed.
    fn is_closed(&self) -> bool {
        self.handle().is_closed()
    }

    /// Returns the stream's channel.
    fn channel(&self) -> &str {
        self.handle().channel()
    }

    /// Returns the stream id within the channel.
    fn stream_id(&self) -> i32 {
        self.handle().stream_id()
    }

    /// Returns the session id.
    fn session_id(&self) -> i32 {
        self.handle().session_id()
    }

    /// Returns the publication's constants.
    fn constants(&self) -> &PublicationConstants {
        self.handle().constants()
    }

    /// Returns the greatest length of a message, in bytes.
    fn max_message_length(&self) -> usize {
        self.handle().max_message_length()
    }

    /// Returns the greatest length of a message that can be claimed, in bytes.
    fn max_payload_length(&self) -> usize {
        self.handle().max_payload_length()
    }
}

use sealed::Internal;

mod sealed {
    use super::{OfferError, Position, Range};

    /// Only this crate can make one. Any code with a `P: Publisher` can name this trait's methods, so
    /// they take this argument.
    #[derive(Debug)]
    pub struct Internal(pub(super) ());

    pub trait Publisher {
        /// Returns the greatest length of a message in one fragment, from the fields that offers read.
        fn max_fragment(&self, _: Internal) -> usize;

        /// Sends a message of several fragments; see `Publication::offer_fragments`.
        fn offer_fragments(
            &mut self,
            _: Internal,
            length: usize,
            fill: impl FnMut(Range<usize>, *mut u8),
        ) -> Result<Position, OfferError>;
    }
}

/// A publication whose kind is chosen at run time, such as by a setting.
///
/// Dereferences to the [`PublicationHandle`]; messages are sent through [`Publisher`].
#[derive(Debug)]
#[must_use = "the publication is closed when this is dropped"]
pub enum AnyPublication {
    /// A publication that threads can share.
    Shared(Publication),
    /// A publication with a log buffer of its own.
    Exclusive(ExclusivePublication),
}

impl Deref for AnyPublication {
    type Target = PublicationHandle;

    fn deref(&self) -> &PublicationHandle {
        match self {
            Self::Shared(publication) => publication,
            Self::Exclusive(publication) => publication,
        }
    }
}

impl From<Publication> for AnyPublication {
    fn from(publication: Publication) -> Self {
        Self::Shared(publication)
    }
}

impl From<ExclusivePublication> for AnyPublication {
    fn from(publication: ExclusivePublication) -> Self {
        Self::Exclusive(publication)
    }
}

/// Implements the trait by the functions of the same names of the publication that `self` is or holds.
macro_rules! publisher {
    ($publisher:ty, $self:ident: $($pattern:pat => $inner:ident: $publication:ty),+) => {
        impl sealed::Publisher for $publisher {
            #[inline]
            fn max_fragment(&$self, _: Internal) -> usize {
                match $self { $($pattern => $inner.fields.max_payload_length),+ }
            }

            fn offer_fragments(
                &mut $self,
                _: Internal,
                length: usize,
                fill: impl FnMut(Range<usize>, *mut u8),
            ) -> Result<Position, OfferError> {
                match $self { $($pattern => <$publication>::offer_fragments($inner, length, fill)),+ }
            }
        }

        impl Publisher for $publisher {
            #[inline]
            fn offer(&mut $self, message: &[u8]) -> Result<Position, OfferError> {
                match $self { $($pattern => <$publication>::offer($inner, message)),+ }
            }

            #[inline]
            fn offer_batch<M: AsRef<[u8]>>(&mut $self, messages: &[M]) -> OfferedBatch {
                match $self { $($pattern => <$publication>::offer_batch($inner, messages)),+ }
            }

            #[inline]
            fn try_claim(&mut $self, length: usize) -> Result<BufferClaim<'_>, OfferError> {
                match $self { $($pattern => <$publication>::try_claim($inner, length)),+ }
            }

            fn position(&$self) -> Result<Position, OfferError> {
                match $self { $($pattern => <$publication>::position($inner)),+ }
            }

            fn handle(&$self) -> &PublicationHandle {
                $self
            }
        }
    };
}

publisher!(ExclusivePublication, self: this => this: Self);
publisher!(Publication, self: this => this: Self);
publisher!(&Publication, self: this => this: Publication);
publisher!(
    AnyPublication,
    self:
    Self::Shared(this) => this: Publication,
    Self::Exclusive(this) => this: ExclusivePublication
);
