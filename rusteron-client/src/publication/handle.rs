//! The common part of both kinds of publication.

use std::ffi::c_int;
use std::mem::{self, MaybeUninit};
use std::net::SocketAddr;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Instant;

use rusteron_core::channel::{AsChannel, ChannelUse};
use rusteron_core::channel::{ChannelStatus, local_addresses};
#[cfg(doc)]
use rusteron_core::error::ErrorKind;
use rusteron_core::error::{OfferError, Position, Result};
use rusteron_core::ffi::callback::{self, Notification, notify};
use rusteron_core::ffi::{Fallible, ForkGuard};
use rusteron_core::idle::IdleStrategy;
use rusteron_core::log_buffer::{CounterValue, HEADER_LENGTH, align};
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::destination::DestinationRegistration;
use crate::client::registration::Request;
use crate::client::wait::{self, Refusal, WaitError};
use crate::constants::PublicationConstants;

/// The common part of a [`Publication`](crate::Publication) and an
/// [`ExclusivePublication`](crate::ExclusivePublication): state, ids, lengths and destinations.
///
/// Both kinds dereference to it, so its methods are called on the publication itself. The methods
/// correspond to functions of C named `aeron_publication_…` for shared publications, as given, and
/// `aeron_exclusive_publication_…` for exclusive ones.
#[doc(alias(
    "aeron_exclusive_publication_is_connected",
    "aeron_exclusive_publication_is_closed",
    "aeron_exclusive_publication_position_limit",
    "aeron_exclusive_publication_channel_status",
    "aeron_exclusive_publication_local_sockaddrs",
    "aeron_exclusive_publication_constants",
    "aeron_exclusive_publication_async_add_destination",
    "aeron_exclusive_publication_async_remove_destination",
    "aeron_exclusive_publication_async_remove_destination_by_id"
))]
pub struct PublicationHandle {
    raw: RawPublication,
    pub(crate) limit: CounterValue,
    constants: PublicationConstants,
    client: Arc<Client>,
    /// For the log buffer, and against offers: no claim of the parent can be committed in a forked
    /// child. `None` once the conductor may free the publication.
    fork_guard: Option<ForkGuard>,
    /// True once the conductor has been told to close this publication. Only dropping the other
    /// fields follows then.
    is_handed_over: bool,
}

/// C's publication, which is live as long as the handle.
#[derive(Clone, Copy)]
pub(crate) enum RawPublication {
    Shared(NonNull<sys::aeron_publication_t>),
    Exclusive(NonNull<sys::aeron_exclusive_publication_t>),
}

// SAFETY: nothing in the C structures is tied to a thread.
unsafe impl Send for RawPublication {}
// SAFETY: by a shared reference the handle reads atomics and constants, and sends commands to the
// conductor, which C allows on any thread for both kinds. It does not reach the tail, which belongs
// to the writer of an exclusive publication.
unsafe impl Sync for RawPublication {}

/// Calls C's function for the kind of publication, with further arguments.
macro_rules! c {
    ($raw:expr, $shared:ident, $exclusive:ident $(, $argument:expr)*) => {
        match $raw {
            RawPublication::Shared(raw) => sys::$shared(raw.as_ptr() $(, $argument)*),
            RawPublication::Exclusive(raw) => sys::$exclusive(raw.as_ptr() $(, $argument)*),
        }
    };
}

impl PublicationHandle {
    /// Takes over a publication of C, which the handle closes in the end.
    ///
    /// # Safety
    /// The publication is live, belongs to `client`, and has no other owner. The fields are its own,
    /// which the shim has read.
    pub(crate) unsafe fn new(
        raw: RawPublication,
        client: Arc<Client>,
        fields: &sys::rusteron_publication_t,
    ) -> Result<Self> {
        let mut constants = MaybeUninit::uninit();
        // SAFETY: the publication is live; C fills the structure in or fails.
        let outcome = unsafe {
            c!(
                raw,
                aeron_publication_constants,
                aeron_exclusive_publication_constants,
                constants.as_mut_ptr()
            )
        };
        outcome.into_result()?;
        // SAFETY: filled in just now; its channel lives as long as the publication.
        let mut constants = unsafe { PublicationConstants::from_raw(constants.assume_init_ref()) };
        // C has read the length from the log buffer again, where another process can change it.
        constants.term_buffer_length = fields.term_buffer_length as usize;
        // SAFETY: the counter stays mapped as long as the client, which the handle holds.
        let limit = unsafe {
            CounterValue::new(fields.position_limit, fields.position_limit_registration_id)
        };
        // SAFETY: the log buffer stays mapped, and the flag in place, until the publication is closed,
        // after the guard has gone. Claims allow for any length of their frame.
        let fork_guard = unsafe {
            ForkGuard::new(fields.log_address.cast(), fields.log_length, fields.is_closed)
        };
        let fork_guard = Some(fork_guard);
        Ok(Self { raw, limit, constants, client, fork_guard, is_handed_over: false })
    }

