//! Receiving messages.

use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Instant;

use rusteron_sys as sys;

use crate::client::Client;
use crate::client::registration::{Resource, poll_for_address, sealed};
use crate::client::subscription_callbacks::{
    CallbackHandle, CallbackList, SubscriptionCallbacks, on_available_image, on_close_complete,
    on_unavailable_image,
};
use crate::client::wait::{self, WaitError};
use crate::constants::SubscriptionConstants;
use crate::error::{PollError, Position, Result};
use crate::ffi::{Fallible, SendPtr};
use crate::idle::IdleStrategy;
use crate::log_buffer;
use crate::subscription::Messages;
use crate::subscription::assembly::Assembly;
use crate::subscription::closing::{Closing, clientd};
use crate::subscription::image::fields::ImageFields;
use crate::subscription::image::{Action, Header, Image, Images, SubscribedImage};
use crate::threads::SharedBetweenThreads;

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
pub struct Subscription {
    raw: NonNull<sys::aeron_subscription_t>,
    /// The fields of the C structure that a poll works on, at the addresses C uses itself.
    fields: sys::rusteron_subscription_t,
    /// The images of the list with this change number. They are safe to use as long as the current
    /// list has the same number; see [`Subscription::refresh`].
    images: Vec<SubscribedImage>,
    change_number: i64,
    round_robin_index: usize,
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
    /// Passes the messages that have arrived to the handler, at most `fragment_limit` fragments.
    /// Returns the number of fragments. Zero means that nothing has arrived.
    ///
    /// The handler gets whole messages. A message longer than
    /// [`max_payload_length`](crate::PublicationConstants::max_payload_length) arrives in several
    /// fragments. The subscription assembles such a message in its own memory, and passes it on
    /// with its last fragment. So a poll can receive fragments without calling the handler. All
    /// other messages are read in place. Each message starts at a multiple of 32 bytes in memory,
    /// assembled or not.
    ///
    /// A message whose beginning was sent before this subscription joined is dropped. So is a
    /// message that was claimed in fragments and is longer than 2³¹ − 9 bytes.
    ///
    /// A small limit, such as 10, is faster than a large one: the publisher learns earlier how far
    /// it may write. If the handler panics, the panic goes through to the caller, and the next poll
    /// continues after the message that caused it.
    ///
    /// For writing handlers, and for returning errors from them, see [Handlers](crate#handlers).
    ///
    /// # Errors
    /// [`PollError::Closed`] if the client was closed by a fatal error.
    ///
    /// Corresponds to `aeron_subscription_poll` with an `aeron_fragment_assembler_handler`.
    #[doc(alias(
        "aeron_subscription_poll",
        "aeron_fragment_assembler_handler",
        "FragmentAssembler"
    ))]
    #[inline]
    pub fn poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        // SAFETY: `poll_images` passes live images, and `&mut self` is the only poller.
        let poll = |image: &mut SubscribedImage, limit| unsafe { image.poll(&mut handler, limit) };
        self.poll_images(poll, fragment_limit)
    }

    /// Passes the messages that have arrived to the handler together, as an iterator, at most
    /// `fragment_limit` fragments. Returns the number of fragments that were consumed.
    ///
    /// The handler is called once for each publisher with messages. Messages from the iterator are
    /// valid until the handler returns, so that the handler can look at several messages together.
    /// Messages that the handler leaves in the iterator come again with the next poll. The
    /// publisher learns how far it may write when the handler returns. A message that was sent in
    /// several fragments comes alone. If the handler panics, the panic goes through to the caller.
    /// The next poll continues after the messages that the handler had consumed.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// ```
    /// # use rusteron_client::{Aeron, Context};
    /// # use rusteron_media_driver::MediaDriver;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = MediaDriver::launch_embedded()?;
    /// # let mut context = Context::new()?;
    /// # context.set_dir(driver.aeron_dir())?;
    /// # let aeron = Aeron::connect(context)?;
    /// # let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
    /// # let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
    /// # while !publication.is_connected() { std::thread::yield_now(); }
    /// # assert_eq!(publication.offer_batch(&[[1_u8; 8]; 3]).accepted, 3);
    /// let mut total = 0;
    /// while total < 24 {
    ///     subscription.poll_batch(
    ///         |messages| total += messages.map(|(message, _header)| message.len()).sum::<usize>(),
    ///         10,
    ///     )?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Corresponds to no function of C.
    #[inline]
    pub fn poll_batch<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&mut Messages<'_>),
    {
        let poll = |image: &mut SubscribedImage, limit| {
            // SAFETY: as in `poll`.
            unsafe { image.poll_batch(&mut handler, limit) }
        };
        self.poll_images(poll, fragment_limit)
    }

    /// As [`poll`](Self::poll), but messages that were sent in several fragments arrive in
    /// fragments. [`Header::flags`] marks the first and the last fragment of a message. Each
    /// fragment starts at a multiple of 32 bytes in memory.
    ///
    /// Use it for handlers that assemble messages themselves, as a
    /// [`FragmentAssembler`](crate::FragmentAssembler) does, and for handlers that do not need
    /// whole messages.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_subscription_poll`.
    #[doc(alias("aeron_subscription_poll", "FragmentHandler"))]
    #[inline]
    pub fn poll_fragments<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let poll = |image: &mut SubscribedImage, limit| {
            // SAFETY: as in `poll`.
            unsafe { image.poll_fragments(&mut handler, limit) }
        };
        self.poll_images(poll, fragment_limit)
    }

    /// As [`poll`](Self::poll), with a handler that controls the position in the publisher's stream
    /// after each message.
    ///
    /// An action applies to the image of the message; the poll of other images continues. Returns
    /// the number of consumed fragments. A fragment that the handler rejected with
    /// [`Action::Abort`] is not counted. A rejected message comes again whole.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_subscription_controlled_poll` with an
    /// `aeron_controlled_fragment_assembler_handler`.
    #[doc(alias(
        "aeron_subscription_controlled_poll",
        "aeron_controlled_fragment_assembler_handler",
        "ControlledFragmentAssembler"
    ))]
    #[inline]
    pub fn controlled_poll<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        let poll = |image: &mut SubscribedImage, limit| {
            // SAFETY: as in `poll`.
            unsafe { image.controlled_poll(&mut handler, Position::MAX, limit) }
        };
        self.poll_images(poll, fragment_limit)
    }

    /// As [`controlled_poll`](Self::controlled_poll), but messages that were sent in several
    /// fragments arrive in fragments.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_subscription_controlled_poll`.
    #[doc(alias("aeron_subscription_controlled_poll", "ControlledFragmentHandler"))]
    #[inline]
    pub fn controlled_poll_fragments<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        let poll = |image: &mut SubscribedImage, limit| {
            // SAFETY: as in `poll`.
            unsafe { image.fields().controlled_poll(&mut handler, Position::MAX, limit) }
        };
        self.poll_images(poll, fragment_limit)
    }

    /// Passes the frames that have arrived to the handler, headers included, in one block from each
    /// publisher. Returns their total length in bytes.
    ///
    /// A block has as many whole frames as fit into `block_length_limit` bytes, up to the end of
    /// the term. Each frame starts at a multiple of 32 bytes in memory. The handler also gets the block's session id and term id. See
    /// [`Image::block_poll`](crate::Image::block_poll).
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_subscription_block_poll`.
    #[doc(alias("aeron_subscription_block_poll", "BlockHandler"))]
    pub fn block_poll<F>(
        &mut self,
        mut handler: F,
        block_length_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], i32, i32),
    {
        self.refresh();
        let mut length = 0;
        for image in &self.images {
            // SAFETY: as in `poll_images`.
            length += unsafe { image.fields().block_poll(&mut handler, block_length_limit) };
        }
        if length == 0 { self.nothing_polled() } else { Ok(length) }
    }

    /// Polls one image after the other, and begins with a different image each time. Returns the
    /// total number of fragments.
    #[inline(always)]
    fn poll_images(
        &mut self,
        mut poll: impl FnMut(&mut SubscribedImage, usize) -> usize,
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        // The images are live from here until the next call: see `refresh`.
        self.refresh();
        let images = self.images.as_mut_slice();
        let count = images.len();
        if count == 0 {
            return self.nothing_polled();
        }
        let first = if self.round_robin_index < count { self.round_robin_index } else { 0 };
        self.round_robin_index = first + 1;

        let mut fragments = 0;
        let mut index = first;
        while let Some(image) = images.get_mut(index) {
            fragments += poll(image, fragment_limit - fragments);
            if fragments >= fragment_limit {
                break;
            }
            index = if index + 1 == count { 0 } else { index + 1 };
            if index == first {
                break;
            }
        }
        if fragments == 0 { self.nothing_polled() } else { Ok(fragments) }
    }

    fn nothing_polled(&self) -> Result<usize, PollError> {
        if self.is_closed() { Err(PollError::Closed) } else { Ok(0) }
    }

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
                let id = fields.correlation_id();
                // An image that stays retains its partly assembled message.
                let old = gone.iter().position(|image| image.fields().correlation_id() == id);
                let assembly = match old {
                    Some(old) => gone.swap_remove(old).into_assembly(),
                    None => Assembly::new(),
                };
                self.images.push(SubscribedImage::new(fields, assembly));
            }
            self.change_number = (*list).change_number;
            let announced = log_buffer::atomic_i64(self.fields.last_image_list_change_number);
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
    /// go, the indices of other images change.
    ///
    /// Corresponds to `aeron_subscription_image_at_index`.
    #[doc(alias = "aeron_subscription_image_at_index")]
    pub fn image_at_index(&mut self, index: usize) -> Option<Image<'_>> {
        self.images().nth(index)
    }

    /// Returns whether at least one publisher's image is available.
    ///
    /// Corresponds to `aeron_subscription_is_connected`.
    #[doc(alias("aeron_subscription_is_connected", "hasNoImages"))]
    pub fn is_connected(&self) -> bool {
        // SAFETY: the subscription is live, and this type is not `Sync`: no poll is under way.
        unsafe { sys::aeron_subscription_is_connected(self.raw.as_ptr()) }
    }

    /// Waits until a publisher is connected. The first look after `deadline` is the last.
    ///
    /// Idles between two looks. An idle is not cut short at the deadline, so the call may last longer
    /// by one idle. For a client without a conductor thread, does the conductor's work
    /// as well.
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
        let attempt = || wait::connected(self.is_connected(), || self.is_closed());
        wait::until(&self.client, deadline, idle, attempt).map_err(|refusal| {
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
    /// the media driver has timed out the client, and has reused positions of this subscription.
    ///
    /// Corresponds to `aeron_subscription_is_closed`.
    #[doc(alias = "aeron_subscription_is_closed")]
    #[inline]
    pub fn is_closed(&self) -> bool {
        // SAFETY: a field of the C subscription, which lives as long as `self`.
        let is_closed = unsafe { log_buffer::atomic_bool(self.fields.is_closed) };
        is_closed.load(Ordering::Acquire) || self.is_timed_out()
    }

    #[inline]
    fn is_timed_out(&self) -> bool {
        // An unavailable image can also lose its position, before the client knows that the image
        // has gone.
        self.images.iter().any(|image| !image.fields().owns_position())
            && self.client.is_timed_out()
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
        let on_complete = Some(Box::new(on_complete) as Box<dyn FnOnce() + Send>);
        match (self.callbacks, on_complete) {
            // SAFETY: the callbacks are freed after the subscription is closed, which happens next.
            (Some(callbacks), Some(on_complete)) => unsafe {
                callbacks.set_on_close_complete(on_complete);
            },
            (_, on_close_complete) => {
                let callbacks =
                    SubscriptionCallbacks { on_close_complete, ..SubscriptionCallbacks::default() };
                self.callbacks = Some(self.client.subscription_callbacks().insert(callbacks));
            }
        }
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

impl sealed::Resource for Subscription {
    type Raw = NonNull<sys::aeron_subscription_t>;
    type Callbacks = Option<CallbackHandle>;

    unsafe fn poll(
        registering: *mut sys::aeron_client_registering_resource_stct,
    ) -> Result<Option<Self::Raw>> {
        // SAFETY: handed on to the caller.
        unsafe { poll_for_address(sys::aeron_async_add_subscription_poll, registering) }
    }

    unsafe fn cancel(
        client: *mut sys::aeron_t,
        registering: *mut sys::aeron_client_registering_resource_stct,
        callbacks: Option<CallbackHandle>,
    ) -> i32 {
        if callbacks.is_none() {
            // SAFETY: handed on to the caller.
            return unsafe { sys::aeron_async_add_subscription_cancel(client, registering) };
        }
        // SAFETY: handed on to the caller. C's own cancel does the same. Here C also notifies when
        // it is done, whatever became of the request.
        unsafe {
            let id = sys::aeron_async_add_subscription_get_registration_id(registering);
            let clientd = clientd(callbacks);
            sys::aeron_async_remove_subscription(id, client, Some(on_close_complete), clientd)
        }
    }

    unsafe fn release(list: &CallbackList, callbacks: Option<CallbackHandle>) {
        if let Some(callbacks) = callbacks {
            // SAFETY: handed on to the caller.
            unsafe { list.remove(callbacks) };
        }
    }

    unsafe fn from_raw(
        raw: Self::Raw,
        client: Arc<Client>,
        callbacks: Option<CallbackHandle>,
    ) -> Result<Self> {
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
            constants,
            callbacks,
            client,
        })
    }
}

impl sealed::Stream for Subscription {
    unsafe fn add(
        registering: &mut *mut sys::aeron_client_registering_resource_stct,
        client: *mut sys::aeron_t,
        channel: &CStr,
        stream_id: i32,
        callbacks: Option<CallbackHandle>,
    ) -> i32 {
        let clientd = clientd(callbacks);
        let on_available: sys::aeron_on_available_image_t = Some(on_available_image);
        let on_unavailable: sys::aeron_on_unavailable_image_t = Some(on_unavailable_image);
        // SAFETY: handed on to the caller; C copies the channel, and the handlers are live, or
        // absent.
        unsafe {
            sys::aeron_async_add_subscription(
                registering,
                client,
                channel.as_ptr(),
                stream_id,
                on_available.filter(|_| callbacks.is_some()),
                clientd,
                on_unavailable.filter(|_| callbacks.is_some()),
                clientd,
            )
        }
    }
}

impl Subscription {
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let closing = Closing {
            raw: SendPtr(self.raw.as_ptr()),
            registration_id: self.constants.registration_id,
            callbacks: self.callbacks,
            list: Arc::clone(self.client.subscription_callbacks()),
        };
        self.client.release(move || closing.run());
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("channel", &self.channel())
            .field("stream_id", &self.stream_id())
            .field("image_count", &self.image_count())
            .field("client_is_closed", &self.client.is_closed())
            .finish()
    }
}
