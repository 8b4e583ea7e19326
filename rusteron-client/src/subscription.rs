//! Receiving messages.
//!
//! A poll compares the change number of C's image list with the last one that it has seen. If there
//! is a newer list, it copies the fields of its images and announces the number, and the conductor
//! may then free older lists and closed images. While an `Image` is borrowed, its subscription
//! announces nothing.
//!
//! An image keeps the end of the term of its last poll, as an address and as a position, so one
//! comparison tells whether that term still applies. At the end of a term the poll of the image
//! stops, and the next one finds the next term buffer from the position. When it ends, also by a
//! panic, a poll publishes the position, unless the image is closed.
//!
//! A frame that is a whole message costs one comparison and is read in place. Other frames are
//! assembled in memory of the image's entry in the subscription. The assembly expects the next
//! fragment at a stream position, where C's assemblers expect a term offset.
//!
//! Handlers are closures that the compiler builds into the poll loop, so a panic unwinds through
//! Rust alone.

mod assembly;
mod builder;
mod channel;
mod destinations;
mod fragment_assembler;
mod image;
mod message_buffer;
mod messages;
mod polls;

pub use builder::SubscriptionBuilder;
pub use destinations::SubscriptionDestinations;
pub use fragment_assembler::{FragmentAssembler, ImageFragmentAssembler};
pub use image::{Action, Header, Image, ImageInfo, Images, Skipped};
pub use messages::Messages;

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering};
use std::time::Instant;

use rusteron_core::error::Result;
use rusteron_core::ffi::{Fallible, SendPtr, last_error};
use rusteron_core::idle::IdleStrategy;
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::registration::{CancelRequest, PollRequest, Resource, sealed};
use crate::client::subscription_callbacks::{CallbackHandle, SubscriptionCallbacks, close};
use crate::client::wait::{self, WaitError};
use crate::constants::SubscriptionConstants;
use crate::subscription::assembly::Assembly;
use crate::subscription::image::SubscribedImage;
use crate::subscription::image::poll::ImageFields;

/// Receives the messages of all publishers of a channel and stream, on one thread at a time.
///
/// Each publisher's stream arrives as its own image, in order. A subscription keeps its client
/// open. Dropping the subscription tells the media driver that this subscriber is gone.
///
/// Polls neither block nor make system calls. They allocate only in two cases: when a publisher has
/// come or gone, and for a publisher's first messages that are longer than a fragment.
///
/// Made by [`Aeron::add_subscription`](crate::Aeron::add_subscription) and, with handlers for
/// available and unavailable images,
/// [`Aeron::subscription_builder`](crate::Aeron::subscription_builder).
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// # let publication = aeron.add_publication("aeron:ipc", 1001)?;
/// let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
/// # while publication.offer(b"hello").is_err() { std::thread::yield_now(); }
/// let mut received = Vec::new();
/// while received.is_empty() {
///     // The message is lent to the handler. A copy outlives the poll.
///     let fragments = subscription.poll(|message, _header| received.push(message.to_vec()), 10)?;
///     if fragments == 0 {
///         std::thread::yield_now();
///     }
/// }
/// assert_eq!(received, [b"hello"]);
/// # Ok(())
/// # }
/// ```
///
/// Only one thread at a time may poll a subscription. Several threads can share it in a
/// [`Mutex`](std::sync::Mutex).
///
/// A handler's arguments are valid during its call only. This does not compile:
///
/// ```compile_fail,E0521
/// # use rusteron_client::Subscription;
/// fn keep_one(subscription: &mut Subscription) {
///     let mut kept: &[u8] = &[];
///     let _ = subscription.poll(|message, _header| kept = message, 10);
/// }
/// ```
#[doc(alias = "aeron_subscription_t")]
#[must_use = "the subscription is closed when this is dropped"]
// Each poll writes the index of the image to begin with. The write must not take the line from another thread, such as
// one whose publication lies beside this in memory. Some processors fetch lines in pairs.
#[repr(align(128))]
pub struct Subscription {
    raw: NonNull<sys::aeron_subscription_t>,
    /// The fields of the C structure that a poll works on, at the addresses C uses itself.
    fields: sys::rusteron_subscription_t,
    /// The images of the list with this change number. They are safe to use as long as the current
    /// list has the same number; see [`Subscription::refresh`].
    images: Vec<SubscribedImage>,
    change_number: i64,
    // Both are short, so that the structure stays within 128 bytes.
    round_robin_index: u32,
    max_message_length: u32,
    constants: SubscriptionConstants,
    callbacks: Option<CallbackHandle>,
    client: Arc<Client>,
}

