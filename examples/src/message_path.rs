//! The two ways a message can go: through Rust, and through the C functions.
//!
//! The loops are generic over these traits, so that a comparison differs in nothing but the path.

use std::ffi::c_void;
use std::ptr;

use rusteron_client::{ExclusivePublication, Header, OfferError, PollError, Subscription};
use rusteron_sys as sys;

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
impl Publish for ExclusivePublication {
    #[inline(always)]
    fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
        ExclusivePublication::offer(self, message).map(|_| ())
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

/// A publication whose messages go through `aeron_exclusive_publication_offer`.
#[derive(Debug)]
pub struct CPublication(pub ExclusivePublication);

impl Publish for CPublication {
    #[inline(always)]
    fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
        // SAFETY: the publication is live and `&mut self` is its only user; the message is readable
        // for its whole length, and without a supplier C calls nothing back.
        let returned = unsafe {
            sys::aeron_exclusive_publication_offer(
                self.0.as_ptr(),
                message.as_ptr(),
                message.len(),
                None,
                ptr::null_mut(),
            )
        };
        if returned >= 0 { Ok(()) } else { Err(self.error(returned, message.len())) }
    }
}

impl CPublication {
    #[cold]
    fn error(&self, returned: i64, length: usize) -> OfferError {
        // Every one of them fits.
        match i32::try_from(returned).unwrap_or(sys::AERON_PUBLICATION_ERROR) {
            sys::AERON_PUBLICATION_NOT_CONNECTED => OfferError::NotConnected,
            sys::AERON_PUBLICATION_BACK_PRESSURED => OfferError::BackPressured,
            sys::AERON_PUBLICATION_ADMIN_ACTION => OfferError::AdminAction,
            sys::AERON_PUBLICATION_CLOSED => OfferError::Closed,
            sys::AERON_PUBLICATION_MAX_POSITION_EXCEEDED => OfferError::MaxPositionExceeded,
            // The arguments are valid: their length is all that C can object to.
            _ => OfferError::MessageTooLong {
                length,
                max_message_length: self.0.constants().max_message_length,
            },
        }
    }
}

/// A subscription whose messages come through `aeron_subscription_poll`.
#[derive(Debug)]
pub struct CSubscription(pub Subscription);

impl Poll for CSubscription {
    #[inline(always)]
    fn poll(&mut self, bytes: &mut u64, fragment_limit: usize) -> Result<usize, PollError> {
        // SAFETY: the subscription is live, and `&mut self` is its only user; the handler takes
        // `clientd` for what it is, an exclusive reference to a `u64` that lasts for this call, in
        // which alone C calls the handler.
        let returned = unsafe {
            sys::aeron_subscription_poll(
                self.0.as_ptr(),
                Some(count),
                ptr::from_mut(bytes).cast(),
                fragment_limit,
            )
        };
        // C reports as an error that there is no handler; that it is closed, not at all.
        usize::try_from(returned).map_err(|_| PollError::Closed)
    }
}

/// Adds the length of a fragment to the `u64` behind `clientd`.
///
/// # Safety
/// `clientd` points to a `u64` that nobody else uses meanwhile.
unsafe extern "C" fn count(
    clientd: *mut c_void,
    _buffer: *const u8,
    length: usize,
    _header: *mut sys::aeron_header_t,
) {
    // SAFETY: by the contract, which `CSubscription::poll` keeps.
    unsafe { *clientd.cast::<u64>() += length as u64 };
}
