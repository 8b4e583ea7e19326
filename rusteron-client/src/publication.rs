//! A publication that threads share.

use std::ffi::CStr;
use std::fmt;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rusteron_sys as sys;

use crate::buffer_claim::BufferClaim;
use crate::client::Client;
use crate::error::Result;
use crate::ffi::Fallible;
use crate::generated::PublicationConstants;
use crate::message_parts;
use crate::offer_error::{OfferError, Position};
use crate::registration::{Resource, poll_for_address, sealed};
use crate::reserved_value::Supplier;

/// Sends messages to the subscribers of a channel and stream; threads share it by reference.
///
/// Messages of several threads are put one after the other into the same log buffer, each whole. It
/// keeps its client open; dropping it tells the media driver that this publisher is gone, after what
/// was offered has been delivered.
///
/// Made by [`Aeron::add_publication`](crate::Aeron::add_publication).
pub struct Publication {
    pub(crate) raw: NonNull<sys::aeron_publication_t>,
    pub(crate) constants: PublicationConstants,
    pub(crate) client: Arc<Client>,
    /// Whether the conductor has been told to close it; nothing but dropping the rest is left then.
    pub(crate) is_handed_over: bool,
}

// SAFETY: this is Aeron's publication for concurrent use: its C functions move the shared tail with
// atomic operations and may be called from any number of threads.
unsafe impl Send for Publication {}
// SAFETY: as above.
unsafe impl Sync for Publication {}

impl Publication {
    /// Offers one message, of any length up to [`max_message_length`](Self::max_message_length) bytes,
    /// to the subscribers; if it does not fit in one fragment, it is sent in several.
    ///
    /// Copies the message into the log buffer and returns the position after it. Does not block,
    /// does not allocate; may be called from any thread.
    ///
    /// # Errors
    /// Nothing has been sent; see [`OfferError`].
    ///
    /// Corresponds to `aeron_publication_offer`.
    #[inline]
    pub fn offer(&self, message: &[u8]) -> Result<Position, OfferError> {
        let length = message.len();
        if length > self.max_message_length() {
            return Err(self.too_long(length));
        }
        // SAFETY: the publication is live and made for concurrent use; the message is readable for
        // its whole length, and without a supplier C calls nothing back.
        let returned = unsafe {
            let publication = self.raw.as_ptr();
            sys::aeron_publication_offer(
                publication,
                message.as_ptr(),
                length,
                None,
                ptr::null_mut(),
            )
        };
        OfferError::from_c(returned, length, self.max_message_length())
    }

    /// Offers one message that lies in several places, without putting it together first; otherwise
    /// as [`offer`](Self::offer). No parts are an empty message.
    ///
    /// Does not block; does not allocate, except on Windows.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    ///
    /// Corresponds to `aeron_publication_offerv`.
    pub fn offer_parts(&self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        // C adds the lengths up without looking for an overflow.
        let length = message_parts::total_length(parts);
        if length > self.max_message_length() {
            return Err(self.too_long(length));
        }
        let returned = message_parts::with_iovecs(parts, |iovecs, count| {
            let publication = self.raw.as_ptr();
            // SAFETY: as in `offer`; the parts are readable, and C does not write to them.
            unsafe {
                sys::aeron_publication_offerv(publication, iovecs, count, None, ptr::null_mut())
            }
        });
        OfferError::from_c(returned, length, self.max_message_length())
    }

    /// Offers one message with reserved values; otherwise as [`offer`](Self::offer).
    ///
    /// For each fragment the supplier is given the payload, and returns what subscribers read with
    /// [`Header::reserved_value`](crate::Header::reserved_value): a timestamp, a checksum. It is
    /// called when there is a place for the message, while nothing that is offered after it reaches
    /// anybody; so it should be quick. If it panics, the panic goes through to the caller, and the
    /// message is not delivered: padding takes its place. Fragments before the one that caused the
    /// panic have been sent then, and nothing follows them; assemblers drop them.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer), and [`OfferError::Unblocked`] if the supplier took so long that
    /// the media driver has turned the place into padding.
    ///
    /// Corresponds to `aeron_publication_offer` with a supplier.
    pub fn offer_with_reserved_value(
        &self,
        message: &[u8],
        mut supplier: impl FnMut(&[u8]) -> i64,
    ) -> Result<Position, OfferError> {
        let length = message.len();
        if length <= self.max_payload_length() {
            let mut claim = self.try_claim(length)?;
            claim.copy_from_slice(message);
            let value = supplier(message);
            claim.set_reserved_value(value);
            return claim.commit();
        }
        if length > self.max_message_length() {
            return Err(self.too_long(length));
        }
        let part = [IoSlice::new(message)];
        let returned = Supplier::call(supplier, |function, clientd| {
            message_parts::with_iovecs(&part, |iovecs, count| {
                let publication = self.raw.as_ptr();
                // SAFETY: as in `offer_parts`; the supplier lives during the call, and does not
                // unwind into C.
                unsafe {
                    sys::aeron_publication_offerv(publication, iovecs, count, function, clientd)
                }
            })
        });
        OfferError::from_c(returned, length, self.max_message_length())
    }