    /// Returns whether the media driver has heard from a subscriber recently.
    ///
    /// Corresponds to `aeron_publication_is_connected`.
    #[doc(alias = "aeron_publication_is_connected")]
    pub fn is_connected(&self) -> bool {
        // SAFETY: the publication is live; the functions read atomics.
        unsafe {
            c!(self.raw, aeron_publication_is_connected, aeron_exclusive_publication_is_connected)
        }
    }

    /// Waits until the media driver has heard from a subscriber. Looks until `deadline`, and then
    /// once more.
    ///
    /// Idles between two looks. An idle is not cut short at the deadline, so the call may last longer
    /// by one idle. For a client without a conductor thread, does the conductor's work as well. An
    /// offer right after this can still be rejected, so repeat offers; see
    /// [`offer_until`](crate::Publisher::offer_until).
    ///
    /// # Errors
    /// - [`WaitError::TimedOut`]: no subscriber has connected;
    /// - [`WaitError::Closed`]: the publication is closed;
    /// - [`WaitError::CalledFromConductor`]: called from a callback.
    pub fn await_connected(
        &self,
        deadline: Instant,
        idle: &mut impl IdleStrategy,
    ) -> Result<(), WaitError> {
        let (is_connected, is_closed) = (|| self.is_connected(), || self.is_closed());
        wait::connected(&self.client, deadline, idle, is_connected, is_closed)
            .map_err(|refusal| self.wait_error(refusal))
    }

    /// Returns whether the publication is closed. Either a fatal error has closed the client, and
    /// the publication with it. Or the client was stopped for longer than its liveness timeout: the
    /// media driver has timed out the client, and has reused the publication's counters.
    ///
    /// Corresponds to `aeron_publication_is_closed`.
    #[doc(alias = "aeron_publication_is_closed")]
    pub fn is_closed(&self) -> bool {
        // SAFETY: the publication is live; the functions read an atomic flag.
        let is_closed = unsafe {
            c!(self.raw, aeron_publication_is_closed, aeron_exclusive_publication_is_closed)
        };
        is_closed || !self.limit.is_owned()
    }

    /// Returns the position below which messages are accepted, in bytes. The subscribers, or flow
    /// control on their behalf, determine it. A message may begin below the limit and end above it.
    ///
    /// # Errors
    /// [`OfferError::Closed`] once the publication is closed.
    ///
    /// Corresponds to `aeron_publication_position_limit`, and to
    /// `aeron_exclusive_publication_position_limit`.
    #[doc(alias = "aeron_publication_position_limit")]
    pub fn position_limit(&self) -> Result<Position, OfferError> {
        if self.is_closed() {
            return Err(self.closed());
        }
        self.limit.position().ok_or_else(|| self.closed())
    }

    /// Returns the state of the channel's sockets.
    ///
    /// Corresponds to `aeron_publication_channel_status`.
    #[doc(alias = "aeron_publication_channel_status")]
    pub fn channel_status(&self) -> ChannelStatus {
        // SAFETY: the publication is live; the functions read an atomic counter, which stays mapped as
        // long as the client.
        let status = unsafe {
            c!(
                self.raw,
                aeron_publication_channel_status,
                aeron_exclusive_publication_channel_status
            )
        };
        ChannelStatus::from_c(status, self.channel_status_id(), || self.is_closed())
    }

    /// Returns the id of the counter with the channel's status; -1 if there is none, as for IPC.
    pub fn channel_status_id(&self) -> i32 {
        self.constants.channel_status_indicator_id
    }

