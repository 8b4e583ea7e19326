//! Messages through the C functions, called from Rust.

use std::ffi::c_void;
use std::ptr;

use rusteron_client::{
    CloseCause, ExclusivePublication, OfferError, PollError, Publication, Subscription,
};
use rusteron_sys as sys;

use crate::measuring::measurement::FRAGMENT_LIMIT;
use crate::measuring::message_path::{Poll, Publish, Receive};

/// A publication whose messages go through `aeron_exclusive_publication_offer`.
#[derive(Debug)]
pub struct CPublication(pub ExclusivePublication);

/// A publication of several threads, whose messages go through `aeron_publication_offer`.
#[derive(Debug, Clone, Copy)]
pub struct CConcurrentPublication<'a>(pub &'a Publication);

macro_rules! publish_with {
    ($offer:ident for $publication:ty) => {
        impl Publish for $publication {
            #[inline(always)]
            fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
                let (data, length, none) = (message.as_ptr(), message.len(), ptr::null_mut());
                let publication = self.0.as_ptr();
                // SAFETY: the publication is live, and is made for concurrent use or `&mut self` is
                // its only user; the message is readable for its whole length, and without a
                // supplier C calls nothing back.
                let returned = unsafe { sys::$offer(publication, data, length, None, none) };
                if returned >= 0 {
                    return Ok(());
                }
                Err(offer_error(returned, length, || self.0.constants().max_message_length))
            }
        }
    };
}

publish_with!(aeron_exclusive_publication_offer for CPublication);
publish_with!(aeron_publication_offer for CConcurrentPublication<'_>);

/// C does not say why a publication or subscription is closed.
pub(crate) const CLOSED: CloseCause = CloseCause::Fatal { code: sys::AERON_PUBLICATION_CLOSED };

/// Returns the meaning of a negative result of C's offer. All arguments are valid: C can object
/// only to the length of the message.
#[cold]
pub(crate) fn offer_error(
    returned: i64,
    length: usize,
    max_message_length: impl Fn() -> usize,
) -> OfferError {
    // Every one of them fits.
    match i32::try_from(returned).unwrap_or(sys::AERON_PUBLICATION_ERROR) {
        sys::AERON_PUBLICATION_NOT_CONNECTED => OfferError::NotConnected,
        sys::AERON_PUBLICATION_BACK_PRESSURED => OfferError::BackPressured,
        sys::AERON_PUBLICATION_ADMIN_ACTION => OfferError::AdminAction,
        sys::AERON_PUBLICATION_CLOSED => OfferError::Closed(CLOSED),
        sys::AERON_PUBLICATION_MAX_POSITION_EXCEEDED => OfferError::MaxPositionExceeded,
        _ => OfferError::MessageTooLong { length, max_message_length: max_message_length() },
    }
}

/// A subscription whose messages come through `aeron_subscription_poll`.
#[derive(Debug)]
pub struct CSubscription(pub Subscription);

impl CSubscription {
    #[inline(always)]
    fn poll_with<F: FnMut(&[u8])>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        // SAFETY: the subscription is live, and `&mut self` is its only user; `call::<F>` takes
        // `clientd` for what it is, an exclusive reference to an `F` that lasts for this call, in
        // which alone C calls it.
        let returned = unsafe {
            sys::aeron_subscription_poll(
                self.0.as_ptr(),
                Some(call::<F>),
                ptr::from_mut(&mut handler).cast(),
                fragment_limit,
            )
        };
        // C reports as an error that there is no handler; that it is closed, not at all.
        usize::try_from(returned).map_err(|_| PollError::Closed(CLOSED))
    }
}

impl Poll for CSubscription {
    #[inline(always)]
    fn poll(&mut self, bytes: &mut u64, fragment_limit: usize) -> Result<usize, PollError> {
        self.poll_with(|fragment| *bytes += fragment.len() as u64, fragment_limit)
    }
}

impl Receive for CSubscription {
    #[inline(always)]
    fn receive(&mut self, handler: impl FnMut(&[u8])) -> Result<usize, PollError> {
        self.poll_with(handler, FRAGMENT_LIMIT)
    }
}

/// Calls the handler behind `clientd`. A panic in it ends the process, as in any function that C
/// calls.
///
/// # Safety
/// `clientd` points to an `F` that no other code uses meanwhile, and `buffer` to `length` bytes.
unsafe extern "C" fn call<F: FnMut(&[u8])>(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    _header: *mut sys::aeron_header_t,
) {
    // SAFETY: by the contract, which `poll_with` and C keep.
    unsafe { (*clientd.cast::<F>())(std::slice::from_raw_parts(buffer, length)) };
}