// SAFETY: nothing in the C structure is tied to a thread; its fields for one poller are reached by
// `&mut self` only, so that moving it is moving the poller.
unsafe impl Send for Subscription {}

// SAFETY: the bound never holds.
unsafe impl Sync for Subscription where for<'a> Self: SharedBetweenThreads<'a> {}

impl Subscription {
    /// Updates `images` from the current list.
    ///
    /// The conductor frees a list only after this thread has announced that it has seen a newer
    /// list. Then the conductor frees images that are in no newer list. This thread announces here
    /// and in C's functions for this subscription, all of which need exclusive access to the
    /// subscription. Everything that is read between two announcements comes from a list at least
    /// as new as the last announced list.
    #[inline(always)]
    fn refresh(&mut self) {
        // SAFETY: the address of a pointer in the C subscription, which lives as long as `self` and
        // changes in atomic steps.
        let current = unsafe { AtomicPtr::from_ptr(self.fields.image_list) };
        let list = current.load(Ordering::Acquire);
        // SAFETY: the newest list is never freed before it has a successor that was announced here.
        if unsafe { (*list).change_number } != self.change_number {
            // SAFETY: the current list, loaded above; nothing was announced since.
            unsafe { self.reload(list) };
        }
    }

    /// # Safety
    /// `list` was the current list since this thread last announced one.
    #[cold]
    unsafe fn reload(&mut self, list: *const sys::rusteron_image_list_t) {
        let mut gone = std::mem::take(&mut self.images);
        // SAFETY: the list is live by the contract, and so are its images, until the announcement.
        unsafe {
            for index in 0..sys::rusteron_image_list_length(list) {
                let mut fields = MaybeUninit::uninit();
                sys::rusteron_image_fields(list, index, fields.as_mut_ptr());
                let fields = ImageFields::new(fields.assume_init());
                let id = fields.raw.correlation_id;
                // An image that stays retains its partly assembled message.
                let old = gone.iter().position(|image| image.fields.raw.correlation_id == id);
                let assembly = match old {
                    Some(old) => gone.swap_remove(old).assembly,
                    None => Assembly::bounded(self.max_message_length as usize),
                };
                self.images.push(SubscribedImage::new(fields, assembly));
            }
            self.change_number = (*list).change_number;
            let announced = AtomicI64::from_ptr(self.fields.last_image_list_change_number);
            if self.change_number > announced.load(Ordering::Relaxed) {
                announced.store(self.change_number, Ordering::Release);
            }
        }
    }