    /// Returns the addresses that the channel's sockets are bound to. For an endpoint with port 0,
    /// the address has the port that the system chose. The list is empty for IPC, and until the
    /// channel is [active](ChannelStatus::Active).
    ///
    /// Allocates; does not block. An IPv6 address loses the name of its interface.
    ///
    /// # Errors
    /// [`ErrorKind::Other`] if the media driver's text is no address.
    ///
    /// Corresponds to `aeron_publication_local_sockaddrs`.
    #[doc(alias = "aeron_publication_local_sockaddrs")]
    pub fn local_addresses(&self) -> Result<Vec<SocketAddr>> {
        // SAFETY: the publication is live; C writes a terminated text into each of the `count` buffers,
        // within its length. It reads counters of the media driver, which stay mapped as long as the
        // client.
        local_addresses(|buffers, count| unsafe {
            c!(
                self.raw,
                aeron_publication_local_sockaddrs,
                aeron_exclusive_publication_local_sockaddrs,
                buffers,
                count
            )
        })
    }

    /// Returns the stream's channel, as it was given when the publication was added.
    ///
    /// Corresponds to `channel` of `aeron_publication_constants_t`, and to
    /// `aeron_publication_channel`.
    #[doc(alias("aeron_publication_constants_t", "aeron_publication_channel"))]
    pub fn channel(&self) -> &str {
        &self.constants.channel
    }

    /// Returns the stream id within the channel.
    ///
    /// Corresponds to `stream_id` of `aeron_publication_constants_t`, and to
    /// `aeron_publication_stream_id`.
    #[doc(alias("aeron_publication_constants_t", "aeron_publication_stream_id"))]
    pub fn stream_id(&self) -> i32 {
        self.constants.stream_id
    }

    /// Returns the session id, which distinguishes this publisher from others of the same stream.
    ///
    /// Corresponds to `session_id` of `aeron_publication_constants_t`, and to
    /// `aeron_publication_session_id`.
    #[doc(alias("aeron_publication_constants_t", "aeron_publication_session_id"))]
    pub fn session_id(&self) -> i32 {
        self.constants.session_id
    }

    /// Returns the id under which the media driver knows this publication.
    pub fn registration_id(&self) -> i64 {
        self.constants.registration_id
    }

    /// Returns the registration id of the first publication of this channel, stream and session. The
    /// log buffer has the same id.
    pub fn original_registration_id(&self) -> i64 {
        self.constants.original_registration_id
    }

    /// Returns whether this is the first publication of its channel, stream and session. Always true
    /// for exclusive publications.
    pub fn is_original(&self) -> bool {
        self.registration_id() == self.original_registration_id()
    }

    /// Returns the greatest length of a message that can be offered, in bytes: an eighth of the term
    /// length, at most 16 MiB.
    pub fn max_message_length(&self) -> usize {
        self.constants.max_message_length
    }

    /// Returns the greatest length of a message that fits into one fragment and so can be claimed, in
    /// bytes: the channel's MTU without the 32 bytes of a frame header.
    pub fn max_payload_length(&self) -> usize {
        self.constants.max_payload_length
    }

    /// Returns the length of each of the log buffer's three terms, in bytes: a power of two from
    /// 64 KiB to 1 GiB.
    pub fn term_buffer_length(&self) -> usize {
        self.constants.term_buffer_length
    }

    /// Returns the publication's constants: ids, lengths in bytes, counter ids.
    ///
    /// Corresponds to `aeron_publication_constants`.
    #[doc(alias = "aeron_publication_constants")]
    pub fn constants(&self) -> &PublicationConstants {
        &self.constants
    }

    /// Adds a destination to a channel with `control-mode=manual`, and waits for the media driver's
    /// confirmation. Returns the destination's registration id, for
    /// [`remove_destination_by_id`](Self::remove_destination_by_id).
    ///
    /// A destination is a UDP channel with an endpoint whose port is not 0. It must not be a spy, and
    /// must not have `control-mode=response`. Some of [`Parameter`](crate::Parameter)'s parameters
    /// belong to the publication's channel, and a destination must not have them: `Mtu`,
    /// `ReceiverWindow`, `SocketRcvbuf`, `SocketSndbuf`, `SocketTos` and `ResponseCorrelationId`.
    ///
    /// Blocks at most for the driver timeout. If a callback holds up the client's conductor, blocks
    /// at most for twice the driver timeout.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidChannel`]: the destination is not valid, or the publication's channel is
    ///   without `control-mode=manual`;
    /// - others that the media driver reports, with its text;
    /// - [`ErrorKind::DriverTimeout`]: no answer in time;
    /// - [`ErrorKind::BufferFull`]: too many commands are waiting;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback;
    /// - [`ErrorKind::InvalidArgument`]: a NUL byte in `destination`.
    ///
    /// Corresponds to `aeron_publication_async_add_destination` and
    /// `aeron_publication_async_destination_poll`.
    #[doc(alias = "aeron_publication_async_add_destination")]
    pub fn add_destination(&self, destination: impl AsChannel) -> Result<i64> {
        callback::forbid_blocking("add_destination", Some("async_add_destination"))?;
        self.async_add_destination(destination)?.wait()
    }

