//! Both kinds of publication, for code that works with either.

use std::io::IoSlice;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Instant;

use rusteron_core::error::{OfferError, Position};
use rusteron_core::idle::{Backoff, IdleStrategy};

use crate::client::wait::{self, WaitError};
use crate::constants::PublicationConstants;
use crate::publication::{
    BufferClaim, ExclusivePublication, OfferedBatch, Publication, PublicationHandle, fragments,
};

/// The methods that every publication and the trait have, written once. Threads share a publication
/// and send by `&self`; everything else sends by `&mut self`, which neither a trait nor a type that
/// both kinds dereference to can say.
macro_rules! offers {
    ($vis:vis $self:ident: ($($receiver:tt)+), $publisher:expr) => {
        /// Offers one message until it is accepted: retries until `deadline`, then makes one last
        /// attempt. Returns the position after the message.
        ///
        /// Retries while no subscriber is connected, under back pressure and while the log buffer
        /// is rotated. Backs off between two offers: spins, yields, then sleeps for up to a
        /// millisecond. For a client without a conductor thread, does the conductor's work as well.
        /// A deadline in the past means one offer. Allocates only for an error after the deadline.
        ///
        /// # Errors
        /// The message has not been sent:
        /// - [`WaitError::TimedOut`]: the last offer was rejected for the reason in `state`;
        /// - [`WaitError::Rejected`]: the message is too long, the stream has reached its maximum
        ///   position, or another process has overwritten the log buffer;
        /// - [`WaitError::Closed`]: the publication is closed;
        /// - [`WaitError::CalledFromConductor`]: called from a callback.
        ///
        /// ```
        /// # use rusteron_client::{Aeron, Context};
        /// # use rusteron_media_driver::MediaDriver;
        /// use std::time::{Duration, Instant};
        ///
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # let driver = MediaDriver::launch_embedded()?;
        /// # let mut context = Context::new()?;
        /// # context.set_dir(driver.aeron_dir())?;
        /// # let aeron = Aeron::connect(context)?;
        /// # let _subscription = aeron.add_subscription("aeron:ipc", 1001)?;
        /// let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
        /// publication.offer_until(b"hello", Instant::now() + Duration::from_secs(10))?;
        /// # Ok(())
        /// # }
        /// ```
        $vis fn offer_until(
            $($receiver)+,
            message: &[u8],
            deadline: Instant,
        ) -> Result<Position, WaitError> {
            $self.offer_deadline(message, deadline, &mut Backoff::default())
        }

        /// Offers one message until it is accepted, as [`offer_until`](Self::offer_until) does,
        /// with an idle strategy of the caller. The last idle is not cut short, so the call may
        /// last longer than the deadline by one idle.
        ///
        /// # Errors
        /// As for [`offer_until`](Self::offer_until).
        $vis fn offer_deadline(
            $($receiver)+,
            message: &[u8],
            deadline: Instant,
            idle: &mut impl IdleStrategy,
        ) -> Result<Position, WaitError> {
            let client = Arc::clone($self.handle().client());
            wait::until(&client, deadline, idle, || $self.offer(message))
                .map_err(|refusal| $self.handle().wait_error(refusal))
        }

        /// Offers one message whose bytes lie in several slices, such as a header and a body.
        ///
        /// The parts are written one after the other into the log buffer. Subscribers receive one
        /// message. The caller needs no buffer in which the parts are joined first. An [`IoSlice`]
        /// is a borrowed slice of bytes. No parts, or parts that are all empty, make an empty
        /// message.
        ///
        /// Otherwise as [`offer`](Self::offer). Does not block; does not allocate, except for a
        /// message of several fragments on Windows.
        ///
        /// # Errors
        /// As for [`offer`](Self::offer).
        ///
        /// ```
        /// # use rusteron_client::{Aeron, Context};
        /// # use rusteron_media_driver::MediaDriver;
        /// use std::io::IoSlice;
        ///
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # let driver = MediaDriver::launch_embedded()?;
        /// # let mut context = Context::new()?;
        /// # context.set_dir(driver.aeron_dir())?;
        /// # let aeron = Aeron::connect(context)?;
        /// # let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
        /// # let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
        /// # while !publication.is_connected() { std::thread::yield_now(); }
        /// let header = 7_u32.to_le_bytes();
        /// let body = b"body";
        /// publication.offer_parts(&[IoSlice::new(&header), IoSlice::new(body)])?;
        ///
        /// // The subscriber receives one message of 8 bytes.
        /// let handler = |message: &[u8], _: &rusteron_client::Header<'_>| {
        ///     assert_eq!(message, b"\x07\0\0\0body");
        /// };
        /// while subscription.poll(handler, 10)? == 0 {
        ///     std::thread::yield_now();
        /// }
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// Corresponds to `aeron_publication_offerv` and `aeron_exclusive_publication_offerv`.
        #[doc(alias(
            "aeron_publication_offerv",
            "aeron_exclusive_publication_offerv",
            "DirectBufferVector"
        ))]
        #[inline]
        $vis fn offer_parts($($receiver)+, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
            let length = fragments::total_length(parts);
            let publisher = $publisher;
            if length > sealed::Publisher::max_fragment(publisher, Internal(())) {
                let fill = fragments::with_parts(parts);
                return sealed::Publisher::offer_fragments(publisher, Internal(()), length, fill);
            }
            let mut claim = publisher.try_claim(length)?;
            fragments::copy_parts(parts, &mut claim);
            claim.commit()
        }

        /// Offers one message with reserved values; otherwise as [`offer`](Self::offer).
        ///
        /// For each fragment, the supplier gets the payload and returns the reserved value, such as
        /// a timestamp or a checksum. Subscribers read the value with
        /// [`Header::reserved_value`](crate::Header::reserved_value). The supplier is called after
        /// the range for the message has been claimed. Until it returns, no later message reaches a
        /// subscriber, not even one of another thread; so it should be quick.
        ///
        /// If the supplier panics, the panic goes through to the caller, and the message is not
        /// delivered: padding replaces it. Fragments before the panic have been sent, and no
        /// fragment follows them; assemblers drop them.
        ///
        /// # Errors
        /// As for [`offer`](Self::offer), and [`OfferError::Unblocked`] if the supplier took so
        /// long that the media driver has unblocked the claimed range, by turning it into padding.
        /// The driver does so for publications that threads share.
        ///
        /// Corresponds to `aeron_publication_offer` and `aeron_exclusive_publication_offer` with a
        /// supplier.
        #[doc(alias(
            "aeron_publication_offer",
            "aeron_exclusive_publication_offer",
            "ReservedValueSupplier"
        ))]
        #[inline]
        $vis fn offer_with_reserved_value(
            $($receiver)+,
            message: &[u8],
            mut supplier: impl FnMut(&[u8]) -> i64,
        ) -> Result<Position, OfferError> {
            let length = message.len();
            let publisher = $publisher;
            if length > sealed::Publisher::max_fragment(publisher, Internal(())) {
                let fill = fragments::with_reserved_values(message, supplier);
                return sealed::Publisher::offer_fragments(publisher, Internal(()), length, fill);
            }
            // If the supplier panics, the claim is aborted.
            let mut claim = publisher.try_claim(length)?;
            claim.copy_from_slice(message);
            let value = supplier(message);
            claim.set_reserved_value(value);
            claim.commit()
        }

        /// Returns the distance from the position to its limit, in bytes, frame headers included.
        /// Returns 0 if the position is at the limit or above.
        ///
        /// # Errors
        /// As for [`position`](Self::position).
        ///
        /// Corresponds to the difference of two functions of C.
        #[doc(alias = "availableWindow")]
        $vis fn available_window(&$self) -> Result<usize, OfferError> {
            $self.handle().window($self.position()?)
        }
    };
}

/// Declares methods of the handle, each a name and what it returns, for code that has the trait
/// only.
macro_rules! of_handle {
    ($($name:ident -> $returned:ty,)+) => {
        $(
            #[doc = concat!("As [`PublicationHandle::", stringify!($name), "`].")]
            fn $name(&self) -> $returned {
                self.handle().$name()
            }
        )+
    };
}

/// A publication of either kind: the parameter of functions that send messages.
///
/// Implemented by [`ExclusivePublication`], [`Publication`], `&Publication`, which threads share, and
/// [`AnyPublication`], whose kind is chosen at run time. The methods are those of the publications
/// themselves. [`handle`](Self::handle) leads to those that are not here.
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

    offers!(self: (&mut self), self);

    of_handle! {
        position_limit -> Result<Position, OfferError>,
        is_connected -> bool,
        is_closed -> bool,
        channel -> &str,
        stream_id -> i32,
        session_id -> i32,
        constants -> &PublicationConstants,
        max_message_length -> usize,
        max_payload_length -> usize,
    }
}

impl ExclusivePublication {
    offers!(pub self: (&mut self), self);
}

impl Publication {
    offers!(pub self: (&self), &mut { self });
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
