//! Receiving messages.

use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusteron_sys as sys;

use crate::client::Client;
use crate::error::Result;
use crate::ffi::{Fallible, SendPtr};
use crate::generated::SubscriptionConstants;
use crate::header::Header;
use crate::image::ImageFields;
use crate::log_buffer;
use crate::offer_error::PollError;
use crate::registration::{Resource, sealed};

/// Receives the messages of all publishers of a channel and stream, on one thread at a time.
///
/// Each publisher's stream arrives as an image of its own, in order. It keeps its client open;
/// dropping it tells the media driver that this subscriber is gone.
///
/// Made by [`Aeron::add_subscription`](crate::Aeron::add_subscription).
pub struct Subscription {
    raw: NonNull<sys::aeron_subscription_t>,
    /// The fields of the C structure that a poll works on, at the addresses C uses itself.
    fields: sys::rusteron_subscription_t,
    /// The images of the list with this change number. They are safe to use as long as the current
    /// list has the same number, see [`Subscription::refresh`].
    images: Vec<ImageFields>,
    change_number: i64,
    round_robin_index: usize,
    constants: SubscriptionConstants,
    client: Arc<Client>,
}

// SAFETY: nothing in the C structure is tied to a thread; its fields for one poller are reached by
// `&mut self` only, so that moving it is moving the poller.
unsafe impl Send for Subscription {}

impl Subscription {
    /// Passes the messages that have arrived, `fragment_limit` fragments of them at the most, to the
    /// handler, and returns how many fragments there were. Zero means that nothing was there.
    ///
    /// A message longer than
    /// [`max_payload_length`](crate::PublicationConstants::max_payload_length) arrives in several
    /// fragments, one call each; [`Header::flags`] tells where it begins and ends. A small limit,
    /// such as 10, is faster than a large one: the publisher learns earlier where it may write.
    ///
    /// Does not block and makes no system call; it allocates only when a publisher has come or gone.
    /// If the handler panics, the panic goes through to the caller, and the next poll continues
    /// after the fragment that caused it.
    ///
    /// # Errors
    /// [`PollError::Closed`] if the client was closed by a fatal error.
    ///
    /// Corresponds to `aeron_subscription_poll`.
    #[inline]
    pub fn poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        self.refresh();
        let count = self.images.len();
        if count == 0 {
            return self.nothing_to_poll();
        }
        let mut first = self.round_robin_index;
        self.round_robin_index += 1;
        if first >= count {
            first = 0;
            self.round_robin_index = 1;
        }