    /// Starts adding a destination. Poll or await the result.
    ///
    /// Does not block, and can be called from callbacks of a client with a conductor thread.
    ///
    /// # Errors
    /// As for [`add_destination`](Self::add_destination), but for the answer of the media driver;
    /// [`ErrorKind::CalledFromConductor`] only in a callback of a client without such a thread.
    ///
    /// Corresponds to `aeron_publication_async_add_destination`, and to
    /// `aeron_exclusive_publication_async_add_destination`.
    #[doc(alias = "aeron_publication_async_add_destination")]
    pub fn async_add_destination(
        &self,
        destination: impl AsChannel,
    ) -> Result<DestinationRegistration> {
        let uri = destination.to_c_string(ChannelUse::SendDestination)?;
        // SAFETY: C's function for publications, which copies the URI.
        unsafe {
            self.destination(|request, client, owner| {
                sys::aeron_publication_async_add_destination(request, client, owner, uri.as_ptr())
            })
        }
    }

    /// Removes the destination with this URI, and waits for the media driver's confirmation.
    ///
    /// Blocks as [`add_destination`](Self::add_destination) does. Removing a destination that was not
    /// added is no error.
    ///
    /// # Errors
    /// As for [`add_destination`](Self::add_destination).
    ///
    /// Corresponds to `aeron_publication_async_remove_destination` and
    /// `aeron_publication_async_destination_poll`.
    #[doc(alias = "aeron_publication_async_remove_destination")]
    pub fn remove_destination(&self, destination: impl AsChannel) -> Result<()> {
        callback::forbid_blocking("remove_destination", Some("async_remove_destination"))?;
        self.async_remove_destination(destination)?.wait().map(drop)
    }

    /// Starts removing the destination with this URI. Poll or await the result.
    ///
    /// # Errors
    /// As for [`async_add_destination`](Self::async_add_destination).
    ///
    /// Corresponds to `aeron_publication_async_remove_destination`, and to
    /// `aeron_exclusive_publication_async_remove_destination`.
    #[doc(alias = "aeron_publication_async_remove_destination")]
    pub fn async_remove_destination(
        &self,
        destination: impl AsChannel,
    ) -> Result<DestinationRegistration> {
        let uri = destination.to_c_string(ChannelUse::FormerSendDestination)?;
        // SAFETY: C's function for publications, which copies the URI.
        unsafe {
            self.destination(|request, client, owner| {
                sys::aeron_publication_async_remove_destination(
                    request,
                    client,
                    owner,
                    uri.as_ptr(),
                )
            })
        }
    }

    /// Removes the destination with this registration id, and waits for the media driver's
    /// confirmation.
    ///
    /// Blocks as [`add_destination`](Self::add_destination) does. Removing a destination that was not
    /// added is no error.
    ///
    /// # Errors
    /// As for [`add_destination`](Self::add_destination).
    ///
    /// Corresponds to `aeron_publication_async_remove_destination_by_id` and
    /// `aeron_publication_async_destination_poll`.
    #[doc(alias = "aeron_publication_async_remove_destination_by_id")]
    pub fn remove_destination_by_id(&self, registration_id: i64) -> Result<()> {
        callback::forbid_blocking(
            "remove_destination_by_id",
            Some("async_remove_destination_by_id"),
        )?;
        self.async_remove_destination_by_id(registration_id)?.wait().map(drop)
    }