    /// Claims a place for a message of `length` bytes, up to
    /// [`max_payload_length`](Self::max_payload_length), to write it there without a copy.
    ///
    /// Does not block, does not allocate; may be called from any thread, also while there are other
    /// claims. A length of 0 is an empty message.
    ///
    /// # Errors
    /// Nothing has been claimed; see [`OfferError`].
    ///
    /// Corresponds to `aeron_publication_try_claim`.
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<BufferClaim<'_>, OfferError> {
        let mut claim = MaybeUninit::uninit();
        // SAFETY: the publication is live and made for concurrent use.
        let returned = unsafe {
            sys::aeron_publication_try_claim(self.raw.as_ptr(), length, claim.as_mut_ptr())
        };
        let position = OfferError::from_c(returned, length, self.max_payload_length())?;
        // SAFETY: with a position C has filled the claim in, for this caller alone. Its memory is
        // mapped as long as the publication lives: the conductor unmaps it on closing it, for which
        // `self` cannot be borrowed, or in `aeron_close`, before which `self` holds the client; the
        // death of the client or the driver marks the publication as closed and unmaps nothing.
        Ok(unsafe { BufferClaim::from_c(claim.assume_init_ref(), position) })
    }

    /// The C publication, for the functions that have no safe form.
    ///
    /// It is live as long as `self`. Closing it is never allowed.
    pub fn as_ptr(&self) -> *mut sys::aeron_publication_t {
        self.raw.as_ptr()
    }

    #[cold]
    fn too_long(&self, length: usize) -> OfferError {
        if self.is_closed() {
            return OfferError::Closed;
        }
        OfferError::MessageTooLong { length, max_message_length: self.max_message_length() }
    }
}

impl Resource for Publication {}

impl sealed::Resource for Publication {
    type Raw = NonNull<sys::aeron_publication_t>;
    type Callbacks = ();

    unsafe fn poll(
        registering: *mut sys::aeron_client_registering_resource_stct,
    ) -> Result<Option<Self::Raw>> {
        // SAFETY: handed on to the caller.
        unsafe { poll_for_address(sys::aeron_async_add_publication_poll, registering) }
    }

    unsafe fn cancel(
        client: *mut sys::aeron_t,
        registering: *mut sys::aeron_client_registering_resource_stct,
        (): (),
    ) -> i32 {
        // SAFETY: handed on to the caller.
        unsafe { sys::aeron_async_add_publication_cancel(client, registering) }
    }

    unsafe fn from_raw(raw: Self::Raw, client: Arc<Client>, (): ()) -> Result<Self> {
        let mut constants = MaybeUninit::uninit();
        // SAFETY: the publication is live, and C fills the structure in or fails.
        unsafe { sys::aeron_publication_constants(raw.as_ptr(), constants.as_mut_ptr()) }
            .into_result()?;
        // SAFETY: filled in just now; its channel lives as long as the publication.
        let constants = unsafe { PublicationConstants::from_raw(constants.assume_init_ref()) };
        Ok(Self { raw, constants, client, is_handed_over: false })
    }
}

impl sealed::Stream for Publication {
    unsafe fn add(
        registering: &mut *mut sys::aeron_client_registering_resource_stct,
        client: *mut sys::aeron_t,
        channel: &CStr,
        stream_id: i32,
        (): (),
    ) -> i32 {
        // SAFETY: handed on to the caller; C copies the channel.
        unsafe {
            sys::aeron_async_add_publication(registering, client, channel.as_ptr(), stream_id)
        }
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("channel", &self.channel())
            .field("stream_id", &self.stream_id())
            .field("session_id", &self.session_id())
            .field("is_connected", &self.is_connected())
            .field("client_is_closed", &self.client.is_closed())
            .finish()
    }
}