    /// Returns the images of the publishers, in the order in which they became available.
    ///
    /// Allocates when a publisher has come or gone since the last poll.
    ///
    /// Corresponds to `aeron_subscription_for_each_image`.
    #[doc(alias("aeron_subscription_for_each_image", "forEachImage"))]
    pub fn images(&mut self) -> Images<'_> {
        self.refresh();
        Images::new(&mut self.images)
    }

    /// Returns the image of the publisher with this session id, if it is available.
    ///
    /// Corresponds to `aeron_subscription_image_by_session_id`.
    #[doc(alias = "aeron_subscription_image_by_session_id")]
    pub fn image_by_session_id(&mut self, session_id: i32) -> Option<Image<'_>> {
        self.images().find(|image| image.session_id() == session_id)
    }

    /// Returns the image at an index below [`image_count`](Self::image_count). When images come and
    /// go, the indices of other images change. A publisher's offers can be accepted before this client
    /// has heard of its image: [`await_connected`](Self::await_connected) waits for the first one.
    ///
    /// Corresponds to `aeron_subscription_image_at_index`.
    #[doc(alias = "aeron_subscription_image_at_index")]
    pub fn image_at_index(&mut self, index: usize) -> Option<Image<'_>> {
        self.images().nth(index)
    }

    /// Sets how many bytes an assembled message may have, of present and later images, so that an
    /// unknown publisher cannot take much memory. Polls drop longer messages of several fragments.
    /// The default, and the most, is what the publisher can offer: an eighth of its term length,
    /// and at most 16 MiB.
    pub fn set_max_message_length(&mut self, length: usize) {
        self.max_message_length = u32::try_from(length).unwrap_or(u32::MAX);
        for image in &mut self.images {
            image.assembly.set_max_length(length);
        }
    }

    /// Returns whether at least one publisher's image is available.
    ///
    /// Corresponds to `aeron_subscription_is_connected`.
    #[doc(alias("aeron_subscription_is_connected", "hasNoImages"))]
    pub fn is_connected(&self) -> bool {
        // SAFETY: the subscription is live, and this type is not `Sync`: no poll is under way.
        unsafe { sys::aeron_subscription_is_connected(self.raw.as_ptr()) }
    }

    /// Waits until a publisher is connected. Looks until `deadline`, and then once more.
    ///
    /// Idles between two looks. An idle is not cut short at the deadline, so the call may last longer
    /// by one idle. For a client without a conductor thread, does the conductor's work as well.
    ///
    /// # Errors
    /// - [`WaitError::TimedOut`]: no publisher has connected;
    /// - [`WaitError::Closed`]: the subscription is closed;
    /// - [`WaitError::CalledFromConductor`]: called from a callback.
    pub fn await_connected(
        &self,
        deadline: Instant,
        idle: &mut impl IdleStrategy,
    ) -> Result<(), WaitError> {
        let (is_connected, is_closed) = (|| self.is_connected(), || self.is_closed());
        wait::connected(&self.client, deadline, idle, is_connected, is_closed).map_err(|refusal| {
            refusal.of_stream(|| self.channel_status(), self.channel(), self.stream_id())
        })
    }

    /// Returns the number of available images.
    ///
    /// Corresponds to `aeron_subscription_image_count`.
    #[doc(alias = "aeron_subscription_image_count")]
    pub fn image_count(&self) -> usize {
        // SAFETY: as in `is_connected`. The count is a length and never negative.
        unsafe { sys::aeron_subscription_image_count(self.raw.as_ptr()) as usize }
    }

    /// Returns whether the subscription is closed. Either a fatal error has closed the client, and
    /// the subscription with it. Or the client was stopped for longer than its liveness timeout:
    /// the media driver has timed out the client, and has reused positions of this subscription. Or this
    /// is a forked child, and the subscription is its parent's.
    ///
    /// Corresponds to `aeron_subscription_is_closed`.
    #[doc(alias = "aeron_subscription_is_closed")]
    #[inline]
    pub fn is_closed(&self) -> bool {
        // SAFETY: a field of the C subscription, which lives as long as `self`.
        let is_closed = unsafe { AtomicBool::from_ptr(self.fields.is_closed) };
        is_closed.load(Ordering::Acquire) || self.is_timed_out()
    }

    #[inline]
    fn is_timed_out(&self) -> bool {
        if self.images.is_empty() {
            return self.client.is_inherited();
        }
        // An unavailable image can also lose its position, before the client knows that the image
        // has gone. In a forked child, all positions and the client are lost.
        self.images.iter().any(|image| !image.fields.owns_position()) && self.client.is_timed_out()
    }

    /// Returns the stream's channel, as it was given when the subscription was added.
    pub fn channel(&self) -> &str {
        &self.constants.channel
    }

    /// Returns the stream id within the channel.
    pub fn stream_id(&self) -> i32 {
        self.constants.stream_id
    }

    /// Returns the id under which the media driver knows this subscription.
    pub fn registration_id(&self) -> i64 {
        self.constants.registration_id
    }

    /// Returns the subscription's constants.
    ///
    /// Corresponds to `aeron_subscription_constants`.
    #[doc(alias = "aeron_subscription_constants")]
    pub fn constants(&self) -> &SubscriptionConstants {
        &self.constants
    }

    /// Closes the subscription, as dropping it does.
    ///
    /// Does not wait: the client's conductor thread closes the subscription.
    ///
    /// Corresponds to `aeron_subscription_close`.
    #[doc(alias = "aeron_subscription_close")]
    pub fn close(self) {}

    /// Closes the subscription, and calls `on_complete` once when the subscription is closed. By
    /// then the subscription is freed, the media driver has been told, and no other callback of it
    /// will run.
    ///
    /// Does not block. The callback runs on the same threads, and under the same rules, as the
    /// callback of [`Publication::close_with`](crate::Publication::close_with). If a fatal error
    /// has already ended the client, the callback runs in this call.
    ///
    /// Corresponds to `aeron_subscription_close`.
    #[doc(alias = "aeron_subscription_close")]
    pub fn close_with(mut self, on_complete: impl FnOnce() + Send + 'static) {
        if self.client.is_inherited() {
            // A thread of the parent may have locked the list.
            return std::mem::forget(on_complete);
        }
        let list = self.client.subscription_callbacks();
        let callbacks =
            self.callbacks.get_or_insert_with(|| list.insert(SubscriptionCallbacks::default()));
        // SAFETY: the callbacks are freed after the subscription is closed, which happens next.
        unsafe { callbacks.set_on_close_complete(Box::new(on_complete)) };
    }

    /// Returns the C subscription, for the functions that have no safe form.
    ///
    /// It is live as long as `self`. Calling C's functions on it needs the same exclusiveness as
    /// `&mut self`, and closing it is never allowed.
    pub fn as_ptr(&self) -> *mut sys::aeron_subscription_t {
        self.raw.as_ptr()
    }
}

