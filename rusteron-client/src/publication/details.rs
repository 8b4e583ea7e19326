//! Functions of both kinds of publication other than sending: state, ids, destinations, closing.
//!
//! Written once, as a macro, because C has each of these functions twice, and the names are the
//! only difference.

use std::net::SocketAddr;
use std::time::Instant;

use rusteron_sys as sys;

use crate::channel::status::{ChannelStatus, local_addresses};
use crate::channel::uri::{AsChannel, ChannelUse};
use crate::client::destination::DestinationRegistration;
use crate::client::wait::{self, Refusal, WaitError};
use crate::constants::PublicationConstants;
use crate::error::{Error, ErrorKind, OfferError, Position, Result};
use crate::ffi::SendPtr;
use crate::ffi::callback::{self, Notification, notify};
use crate::idle::IdleStrategy;
use crate::log_buffer::{HEADER_LENGTH, align};
use crate::publication::{ExclusivePublication, Publication};

/// Requires these fields: `raw`, the address of the C publication; its `fields`; its `constants`;
/// its `client`; and `is_handed_over`, true once it was passed to C to be closed. Each C function comes
/// with its name as a literal, which `doc(alias)` needs.
macro_rules! details {
    (
        $publication:ty, owner $owner:ident;
        $is_connected:ident $is_connected_name:literal,
        $is_closed:ident $is_closed_name:literal,
        $position:ident $position_name:literal,
        $position_limit:ident $position_limit_name:literal,
        $channel_status:ident $channel_status_name:literal,
        $local_addresses:ident $local_addresses_name:literal,
        $constants:literal,
        $add:ident $add_name:literal,
        $remove:ident $remove_name:literal,
        $remove_by_id:ident $remove_by_id_name:literal,
        $poll:ident $poll_name:literal,
        $close:ident $close_name:literal => $shim_close:ident
    ) => {
        impl $publication {
            /// Returns whether the media driver has heard from a subscriber recently.
            ///
            #[doc = concat!("Corresponds to `", $is_connected_name, "`.")]
            #[doc(alias = $is_connected_name)]
            pub fn is_connected(&self) -> bool {
                // SAFETY: the publication is live; the function reads atomics.
                unsafe { sys::$is_connected(self.raw.as_ptr()) }
            }

            /// Waits until the media driver has heard from a subscriber. The first look after
            /// `deadline` is the last.
            ///
            /// Idles between two looks. An idle is not cut short at the deadline, so the call may
            /// last longer by one idle. For a client without a conductor thread, does the
            /// conductor's work as well. An offer right after this can still be rejected, so
            /// repeat offers; see [`offer_deadline`](Self::offer_deadline).
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
                let attempt = || {
                    wait::connected(self.is_connected(), || {
                        self.is_closed().then(|| self.client.handle_close_cause())
                    })
                };
                wait::until(&self.client, deadline, idle, attempt)
                    .map_err(|refusal| self.wait_error(refusal))
            }

            pub(crate) fn wait_error(&self, refusal: Refusal) -> WaitError {
                refusal.of_stream(|| self.channel_status(), self.channel(), self.stream_id())
            }

            /// Returns whether the publication is closed. Either a fatal error has closed the
            /// client, and the publication with it. Or the client was stopped for longer than its
            /// liveness timeout: the media driver has timed out the client, and has reused the
            /// publication's counters.
            ///
            #[doc = concat!("Corresponds to `", $is_closed_name, "`.")]
            #[doc(alias = $is_closed_name)]
            pub fn is_closed(&self) -> bool {
                // SAFETY: the publication is live; the function reads an atomic flag.
                unsafe { sys::$is_closed(self.raw.as_ptr()) || !self.limit.is_owned() }
            }

            /// Returns the position after all messages that have been offered or claimed so far, in
            /// bytes.
            ///
            /// # Errors
            /// [`OfferError::Closed`] once the publication is closed;
            /// [`OfferError::CorruptLogBuffer`] if another process has overwritten the tail.
            ///
            #[doc = concat!("Corresponds to `", $position_name, "`.")]
            #[doc(alias = $position_name)]
            pub fn position(&self) -> Result<Position, OfferError> {
                if self.is_closed() {
                    return Err(self.closed());
                }
                self.current_position()
            }

            /// Returns the position below which messages are accepted, in bytes. The subscribers,
            /// or flow control on their behalf, determine it. A message may begin below the limit
            /// and end above it.
            ///
            /// # Errors
            /// [`OfferError::Closed`] once the publication is closed.
            ///
            #[doc = concat!("Corresponds to `", $position_limit_name, "`.")]
            #[doc(alias = $position_limit_name)]
            pub fn position_limit(&self) -> Result<Position, OfferError> {
                if self.is_closed() {
                    return Err(self.closed());
                }
                self.limit.position().ok_or_else(|| self.closed())
            }

            /// Returns the distance from the position to its limit, in bytes, frame headers
            /// included. Returns 0 if the position is at the limit or above.
            ///
            /// # Errors
            /// [`OfferError::Closed`] once the publication is closed.
            ///
            /// Corresponds to the difference of two functions of C, and to `availableWindow` in
            /// Java.
            pub fn available_window(&self) -> Result<usize, OfferError> {
                let window = self.position_limit()?.saturating_sub(self.position()?);
                Ok(usize::try_from(window).unwrap_or(0))
            }

            /// Returns the error of a closed publication.
            #[cold]
            #[inline(never)]
            pub(crate) fn closed(&self) -> OfferError {
                OfferError::Closed(self.client.handle_close_cause())
            }

            /// Returns the reason for refusing a message of `length` bytes at a `position` that is
            /// not below the position limit.
            #[cold]
            pub(crate) fn back_pressure(&self, position: Position, length: usize) -> OfferError {
                let end =
                    position.saturating_add(align(length.saturating_add(HEADER_LENGTH)) as i64);
                if end >= self.fields.max_possible_position {
                    OfferError::MaxPositionExceeded
                } else if self.is_connected() {
                    OfferError::BackPressured
                } else {
                    OfferError::NotConnected
                }
            }

            /// Returns the state of the channel's sockets.
            ///
            #[doc = concat!("Corresponds to `", $channel_status_name, "`.")]
            #[doc(alias = $channel_status_name)]
            pub fn channel_status(&self) -> ChannelStatus {
                // SAFETY: the publication is live; the function reads an atomic counter, which
                // stays mapped as long as the client.
                let status = unsafe { sys::$channel_status(self.raw.as_ptr()) };
                ChannelStatus::from_c(status, self.channel_status_id(), || self.is_closed())
            }

            /// Returns the id of the counter with the channel's status; -1 if there is none, as for
            /// IPC.
            pub fn channel_status_id(&self) -> i32 {
                self.constants.channel_status_indicator_id
            }

            /// Returns the addresses that the channel's sockets are bound to. For an endpoint with
            /// port 0, the address has the port that the system chose. The list is empty for IPC,
            /// and until the channel is [active](ChannelStatus::Active).
            ///
            /// Allocates; does not block. An IPv6 address loses the name of its interface.
            ///
            /// # Errors
            /// [`ErrorKind::Other`] if the media driver's text is no address.
            ///
            #[doc = concat!("Corresponds to `", $local_addresses_name, "`.")]
            #[doc(alias = $local_addresses_name)]
            pub fn local_addresses(&self) -> Result<Vec<SocketAddr>> {
                local_addresses(|buffers, count| {
                    // SAFETY: the publication is live; C writes a terminated text into each of the
                    // `count` buffers, within its length. It reads counters of the media driver,
                    // which stay mapped as long as the client.
                    unsafe { sys::$local_addresses(self.raw.as_ptr(), buffers, count) }
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

            /// Returns the session id, which distinguishes this publisher from others of the same
            /// stream.
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

            /// Returns the registration id of the first publication of this channel, stream and
            /// session. The log buffer has the same id.
            pub fn original_registration_id(&self) -> i64 {
                self.constants.original_registration_id
            }

            /// Returns whether this is the first publication of its channel, stream and session.
            /// Always true for exclusive publications.
            pub fn is_original(&self) -> bool {
                self.registration_id() == self.original_registration_id()
            }

            /// Returns the greatest length of a message that can be offered, in bytes: an eighth of
            /// the term length, at most 16 MiB.
            pub fn max_message_length(&self) -> usize {
                self.constants.max_message_length
            }

            /// Returns the greatest length of a message that fits into one fragment and so can be
            /// claimed, in bytes: the channel's MTU without the 32 bytes of a frame header.
            pub fn max_payload_length(&self) -> usize {
                self.constants.max_payload_length
            }

            /// Returns the length of each of the log buffer's three terms, in bytes: a power of two
            /// from 64 KiB to 1 GiB.
            pub fn term_buffer_length(&self) -> usize {
                self.constants.term_buffer_length
            }

            /// Returns the publication's constants: ids, lengths in bytes, counter ids.
            ///
            #[doc = concat!("Corresponds to `", $constants, "`.")]
            #[doc(alias = $constants)]
            pub fn constants(&self) -> &PublicationConstants {
                &self.constants
            }

            /// Adds a destination to a channel with `control-mode=manual`, and waits for the media
            /// driver's confirmation. Returns the destination's registration id, for
            /// [`remove_destination_by_id`](Self::remove_destination_by_id).
            ///
            /// A destination is a UDP channel with an endpoint whose port is not 0. It must not be
            /// a spy, and must not have `control-mode=response`. Some of
            /// [`Parameter`](crate::Parameter)'s parameters belong to the publication's channel,
            /// and a destination must not have them: `Mtu`, `ReceiverWindow`, `SocketRcvbuf`,
            /// `SocketSndbuf`, `SocketTos` and `ResponseCorrelationId`.
            ///
            /// Blocks at most for the driver timeout. If a callback holds up the client's
            /// conductor, blocks at most for twice the driver timeout.
            ///
            /// # Errors
            /// - [`ErrorKind::InvalidChannel`]: the destination is not valid; the text names the
            ///   parameter;
            /// - others that the media driver reports, with its text, also for a publication whose
            ///   channel takes no destinations;
            /// - [`ErrorKind::DriverTimeout`]: no answer in time;
            /// - [`ErrorKind::BufferFull`]: too many commands are waiting;
            /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
            /// - [`ErrorKind::CalledFromConductor`]: called from a callback;
            /// - [`ErrorKind::InvalidArgument`]: a NUL byte in `destination`.
            ///
            #[doc = concat!("Corresponds to `", $add_name, "` and `", $poll_name, "`.")]
            #[doc(alias($add_name, $poll_name))]
            pub fn add_destination(&self, destination: impl AsChannel) -> Result<i64> {
                callback::forbid_blocking("add_destination")?;
                self.async_add_destination(destination)?.wait()
            }

            /// Starts adding a destination. Poll or await the result.
            ///
            /// Does not block, and can be called from callbacks of a client with a conductor thread.
            ///
            /// # Errors
            /// - [`ErrorKind::InvalidChannel`]: the destination is not valid;
            /// - [`ErrorKind::BufferFull`]: too many commands are waiting;
            /// - [`ErrorKind::CalledFromConductor`]: called from a callback of a client without such a
            ///   thread;
            /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
            /// - [`ErrorKind::InvalidArgument`]: a NUL byte in `destination`.
            ///
            #[doc = concat!("Corresponds to `", $add_name, "`.")]
            #[doc(alias = $add_name)]
            pub fn async_add_destination(
                &self,
                destination: impl AsChannel,
            ) -> Result<DestinationRegistration> {
                let uri = destination.to_c_string(ChannelUse::SendDestination)?;
                let owner = (sys::$owner, self.registration_id());
                // SAFETY: the function and its partner belong to this type of owner; C copies the
                // URI.
                unsafe {
                    DestinationRegistration::begin(
                        &self.client,
                        owner,
                        |raw, client, owner| sys::$add(raw, client, owner.cast(), uri.as_ptr()),
                        sys::$poll,
                    )
                }
            }

            /// Removes the destination with this URI, and waits for the media driver's
            /// confirmation.
            ///
            /// Blocks as [`add_destination`](Self::add_destination) does. Removing a destination
            /// that was not added is no error.
            ///
            /// # Errors
            /// As for [`add_destination`](Self::add_destination).
            ///
            #[doc = concat!("Corresponds to `", $remove_name, "` and `", $poll_name, "`.")]
            #[doc(alias($remove_name, $poll_name))]
            pub fn remove_destination(&self, destination: impl AsChannel) -> Result<()> {
                callback::forbid_blocking("remove_destination")?;
                self.async_remove_destination(destination)?.wait().map(drop)
            }

            /// Starts removing the destination with this URI. Poll or await the result.
            ///
            /// # Errors
            /// As for [`async_add_destination`](Self::async_add_destination).
            ///
            #[doc = concat!("Corresponds to `", $remove_name, "`.")]
            #[doc(alias = $remove_name)]
            pub fn async_remove_destination(
                &self,
                destination: impl AsChannel,
            ) -> Result<DestinationRegistration> {
                let uri = destination.to_c_string(ChannelUse::FormerSendDestination)?;
                let owner = (sys::$owner, self.registration_id());
                // SAFETY: as in `async_add_destination`.
                unsafe {
                    DestinationRegistration::begin(
                        &self.client,
                        owner,
                        |raw, client, owner| sys::$remove(raw, client, owner.cast(), uri.as_ptr()),
                        sys::$poll,
                    )
                }
            }

            /// Removes the destination with this registration id, and waits for the media driver's
            /// confirmation.
            ///
            /// Blocks as [`add_destination`](Self::add_destination) does. Removing a destination
            /// that was not added is no error.
            ///
            /// # Errors
            /// As for [`add_destination`](Self::add_destination).
            ///
            #[doc = concat!( "Corresponds to `", $remove_by_id_name, "` and `", $poll_name, "`." )]
            #[doc(alias($remove_by_id_name, $poll_name))]
            pub fn remove_destination_by_id(&self, registration_id: i64) -> Result<()> {
                callback::forbid_blocking("remove_destination_by_id")?;
                self.async_remove_destination_by_id(registration_id)?.wait().map(drop)
            }

            /// Starts removing the destination with this registration id. Poll or await the result.
            ///
            /// # Errors
            /// As for [`async_add_destination`](Self::async_add_destination);
            /// [`ErrorKind::InvalidChannel`] for a publication over IPC, to which the media driver
            /// would not answer.
            ///
            #[doc = concat!("Corresponds to `", $remove_by_id_name, "`.")]
            #[doc(alias = $remove_by_id_name)]
            pub fn async_remove_destination_by_id(
                &self,
                registration_id: i64,
            ) -> Result<DestinationRegistration> {
                if self.channel().starts_with("aeron:ipc") {
                    // The driver does not answer, not even with an error.
                    return Err(Error::new(
                        ErrorKind::InvalidChannel,
                        "a publication over IPC has no destinations",
                    ));
                }
                let owner = (sys::$owner, self.registration_id());
                // SAFETY: as in `async_add_destination`.
                unsafe {
                    DestinationRegistration::begin(
                        &self.client,
                        owner,
                        |raw, client, owner| {
                            sys::$remove_by_id(raw, client, owner.cast(), registration_id)
                        },
                        sys::$poll,
                    )
                }
            }

            /// Closes the publication: tells the media driver that this publisher is gone, after
            /// the offered messages have been delivered. Dropping the publication does the same.
            /// Does not block.
            ///
            #[doc = concat!("Corresponds to `", $close_name, "`.")]
            #[doc(alias = $close_name)]
            pub fn close(self) {
                drop(self);
            }

            /// Closes the publication, and calls `on_complete` once when the publication is closed.
            /// By then the log buffer is unmapped, unless another handle uses it, and the media
            /// driver has been told.
            ///
            /// Does not block. The callback runs on the client's conductor thread and holds up the
            /// conductor meanwhile. If the client closes first, the callback runs on the thread
            /// that closes the client. Calls in the callback that would wait for the conductor
            /// return [`ErrorKind::CalledFromConductor`]. A panic in the callback is logged.
            ///
            /// If a fatal error has ended the client, the publication is closed already, and is
            /// freed when the last handle of the client is dropped. The callback then runs in this
            /// call. If the error comes between this call and the closing, the callback runs when
            /// that last handle is dropped. So the callback must not own a handle of the client.
            ///
            /// A client without a conductor thread closes the publication, and calls the callback,
            /// in this call. If this is called from a callback, both happen after that callback has
            /// returned.
            ///
            #[doc = concat!("Corresponds to `", $close_name, "`.")]
            #[doc(alias = $close_name)]
            pub fn close_with(mut self, on_complete: impl FnOnce() + Send + 'static) {
                // SAFETY: `self` is dropped at the end of this.
                unsafe { self.hand_over(Some(Notification::new(on_complete))) };
            }

            /// Gives the publication to the conductor, which closes and frees it.
            ///
            /// # Safety
            /// The caller only drops `self` after this.
            unsafe fn hand_over(&mut self, notification: Option<Notification>) {
                if std::mem::replace(&mut self.is_handed_over, true) {
                    return;
                }
                self.fork_guard = None;
                let publication = SendPtr(self.raw.as_ptr());
                self.client.release(move || {
                    let function =
                        notification.is_some().then_some(notify as unsafe extern "C" fn(_));
                    let clientd = notification.map_or(std::ptr::null_mut(), Notification::into_raw);
                    // SAFETY: the publication is live, as the client is and nothing else closes it;
                    // its only owner is gone or, by the contract and the flag, does not use it again.
                    // No claim is left, as they borrow it, and what a destination command refers to
                    // is a stand-in.
                    let result = unsafe { sys::$shim_close(publication.get(), function, clientd) };
                    // Otherwise an error has ended the client, and the publication is freed with
                    // the client.
                    let is_begun = result == sys::rusteron_close_result_enum_RUSTERON_CLOSE_BEGUN;
                    if !is_begun && function.is_some() {
                        // SAFETY: from `into_raw`, above. C has not stored it, and never will.
                        drop(unsafe { Notification::from_raw(clientd) });
                    }
                });
            }
        }

        impl Drop for $publication {
            fn drop(&mut self) {
                // SAFETY: it is being dropped.
                unsafe { self.hand_over(None) };
            }
        }
    };
}

details! {
    Publication, owner rusteron_destination_owner_enum_RUSTERON_OWNER_PUBLICATION;
    aeron_publication_is_connected "aeron_publication_is_connected",
    aeron_publication_is_closed "aeron_publication_is_closed",
    aeron_publication_position "aeron_publication_position",
    aeron_publication_position_limit "aeron_publication_position_limit",
    aeron_publication_channel_status "aeron_publication_channel_status",
    aeron_publication_local_sockaddrs "aeron_publication_local_sockaddrs",
    "aeron_publication_constants",
    aeron_publication_async_add_destination "aeron_publication_async_add_destination",
    aeron_publication_async_remove_destination "aeron_publication_async_remove_destination",
    aeron_publication_async_remove_destination_by_id "aeron_publication_async_remove_destination_by_id",
    aeron_publication_async_destination_poll "aeron_publication_async_destination_poll",
    aeron_publication_close "aeron_publication_close" => rusteron_publication_close
}

details! {
    ExclusivePublication, owner rusteron_destination_owner_enum_RUSTERON_OWNER_EXCLUSIVE_PUBLICATION;
    aeron_exclusive_publication_is_connected "aeron_exclusive_publication_is_connected",
    aeron_exclusive_publication_is_closed "aeron_exclusive_publication_is_closed",
    aeron_exclusive_publication_position "aeron_exclusive_publication_position",
    aeron_exclusive_publication_position_limit "aeron_exclusive_publication_position_limit",
    aeron_exclusive_publication_channel_status "aeron_exclusive_publication_channel_status",
    aeron_exclusive_publication_local_sockaddrs "aeron_exclusive_publication_local_sockaddrs",
    "aeron_exclusive_publication_constants",
    aeron_exclusive_publication_async_add_destination "aeron_exclusive_publication_async_add_destination",
    aeron_exclusive_publication_async_remove_destination "aeron_exclusive_publication_async_remove_destination",
    aeron_exclusive_publication_async_remove_destination_by_id "aeron_exclusive_publication_async_remove_destination_by_id",
    aeron_exclusive_publication_async_destination_poll "aeron_exclusive_publication_async_destination_poll",
    aeron_exclusive_publication_close "aeron_exclusive_publication_close" => rusteron_exclusive_publication_close
}