        let mut fragments = 0;
        let (before, after) = self.images.split_at(first);
        for image in after.iter().chain(before) {
            if fragments >= fragment_limit {
                break;
            }
            // SAFETY: the image is of the current list, by `refresh`, and `&mut self` is the only
            // poller.
            fragments += unsafe { image.poll(&mut handler, fragment_limit - fragments) };
        }
        if fragments == 0 && self.is_closed() {
            return Err(PollError::Closed);
        }
        Ok(fragments)
    }

    #[cold]
    fn nothing_to_poll(&self) -> Result<usize, PollError> {
        if self.is_closed() { Err(PollError::Closed) } else { Ok(0) }
    }

    /// Makes `images` those of the current list.
    ///
    /// The conductor frees a list, and then images that were in no newer one, only after this thread
    /// has announced that it has seen a newer list. It announces here and in C's functions for this
    /// subscription, all of which need it for themselves; and everything that is read between two
    /// announcements comes from a list at least as new as the last.
    #[inline(always)]
    fn refresh(&mut self) {
        // SAFETY: the address of a pointer in the C subscription, which lives as long as `self` and
        // changes in atomic steps.
        let current = unsafe { AtomicPtr::from_ptr(self.fields.image_list) };
        let list = current.load(Ordering::Acquire);
        // SAFETY: the newest list is never freed before it has a successor that was announced here.
        if unsafe { (*list).change_number } != self.change_number {
            // SAFETY: the same.
            unsafe { self.reload(list) };
        }
    }

    /// # Safety
    /// `list` was the current list since this thread last announced one.
    #[cold]
    unsafe fn reload(&mut self, list: *const sys::rusteron_image_list_t) {
        self.images.clear();
        // SAFETY: the list is live by the contract, and so are its images, until the announcement.
        unsafe {
            for index in 0..sys::rusteron_image_list_length(list) {
                let mut fields = MaybeUninit::uninit();
                sys::rusteron_image_fields(list, index, fields.as_mut_ptr());
                self.images.push(ImageFields::new(fields.assume_init()));
            }
            self.change_number = (*list).change_number;
            let announced = log_buffer::atomic_i64(self.fields.last_image_list_change_number);
            if self.change_number > announced.load(Ordering::Relaxed) {
                announced.store(self.change_number, Ordering::Release);
            }
        }
    }

    /// Whether at least one publisher's image is there.
    ///
    /// Corresponds to `aeron_subscription_is_connected`.
    pub fn is_connected(&self) -> bool {
        // SAFETY: the subscription is live, and this type is not `Sync`: no poll is under way.
        unsafe { sys::aeron_subscription_is_connected(self.raw.as_ptr()) }
    }

    /// How many publishers' images are there.
    ///
    /// Corresponds to `aeron_subscription_image_count`.
    pub fn image_count(&self) -> usize {
        // SAFETY: as in `is_connected`. The count is a length and never negative.
        unsafe { sys::aeron_subscription_image_count(self.raw.as_ptr()) as usize }
    }

    /// Whether the client was closed by a fatal error, and this subscription with it.
    ///
    /// Corresponds to `aeron_subscription_is_closed`.
    #[inline]
    pub fn is_closed(&self) -> bool {
        // SAFETY: a field of the C subscription, which lives as long as `self`.
        unsafe { log_buffer::atomic_bool(self.fields.is_closed).load(Ordering::Acquire) }
    }

    /// The stream's channel, as it was given when the subscription was added.
    pub fn channel(&self) -> &str {
        &self.constants.channel
    }

    /// The stream id within the channel.
    pub fn stream_id(&self) -> i32 {
        self.constants.stream_id
    }

    /// What does not change during the subscription's life.
    ///
    /// Corresponds to `aeron_subscription_constants`.
    pub fn constants(&self) -> &SubscriptionConstants {
        &self.constants
    }

    /// The C subscription, for the functions that have no safe form yet.
    ///
    /// It is live as long as `self`. Calling C's functions on it needs the same exclusiveness as
    /// `&mut self`, and closing it is never allowed.
    pub fn as_ptr(&self) -> *mut sys::aeron_subscription_t {
        self.raw.as_ptr()
    }
}

impl Resource for Subscription {}

impl sealed::Resource for Subscription {
    type Raw = sys::aeron_subscription_t;

    unsafe fn poll(
        raw: &mut *mut Self::Raw,
        registering: *mut sys::aeron_client_registering_resource_stct,
    ) -> i32 {
        // SAFETY: handed on to the caller.
        unsafe { sys::aeron_async_add_subscription_poll(raw, registering) }
    }

    unsafe fn cancel(
        client: *mut sys::aeron_t,
        registering: *mut sys::aeron_client_registering_resource_stct,
    ) -> i32 {
        // SAFETY: handed on to the caller.
        unsafe { sys::aeron_async_add_subscription_cancel(client, registering) }
    }

    unsafe fn from_raw(raw: NonNull<Self::Raw>, client: Arc<Client>) -> Result<Self> {
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
            // The number of the empty list that a subscription starts with.
            change_number: -1,
            round_robin_index: 0,
            constants,
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
    ) -> i32 {
        // SAFETY: handed on to the caller; C copies the channel and has no handlers to call.
        unsafe {
            sys::aeron_async_add_subscription(
                registering,
                client,
                channel.as_ptr(),
                stream_id,
                None,
                ptr::null_mut(),
                None,
                ptr::null_mut(),
            )
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let (raw, registration_id) = (SendPtr(self.raw.as_ptr()), self.constants.registration_id);
        self.client.release(move || {
            // SAFETY: the subscription is live, and closing hands it over to the conductor, which frees
            // it and its images; this was the only owner. If the client was ended by an error, nothing happens
            // here and the subscription is freed with the client.
            let closed = unsafe { sys::aeron_subscription_close(raw.get(), None, ptr::null_mut()) };
            if let Err(error) = closed.into_result() {
                log::debug!("subscription {registration_id}: {error}");
            }
        });
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
