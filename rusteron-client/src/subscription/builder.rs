//! Builder for subscriptions with handlers for available and unavailable images.

use std::ffi::CString;
use std::sync::Arc;

use rusteron_core::channel::{AsChannel, ChannelUse};
use rusteron_core::error::Result;
use rusteron_core::ffi::callback;
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys as sys;

use crate::client::subscription_callbacks::{
    CallbackHandle, SubscriptionCallbacks, on_available_image, on_unavailable_image,
};
use crate::client::{Client, Registration};
use crate::subscription::Subscription;
use crate::subscription::image::ImageInfo;

/// Builds a subscription with handlers for available and unavailable images.
///
/// The handlers run on the client's conductor thread and hold up the conductor meanwhile. Calls in
/// a handler that would wait for that thread return
/// [`ErrorKind::CalledFromConductor`](crate::ErrorKind::CalledFromConductor). A panic in a handler
/// is logged.
///
/// The handlers are dropped, on any thread, when the subscription has been closed or could not be
/// added, and no more calls can come. Handlers of a dropped subscription may still be called for
/// its images.
///
/// Made by [`Aeron::subscription_builder`](crate::Aeron::subscription_builder).
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// use std::sync::mpsc;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// let (sender, publishers) = mpsc::channel();
/// let subscription = aeron
///     .subscription_builder("aeron:ipc", 1001)
///     .on_available_image(move |image| {
///         let _ = sender.send(image.session_id());
///     })
///     .add()?;
/// let publication = aeron.add_publication("aeron:ipc", 1001)?;
/// assert_eq!(publishers.recv()?, publication.session_id());
/// # drop(subscription);
/// # Ok(())
/// # }
/// ```
///
/// The handlers run on another thread, and as long as the subscription exists. So they have to be
/// `Send` and must not borrow. Neither of these functions compiles:
///
/// ```compile_fail,E0277
/// # use rusteron_client::Aeron;
/// fn count(aeron: &Aeron) {
///     let count = std::rc::Rc::new(std::cell::Cell::new(0));
///     let _ = aeron
///         .subscription_builder("aeron:ipc", 1001)
///         .on_available_image(move |_| count.set(count.get() + 1));
/// }
/// ```
///
/// ```compile_fail,E0597
/// # use rusteron_client::Aeron;
/// fn note(aeron: &Aeron) {
///     let images = std::sync::Mutex::new(Vec::new());
///     let images = &images;
///     let _ = aeron
///         .subscription_builder("aeron:ipc", 1001)
///         .on_unavailable_image(move |image| images.lock().unwrap().push(image.clone()));
/// }
/// ```
#[must_use = "nothing is added until `add` or `async_add` is called"]
pub struct SubscriptionBuilder<'a> {
    client: &'a Arc<Client>,
    channel: Result<CString>,
    stream_id: i32,
    /// `None` without handlers.
    callbacks: Option<SubscriptionCallbacks>,
}

// SAFETY: the bound never holds.
unsafe impl Sync for SubscriptionBuilder<'_> where for<'a> Self: SharedBetweenThreads<'a> {}

impl<'a> SubscriptionBuilder<'a> {
    pub(crate) fn new(client: &'a Arc<Client>, channel: impl AsChannel, stream_id: i32) -> Self {
        let channel = channel.to_c_string(ChannelUse::Subscription);
        Self { client, channel, stream_id, callbacks: None }
    }

    /// Sets the handler that is called when a publisher's image has become available. The call
    /// comes before the image can be polled or while it is being polled.
    ///
    /// Corresponds to `on_available_image_handler` of `aeron_async_add_subscription`.
    #[doc(alias("aeron_async_add_subscription", "AvailableImageHandler"))]
    pub fn on_available_image(mut self, handler: impl FnMut(&ImageInfo) + Send + 'static) -> Self {
        let callbacks = self.callbacks.get_or_insert_default();
        callbacks.on_available_image = Some(Box::new(with_info(handler)));
        self
    }

    /// Sets the handler that is called when an image has become unavailable, because its publisher
    /// or the subscription has gone.
    ///
    /// The handler is not called for the images of a client that a fatal error has ended.
    ///
    /// Corresponds to `on_unavailable_image_handler` of `aeron_async_add_subscription`.
    #[doc(alias("aeron_async_add_subscription", "UnavailableImageHandler"))]
    pub fn on_unavailable_image(
        mut self,
        handler: impl FnMut(&ImageInfo) + Send + 'static,
    ) -> Self {
        let callbacks = self.callbacks.get_or_insert_default();
        callbacks.on_unavailable_image = Some(Box::new(with_info(handler)));
        self
    }

    /// Adds the subscription, and waits for the media driver's confirmation.
    ///
    /// # Errors
    /// As for [`Aeron::add_subscription`](crate::Aeron::add_subscription).
    ///
    /// Corresponds to `aeron_async_add_subscription` and `aeron_async_add_subscription_poll`.
    #[doc(alias("aeron_async_add_subscription", "aeron_async_add_subscription_poll"))]
    pub fn add(self) -> Result<Subscription> {
        callback::forbid_blocking(
            "SubscriptionBuilder::add",
            Some("SubscriptionBuilder::async_add"),
        )?;
        self.async_add()?.wait()
    }

    /// Starts adding the subscription. Poll or await the result.
    ///
    /// # Errors
    /// As for [`Aeron::async_add_subscription`](crate::Aeron::async_add_subscription).
    ///
    /// Corresponds to `aeron_async_add_subscription`.
    #[doc(alias = "aeron_async_add_subscription")]
    pub fn async_add(self) -> Result<Registration<Subscription>> {
        let (channel, stream_id) = (self.channel?, self.stream_id);
        // In a forked child, a thread of the parent may have locked the list.
        self.client.check_process()?;
        let list = self.client.subscription_callbacks();
        let callbacks = self.callbacks.map(|callbacks| list.insert(callbacks));
        let clientd = CallbackHandle::clientd(callbacks);
        // SAFETY: C's function for a subscription, which copies the channel. The callbacks stay in
        // the list until the request or the subscription releases them.
        unsafe {
            Registration::begin(self.client, callbacks, |request, client| {
                sys::aeron_async_add_subscription(
                    request,
                    client,
                    channel.as_ptr(),
                    stream_id,
                    Some(on_available_image),
                    clientd,
                    Some(on_unavailable_image),
                    clientd,
                )
            })
        }
    }
}

/// Wraps the handler in a closure that the client calls with a live image, whose log buffer is
/// mapped.
fn with_info(
    mut handler: impl FnMut(&ImageInfo) + Send + 'static,
) -> impl FnMut(*mut sys::aeron_image_t) + Send + 'static {
    // SAFETY: `SubscriptionCallbacks` passes a live image, whose log buffer is mapped.
    move |image| handler(&unsafe { ImageInfo::from_raw(image) })
}

rusteron_core::impl_debug!(SubscriptionBuilder<'_>: channel, stream_id);