    /// Starts removing the destination with this registration id. Poll or await the result.
    ///
    /// # Errors
    /// As for [`async_add_destination`](Self::async_add_destination).
    ///
    /// Corresponds to `aeron_publication_async_remove_destination_by_id`, and to
    /// `aeron_exclusive_publication_async_remove_destination_by_id`.
    #[doc(alias = "aeron_publication_async_remove_destination_by_id")]
    pub fn async_remove_destination_by_id(
        &self,
        registration_id: i64,
    ) -> Result<DestinationRegistration> {
        // SAFETY: C's function for publications.
        unsafe {
            self.destination(|request, client, owner| {
                sys::aeron_publication_async_remove_destination_by_id(
                    request,
                    client,
                    owner,
                    registration_id,
                )
            })
        }
    }

    /// Starts a command for a destination. C's functions for the two kinds of publication send the
    /// driver the same command, with the owner's registration id; those for shared ones serve both.
    ///
    /// # Safety
    /// As for [`DestinationRegistration::begin`], with a publication as the owner.
    unsafe fn destination(
        &self,
        command: impl FnOnce(
            *mut *mut Request,
            *mut sys::aeron_t,
            *mut sys::aeron_publication_t,
        ) -> c_int,
    ) -> Result<DestinationRegistration> {
        let owner_type = sys::rusteron_destination_owner_enum_RUSTERON_OWNER_PUBLICATION;
        let owner = (owner_type, self.registration_id());
        // SAFETY: by the contract.
        unsafe { DestinationRegistration::begin(&self.client, self.channel(), owner, command) }
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(crate) fn wait_error(&self, refusal: Refusal) -> WaitError {
        refusal.of_stream(|| self.channel_status(), self.channel(), self.stream_id())
    }

    /// Returns the distance between a position and the limit, or 0 beyond the limit.
    pub(crate) fn window(&self, position: Position) -> Result<usize, OfferError> {
        let window = self.position_limit()?.saturating_sub(position);
        Ok(usize::try_from(window).unwrap_or(0))
    }

    /// Returns the error of a closed publication.
    #[cold]
    #[inline(never)]
    pub(crate) fn closed(&self) -> OfferError {
        OfferError::Closed(self.client.handle_close_cause())
    }

    /// Returns the reason for refusing a message of `length` bytes at a `position` that is not below
    /// the position limit.
    #[cold]
    pub(crate) fn back_pressure(&self, position: Position, length: usize) -> OfferError {
        let end = position.saturating_add(align(length.saturating_add(HEADER_LENGTH)) as i64);
        if end >= self.constants.max_possible_position {
            OfferError::MaxPositionExceeded
        } else if self.is_connected() {
            OfferError::BackPressured
        } else {
            OfferError::NotConnected
        }
    }

    /// Closes the publication, and calls `on_complete` once when it is closed.
    pub(crate) fn close_with(mut self, on_complete: impl FnOnce() + Send + 'static) {
        // SAFETY: the handle is dropped at the end of this.
        unsafe { self.hand_over(Some(Notification::new(on_complete))) };
    }

    /// Gives the publication to the conductor, which closes and frees it.
    ///
    /// # Safety
    /// The caller only drops the handle after this.
    unsafe fn hand_over(&mut self, notification: Option<Notification>) {
        if mem::replace(&mut self.is_handed_over, true) {
            return;
        }
        self.fork_guard = None;
        let publication = self.raw;
        self.client.release(move || {
            let function = notification.is_some().then_some(notify as unsafe extern "C" fn(_));
            let clientd = notification.map_or(ptr::null_mut(), Notification::into_raw);
            // SAFETY: the publication is live, as the client is and nothing else closes it; its only
            // owner is gone or, by the contract and the flag, does not use it again. No claim is left,
            // as they borrow it, and what a destination command refers to is a stand-in.
            let result = unsafe {
                c!(
                    publication,
                    rusteron_publication_close,
                    rusteron_exclusive_publication_close,
                    function,
                    clientd
                )
            };
            // If an error has ended the client, the publication is freed with the client.
            let is_begun = result == sys::rusteron_close_result_enum_RUSTERON_CLOSE_BEGUN;
            if !is_begun && function.is_some() {
                // SAFETY: from `into_raw`, above. C has not stored it, and never will.
                drop(unsafe { Notification::from_raw(clientd) });
            }
        });
    }
}

impl Drop for PublicationHandle {
    fn drop(&mut self) {
        // SAFETY: it is being dropped, and with it the publication that owns it.
        unsafe { self.hand_over(None) };
    }
}

rusteron_core::impl_debug!(PublicationHandle: channel(), stream_id(), session_id(), is_connected(), is_closed());