impl Resource for Subscription {}

// SAFETY: both functions are C's for requests of this kind.
unsafe impl sealed::Resource for Subscription {
    type Raw = *mut sys::aeron_subscription_t;

    const POLL: PollRequest<Self::Raw> = sys::aeron_async_add_subscription_poll;
    const CANCEL: CancelRequest = sys::aeron_async_add_subscription_cancel;

    unsafe fn from_raw(
        raw: Self::Raw,
        client: Arc<Client>,
        callbacks: Option<CallbackHandle>,
    ) -> Result<Self> {
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let mut constants = MaybeUninit::uninit();
        // SAFETY: the subscription is live, and C fills the structure in or fails.
        unsafe { sys::aeron_subscription_constants(raw.as_ptr(), constants.as_mut_ptr()) }
            .into_result()?;
        // SAFETY: filled in just now; its channel lives as long as the subscription.
        let constants = unsafe { SubscriptionConstants::from_raw(constants.assume_init_ref()) };
        let mut fields = MaybeUninit::uninit();
        // SAFETY: the subscription is live, and the function fills in the whole structure.
        let fields = unsafe {
            sys::rusteron_subscription_fields(raw.as_ptr(), fields.as_mut_ptr());
            fields.assume_init()
        };
        Ok(Self {
            raw,
            fields,
            images: Vec::new(),
            // The change number of the empty list that a subscription starts with.
            change_number: -1,
            round_robin_index: 0,
            max_message_length: u32::MAX,
            constants,
            callbacks,
            client,
        })
    }
}

impl Subscription {
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let (raw, callbacks) = (SendPtr(self.raw.as_ptr()), self.callbacks);
        let list = Arc::clone(self.client.subscription_callbacks());
        let registration_id = self.registration_id();
        self.client.release(move || {
            // SAFETY: the subscription is live, and this was its only owner.
            if let Err(error) = unsafe { close(raw.get(), callbacks, &list) } {
                log::debug!("subscription {registration_id}: {error}");
            }
        });
    }
}

rusteron_core::impl_debug!(Subscription: channel(), stream_id(), image_count(), is_closed());
