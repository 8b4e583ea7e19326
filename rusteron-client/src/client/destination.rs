//! Destinations of publications that send to many, and of subscriptions that receive from many.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::{self, Poll};

use rusteron_core::channel::{ChannelUri, Media, Parameter};
use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::{Fallible, SendPtr, last_error, wake};
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::registration::{Pending, Request, wait_for};

/// A pending request to the media driver to add or to remove a destination.
///
/// Poll it until it returns the registration id or an error, or await it as a future. The driver
/// carries out the command whether or not this handle is polled. Dropping the handle only discards
/// the answer.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// let publication = aeron.add_publication("aeron:udp?control-mode=manual", 1001)?;
/// let mut adding = publication.async_add_destination("aeron:udp?endpoint=127.0.0.1:24325")?;
/// let registration_id = loop {
///     if let Some(registration_id) = adding.poll()? {
///         break registration_id;
///     }
///     std::thread::yield_now(); // or go on with other work
/// };
/// publication.remove_destination_by_id(registration_id)?;
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_async_destination_t`.
#[doc(alias = "aeron_async_destination_t")]
#[must_use = "the answer is discarded when this is dropped"]
pub struct DestinationRegistration {
    pending: Pending,
    /// `None` once the conductor has read it.
    owner: Option<Owner>,
}

// SAFETY: the bound never holds.
unsafe impl Sync for DestinationRegistration where for<'a> Self: SharedBetweenThreads<'a> {}

impl DestinationRegistration {
    /// Starts one of C's commands for the owner with this channel and registration id.
    ///
    /// Refuses other owners than those with manual control. The driver would call an owner over IPC
    /// unknown, or not answer at all.
    ///
    /// The arguments of `command` are the address of the new structure's address, the client, and
    /// the owner.
    ///
    /// # Safety
    /// `command` calls one of C's functions for destinations of this type of owner, an `O`, with
    /// these arguments and others that it copies, and uses the owner for nothing else.
    pub(crate) unsafe fn begin<O>(
        client: &Arc<Client>,
        channel: &str,
        (owner_type, owner_id): (sys::rusteron_destination_owner_t, i64),
        command: impl FnOnce(*mut *mut Request, *mut sys::aeron_t, *mut O) -> c_int,
    ) -> Result<Self> {
        if client.is_closed() {
            return Err(client.closed_error());
        }
        let has_destinations = |uri: ChannelUri| {
            // With tags, the control mode can be another channel's.
            uri.media() == Media::Udp
                && (uri.get(Parameter::Tags).is_some()
                    || uri.get(Parameter::ControlMode) == Some("manual"))
        };
        if channel.parse().is_ok_and(|uri| !has_destinations(uri)) {
            let text =
                format!("{channel}: has no destinations; they need aeron:udp?control-mode=manual");
            return Err(Error::new(ErrorKind::InvalidChannel, text));
        }
        let owner = Owner::new(owner_type, owner_id)?;
        // On failure C has not retained the owner.
        // SAFETY: by the contract.
        let pending = unsafe {
            Pending::begin(client, |raw, client| command(raw, client, owner.0.as_ptr().cast()))
        }?;
        // Without a conductor thread, the command has been carried out by now.
        let owner = (!client.has_invoker()).then_some(owner);
        Ok(Self { pending, owner })
    }

    /// Returns the registration id of this command, and so of the destination that it adds. Pass
    /// the id to [`remove_destination_by_id`](crate::PublicationHandle::remove_destination_by_id).
    ///
    /// Corresponds to `aeron_async_destination_get_registration_id`.
    #[doc(alias = "aeron_async_destination_get_registration_id")]
    pub fn registration_id(&self) -> i64 {
        self.pending.registration_id
    }

    /// Returns the [registration id](Self::registration_id) if the media driver has carried out the
    /// request, and `None` if not yet. Does not block.
    ///
    /// # Errors
    /// The outcome is returned once, and can be an error:
    /// - [`ErrorKind::InvalidChannel`] and others that the media driver reports, with its text;
    /// - [`ErrorKind::UnknownPublication`] and its like: the owner is closed already;
    /// - [`ErrorKind::DriverTimeout`]: no answer within the driver timeout;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client meanwhile;
    ///
    /// and [`ErrorKind::IllegalState`] if the outcome was returned before.
    ///
    /// Corresponds to `aeron_publication_async_destination_poll`,
    /// `aeron_exclusive_publication_async_destination_poll` and
    /// `aeron_subscription_async_destination_poll`.
    #[doc(alias(
        "aeron_publication_async_destination_poll",
        "aeron_exclusive_publication_async_destination_poll",
        "aeron_subscription_async_destination_poll"
    ))]
    pub fn poll(&mut self) -> Result<Option<i64>> {
        let raw = self.pending.request()?;
        // SAFETY: the request is cleared below as soon as C has given the outcome, after which the
        // conductor frees it. C's functions for the owners do the same.
        let outcome = unsafe { sys::aeron_publication_async_destination_poll(raw.as_ptr()) };
        let outcome = outcome.into_result();
        if let Ok(0) = outcome {
            return self.pending.no_outcome();
        }
        self.pending.raw = None;
        // The conductor sets an outcome after it has read the owner, or has failed to.
        self.owner = None;
        outcome.map(|_| Some(self.registration_id()))
    }

    /// Polls until there is an outcome, and yields the processor between polls. Returns the
    /// registration id.
    pub(crate) fn wait(mut self) -> Result<i64> {
        let client = Arc::clone(&self.pending.client);
        wait_for(&client, || self.poll())
    }
}

/// Resolves to the registration id of the command once the media driver has carried out the
/// request. As with [`Registration`](crate::Registration), the future needs no particular runtime.
impl Future for DestinationRegistration {
    type Output = Result<i64>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        wake::outcome(Self::poll(self.get_mut()), context)
    }
}

impl Drop for DestinationRegistration {
    fn drop(&mut self) {
        let Some(raw) = self.pending.raw.take() else { return };
        let (client, registration_id) = (&self.pending.client, self.registration_id());
        let (owner, retained) = (self.owner.take(), client.retained());
        let (raw_client, raw) = (SendPtr(client.as_ptr()), SendPtr(raw.as_ptr()));
        client.release(move || {
            let address = owner.as_ref().map_or(ptr::null_mut(), |owner| owner.0.as_ptr());
            // SAFETY: no outcome was given, so C still has the structure, and neither it nor the
            // owner is used again if this succeeds; the client outlives what it runs.
            let cancelled = unsafe {
                sys::rusteron_async_destination_cancel(raw_client.get(), raw.get(), address)
            };
            match cancelled.into_result() {
                // The conductor frees both.
                Ok(_) => std::mem::forget(owner),
                // The structure then lives as long as the client, and the conductor may still
                // process the command.
                Err(error) => {
                    log::debug!("destination {registration_id} is not cancelled: {error}");
                    retained.retain(Box::new(owner));
                }
            }
        });
    }
}

impl fmt::Debug for DestinationRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pending.debug("DestinationRegistration", f)
    }
}

/// Stand-in for the publication or subscription in C's command.
///
/// The command points to its owner, and the conductor follows the pointer when it processes the
/// command. Suppose the command pointed to the publication itself. Dropping the publication would
/// nearly always be safe, because the command to close it is queued behind. But when the queue is
/// full, C marks the publication as to be closed instead. The conductor frees marked publications
/// when it next looks for marks, while the command still waits in the queue. See
/// `rusteron_destination_owner_create` in the shim.
struct Owner(NonNull<c_void>);

// SAFETY: plain memory, which only the conductor reads and no thread writes.
unsafe impl Send for Owner {}

impl Owner {
    fn new(owner_type: sys::rusteron_destination_owner_t, registration_id: i64) -> Result<Self> {
        // SAFETY: allocates, or fails.
        let owner = unsafe { sys::rusteron_destination_owner_create(owner_type, registration_id) };
        NonNull::new(owner).map(Self).ok_or_else(last_error)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: made by `new`; the conductor is past the command that names it, or has ended.
        unsafe { sys::aeron_free(self.0.as_ptr()) };
    }
}
