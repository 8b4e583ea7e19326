//! A subscription that says when publishers come and go.

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;

use rusteron_sys as sys;

use crate::channel::uri::{AsChannel, Use};
use crate::client::subscription_callbacks::SubscriptionCallbacks;
use crate::client::{Client, Registration};
use crate::error::Result;
use crate::ffi::callback;
use crate::subscription::Subscription;
use crate::subscription::image::ImageInfo;

/// What a subscription is added with, besides channel and stream id.
///
/// The handlers run on the client's conductor thread and keep it from its work meanwhile; calls in
/// them that would wait for that thread return
/// [`ErrorKind::CalledFromConductor`](crate::ErrorKind::CalledFromConductor). A panic in one is
/// logged. They are dropped, on any thread, when the subscription has been closed, or could not be
/// added, and no more calls can come; a subscription that was dropped may still hear of its images.
///
/// Made by [`Aeron::subscription_builder`].
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
/// As they run on another thread, and for as long as the subscription is there, they have to be
/// `Send` and borrow nothing:
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
    callbacks: SubscriptionCallbacks,
}

impl<'a> SubscriptionBuilder<'a> {
    pub(crate) fn new(client: &'a Arc<Client>, channel: impl AsChannel, stream_id: i32) -> Self {
        let channel = channel.to_c_string(Use::Subscription);
        Self { client, channel, stream_id, callbacks: SubscriptionCallbacks::default() }
    }

    /// Sets what is called when a publisher's image has come, before it can be polled or while it is
    /// being polled.
    ///
    /// Corresponds to `on_available_image_handler` of `aeron_async_add_subscription`.
    pub fn on_available_image(mut self, handler: impl FnMut(&ImageInfo) + Send + 'static) -> Self {
        self.callbacks.on_available_image = Some(Box::new(with_info(handler)));
        self
    }

    /// Sets what is called when an image has gone: with its publisher, or with the subscription.
    ///
    /// It is not called for the images of a client that a fatal error has ended.
    ///
    /// Corresponds to `on_unavailable_image_handler` of `aeron_async_add_subscription`.
    pub fn on_unavailable_image(
        mut self,
        handler: impl FnMut(&ImageInfo) + Send + 'static,
    ) -> Self {
        self.callbacks.on_unavailable_image = Some(Box::new(with_info(handler)));
        self
    }

    /// Adds the subscription, and waits for the media driver to confirm.
    ///
    /// # Errors
    /// As for [`Aeron::add_subscription`](crate::Aeron::add_subscription).
    ///
    /// Corresponds to `aeron_async_add_subscription` and `aeron_async_add_subscription_poll`.
    pub fn add(self) -> Result<Subscription> {
        callback::forbid_blocking("add_subscription")?;
        self.async_add()?.wait()
    }

    /// Begins to add the subscription, and returns what tells when it is there.
    ///
    /// # Errors
    /// As for [`Aeron::async_add_subscription`](crate::Aeron::async_add_subscription).
    ///
    /// Corresponds to `aeron_async_add_subscription`.
    pub fn async_add(self) -> Result<Registration<Subscription>> {
        let channel = self.channel?;
        let callbacks = self.client.subscription_callbacks().insert(self.callbacks);
        Registration::begin_stream(self.client, &channel, self.stream_id, Some(callbacks))
    }
}

/// The handler, for what the client calls with a live image whose log buffer is mapped.
fn with_info(
    mut handler: impl FnMut(&ImageInfo) + Send + 'static,
) -> impl FnMut(*mut sys::aeron_image_t) + Send + 'static {
    // SAFETY: the image is as said above, by the contract of `SubscriptionCallbacks`.
    move |image| handler(&unsafe { ImageInfo::from_raw(image) })
}

impl fmt::Debug for SubscriptionBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionBuilder")
            .field("channel", &self.channel)
            .field("stream_id", &self.stream_id)
            .field("callbacks", &self.callbacks)
            .finish_non_exhaustive()
    }
}
