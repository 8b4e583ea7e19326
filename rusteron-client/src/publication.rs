//! A publication that threads share.

use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rusteron_sys as sys;

use crate::client::Client;
use crate::error::Result;
use crate::ffi::{Fallible, SendPtr};
use crate::generated::PublicationConstants;
use crate::offer_error::{OfferError, Position};
use crate::registration::{Resource, sealed};

/// Sends messages to the subscribers of a channel and stream; threads share it by reference.
///
/// Messages of several threads are put one after the other into the same log buffer, each whole. It
/// keeps its client open; dropping it tells the media driver that this publisher is gone, after what
/// was offered has been delivered.
///
/// Made by [`Aeron::add_publication`](crate::Aeron::add_publication).
pub struct Publication {
    raw: NonNull<sys::aeron_publication_t>,
    constants: PublicationConstants,
    client: Arc<Client>,
}

// SAFETY: this is Aeron's publication for concurrent use: its C functions move the shared tail with
// atomic operations and may be called from any number of threads.
unsafe impl Send for Publication {}
// SAFETY: as above.
unsafe impl Sync for Publication {}

impl Publication {
    /// Offers one message, of any length up to
    /// [`max_message_length`](PublicationConstants::max_message_length) bytes, to the subscribers;
    /// if it does not fit in one fragment, it is sent in several.
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
        // SAFETY: the publication is live and made for concurrent use; the message is readable for
        // its whole length, and without a supplier C calls nothing back.
        let returned = unsafe {
            sys::aeron_publication_offer(
                self.raw.as_ptr(),
                message.as_ptr(),
                message.len(),
                None,
                ptr::null_mut(),
            )
        };
        OfferError::from_c(returned, message.len(), self.constants.max_message_length)
    }

    /// Whether a subscriber has been heard of lately.
    ///
    /// Corresponds to `aeron_publication_is_connected`.
    pub fn is_connected(&self) -> bool {
        // SAFETY: the publication is live; the function reads atomics.
        unsafe { sys::aeron_publication_is_connected(self.raw.as_ptr()) }
    }

    /// Whether the client was closed by a fatal error, and this publication with it.
    ///
    /// Corresponds to `aeron_publication_is_closed`.
    pub fn is_closed(&self) -> bool {
        // SAFETY: the publication is live; the function reads an atomic flag.
        unsafe { sys::aeron_publication_is_closed(self.raw.as_ptr()) }
    }

    /// The position after everything that has been offered so far.
    ///
    /// # Errors
    /// [`OfferError::Closed`] once the publication is closed.
    ///
    /// Corresponds to `aeron_publication_position`.
    pub fn position(&self) -> Result<Position, OfferError> {
        // SAFETY: the publication is live; the function reads atomics.
        let returned = unsafe { sys::aeron_publication_position(self.raw.as_ptr()) };
        OfferError::from_c(returned, 0, 0)
    }

    /// The stream's channel, as it was given when the publication was added.
    pub fn channel(&self) -> &str {
        &self.constants.channel
    }

    /// The stream id within the channel.
    pub fn stream_id(&self) -> i32 {
        self.constants.stream_id
    }

    /// The number that tells this publisher from others of the same stream.
    pub fn session_id(&self) -> i32 {
        self.constants.session_id
    }

    /// What does not change during the publication's life: ids, lengths in bytes, counters.
    ///
    /// Corresponds to `aeron_publication_constants`.
    pub fn constants(&self) -> &PublicationConstants {
        &self.constants
    }
}

impl Resource for Publication {}

impl sealed::Resource for Publication {
    type Raw = sys::aeron_publication_t;
    type Callbacks = ();

    unsafe fn poll(
        raw: &mut *mut Self::Raw,
        registering: *mut sys::aeron_client_registering_resource_stct,
    ) -> i32 {
        // SAFETY: handed on to the caller.
        unsafe { sys::aeron_async_add_publication_poll(raw, registering) }
    }

    unsafe fn cancel(
        client: *mut sys::aeron_t,
        registering: *mut sys::aeron_client_registering_resource_stct,
        (): (),
    ) -> i32 {
        // SAFETY: handed on to the caller.
        unsafe { sys::aeron_async_add_publication_cancel(client, registering) }
    }

    unsafe fn from_raw(raw: NonNull<Self::Raw>, client: Arc<Client>, (): ()) -> Result<Self> {
        let mut constants = MaybeUninit::uninit();
        // SAFETY: the publication is live, and C fills the structure in or fails.
        unsafe { sys::aeron_publication_constants(raw.as_ptr(), constants.as_mut_ptr()) }
            .into_result()?;
        // SAFETY: filled in just now; its channel lives as long as the publication.
        let constants = unsafe { PublicationConstants::from_raw(constants.assume_init_ref()) };
        Ok(Self { raw, constants, client })
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

impl Drop for Publication {
    fn drop(&mut self) {
        let (raw, registration_id) = (SendPtr(self.raw.as_ptr()), self.constants.registration_id);
        self.client.release(move || {
            // SAFETY: the publication is live, and closing hands it over to the conductor, which frees
            // it; this was the only owner. If the client was ended by an error, nothing happens
            // here and the publication is freed with the client.
            let closed = unsafe { sys::aeron_publication_close(raw.get(), None, ptr::null_mut()) };
            if let Err(error) = closed.into_result() {
                log::debug!("publication {registration_id}: {error}");
            }
        });
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
