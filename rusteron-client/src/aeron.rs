//! The client: a connection to a media driver.

mod async_connect;
mod counters;

pub use async_connect::AsyncConnect;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rusteron_core::channel::{AsChannel, ChannelUse};
#[cfg(doc)]
use rusteron_core::error::ErrorKind;
use rusteron_core::error::{CloseCause, Result};
use rusteron_core::ffi::callback;
use rusteron_core::ffi::handlers::{Handler, Handlers};
use rusteron_sys as sys;

use crate::client::connect::connect;
use crate::client::{Client, NextSessionId, Registration};
use crate::context::Context;
use crate::publication::{ExclusivePublication, Publication};
use crate::subscription::{Subscription, SubscriptionBuilder};

/// A client of a media driver: the factory of publications and subscriptions.
///
/// A clone is another handle of the same client. Every publication and subscription made from the
/// client also keeps the client open. Handles can be dropped in any order. The client closes when
/// the last handle is dropped. Closing waits for the client's conductor thread to end.
///
/// The client's own thread, the conductor, talks to the media driver. In a client with
/// [`use_conductor_agent_invoker`](Context::set_use_conductor_agent_invoker), the thread that calls
/// [`do_work`](Self::do_work) does this instead.
///
/// ```
/// use rusteron_client::{Aeron, Context};
/// use rusteron_media_driver::MediaDriver;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let driver = MediaDriver::launch_embedded()?;
/// let mut context = Context::new()?;
/// context.set_dir(driver.aeron_dir())?;
/// let aeron = Aeron::connect(context)?;
/// let publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
/// assert_eq!(publication.stream_id(), 1001);
/// # Ok(())
/// # }
/// ```
#[must_use = "the client is closed when its last handle is dropped"]
#[derive(Clone)]
pub struct Aeron {
    client: Arc<Client>,
}

impl Aeron {
    /// Connects to the media driver in the context's directory, and starts the conductor thread. If
    /// the context [asks for no conductor thread](Context::set_use_conductor_agent_invoker), none
    /// is started.
    ///
    /// Blocks until the driver answers, at most for the context's driver timeout. A driver may be
    /// started during that time. Errors that no driver can end are returned at once.
    ///
    /// Logs a warning if the directory is the [default](Context::default_dir) and belongs to another
    /// user. That user can read and forge all messages.
    ///
    /// # Errors
    /// After the driver timeout:
    /// - [`ErrorKind::DriverTimeout`]: no driver is running in the directory, or the driver's
    ///   heartbeat has stopped, or the driver has not finished initialising its files; the text
    ///   names the directory, the process of a dead driver, and the age of its last heartbeat.
    ///
    /// At once:
    /// - [`ErrorKind::Io`] with [`PermissionDenied`](std::io::ErrorKind::PermissionDenied): this
    ///   process may not read and write the driver's files; if the directory has changed within the
    ///   last second, a driver may be starting there, so the call first waits for that second;
    /// - [`ErrorKind::Io`] with [`NotADirectory`](std::io::ErrorKind::NotADirectory): the directory,
    ///   or a part of its path, is a file;
    /// - [`ErrorKind::Io`] with other kinds: the driver's files cannot be opened or mapped;
    /// - [`ErrorKind::IncompatibleDriver`]: the driver is of another major version of the protocol;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback.
    ///
    /// Corresponds to `aeron_init` and `aeron_start`.
    #[doc(alias("aeron_init", "aeron_start"))]
    pub fn connect(context: Context) -> Result<Self> {
        callback::forbid_blocking("connect", Some("async_connect"))?;
        Self::connect_unless_cancelled(context, &AtomicBool::new(false))
    }

    /// Connects, and blocks meanwhile. Fails soon after the attempt was cancelled.
    pub(crate) fn connect_unless_cancelled(
        context: Context,
        is_cancelled: &AtomicBool,
    ) -> Result<Self> {
        connect(context, is_cancelled).map(|client| Self { client: Arc::new(client) })
    }

    /// Adds a publication that several threads can share, and waits for the media driver's
    /// confirmation.
    ///
    /// If this client already has a publication with the same channel and stream id, the new handle
    /// writes to the same log buffer. Blocks at most for the driver timeout. If a callback holds up
    /// the client's conductor, blocks at most for twice the driver timeout.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidChannel`]: the channel is not valid; the text names the parameter;
    /// - others that the media driver reports, with its text;
    /// - [`ErrorKind::DriverTimeout`]: no answer in time;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback;
    /// - [`ErrorKind::InvalidArgument`]: a NUL byte in `channel`.
    ///
    /// Corresponds to `aeron_async_add_publication` and `aeron_async_add_publication_poll`.
    #[doc(alias("aeron_async_add_publication", "aeron_async_add_publication_poll"))]
    pub fn add_publication(&self, channel: impl AsChannel, stream_id: i32) -> Result<Publication> {
        callback::forbid_blocking("add_publication", Some("async_add_publication"))?;
        self.async_add_publication(channel, stream_id)?.wait()
    }

    /// Starts adding a publication. Poll or await the result.
    ///
    /// Does not block, and can be called from callbacks of a client with a conductor thread.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidChannel`]: the channel is not valid; the text names the parameter;
    /// - [`ErrorKind::BufferFull`]: too many commands are waiting;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback of a client without such a thread;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
    /// - [`ErrorKind::InvalidArgument`]: a NUL byte in `channel`.
    ///
    /// Corresponds to `aeron_async_add_publication`.
    #[doc(alias = "aeron_async_add_publication")]
    pub fn async_add_publication(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
    ) -> Result<Registration<Publication>> {
        let channel = channel.to_c_string(ChannelUse::Publication)?;
        // SAFETY: C's function for such a publication, which copies the channel.
        unsafe {
            Registration::begin(&self.client, None, |request, client| {
                sys::aeron_async_add_publication(request, client, channel.as_ptr(), stream_id)
            })
        }
    }

    /// Adds a publication with its own log buffer, for one writer, and waits for the media driver's
    /// confirmation.
    ///
    /// An exclusive publication is faster than a shared one. Blocks as
    /// [`add_publication`](Self::add_publication) does.
    ///
    /// # Errors
    /// As for [`add_publication`](Self::add_publication).
    ///
    /// Corresponds to `aeron_async_add_exclusive_publication` and
    /// `aeron_async_add_exclusive_publication_poll`.
    #[doc(alias(
        "aeron_async_add_exclusive_publication",
        "aeron_async_add_exclusive_publication_poll"
    ))]
    pub fn add_exclusive_publication(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
    ) -> Result<ExclusivePublication> {
        callback::forbid_blocking(
            "add_exclusive_publication",
            Some("async_add_exclusive_publication"),
        )?;
        self.async_add_exclusive_publication(channel, stream_id)?.wait()
    }

    /// Starts adding an exclusive publication. Poll or await the result.
    ///
    /// # Errors
    /// As for [`async_add_publication`](Self::async_add_publication).
    ///
    /// Corresponds to `aeron_async_add_exclusive_publication`.
    #[doc(alias = "aeron_async_add_exclusive_publication")]
    pub fn async_add_exclusive_publication(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
    ) -> Result<Registration<ExclusivePublication>> {
        let channel = channel.to_c_string(ChannelUse::Publication)?;
        // SAFETY: C's function for such a publication, which copies the channel.
        unsafe {
            Registration::begin(&self.client, None, |request, client| {
                sys::aeron_async_add_exclusive_publication(
                    request,
                    client,
                    channel.as_ptr(),
                    stream_id,
                )
            })
        }
    }

    /// Adds a subscription, and waits for the media driver's confirmation.
    ///
    /// Blocks as [`add_publication`](Self::add_publication) does. The images of its publishers arrive
    /// later; see [`Subscription::is_connected`].
    ///
    /// # Errors
    /// As for [`add_publication`](Self::add_publication).
    ///
    /// Corresponds to `aeron_async_add_subscription` and `aeron_async_add_subscription_poll`.
    #[doc(alias("aeron_async_add_subscription", "aeron_async_add_subscription_poll"))]
    pub fn add_subscription(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
    ) -> Result<Subscription> {
        callback::forbid_blocking("add_subscription", Some("async_add_subscription"))?;
        self.async_add_subscription(channel, stream_id)?.wait()
    }

    /// Starts adding a subscription. Poll or await the result.
    ///
    /// # Errors
    /// As for [`async_add_publication`](Self::async_add_publication).
    ///
    /// Corresponds to `aeron_async_add_subscription`.
    #[doc(alias = "aeron_async_add_subscription")]
    pub fn async_add_subscription(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
    ) -> Result<Registration<Subscription>> {
        self.subscription_builder(channel, stream_id).async_add()
    }

    /// Adds a handler that is called once, while the client closes. Dropping the returned
    /// [`Handler`] removes the handler.
    ///
    /// The handler runs under the same conditions as the handler of [`Context::set_on_close`]. A
    /// handler that owns a handle of its own client keeps that client open until the returned
    /// [`Handler`] is dropped.
    ///
    /// Corresponds to `aeron_add_close_handler` and `aeron_remove_close_handler`.
    #[doc(alias("aeron_add_close_handler", "aeron_remove_close_handler", "removeCloseHandler"))]
    pub fn add_close_handler(&self, handler: impl FnMut() + Send + 'static) -> Handler {
        self.add_handler(&self.context().close_handlers, Box::new(handler))
    }

    /// Does one duty cycle of the conductor's work on this thread, for a client without a conductor
    /// thread. Returns the amount of work done.
    ///
    /// A client with [`use_conductor_agent_invoker`](Context::set_use_conductor_agent_invoker)
    /// needs these calls to stay alive. Any thread may call. The interval between calls must stay
    /// well below the media driver's client liveness timeout, 10 s by default. Handlers run in this
    /// call. The functions named `add_…` call `do_work` while they wait.
    ///
    /// # Errors
    /// - [`ErrorKind::IllegalState`]: the client has a conductor thread;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client; the call in which that
    ///   happens returns the error itself;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback.
    ///
    /// Corresponds to `aeron_main_do_work`.
    #[doc(alias("aeron_main_do_work", "conductorAgentInvoker", "AgentInvoker"))]
    pub fn do_work(&self) -> Result<usize> {
        self.client.do_work()
    }

    /// Returns a session id that no publication of this media driver with this stream id has. Waits
    /// for the driver's answer. Use the id as the parameter
    /// [`SessionId`](crate::Parameter::SessionId) of a later publication.
    ///
    /// The driver gives each id once, until it has given all of them. Another publication can still
    /// get the same id first: one without a session id, or one with an id that the application
    /// chose. If the driver does not know the request, the client uses a random id. Blocks as
    /// [`add_publication`](Self::add_publication) does.
    ///
    /// # Errors
    /// - [`ErrorKind::DriverTimeout`]: no answer in time;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback.
    ///
    /// ```
    /// # use rusteron_client::{Aeron, ChannelUri, Context};
    /// # use rusteron_media_driver::MediaDriver;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = MediaDriver::launch_embedded()?;
    /// # let mut context = Context::new()?;
    /// # context.set_dir(driver.aeron_dir())?;
    /// # let aeron = Aeron::connect(context)?;
    /// let session_id = aeron.next_session_id(1001)?;
    /// let channel = ChannelUri::ipc().session_id(session_id).build()?;
    /// let publication = aeron.add_exclusive_publication(&channel, 1001)?;
    /// assert_eq!(publication.session_id(), session_id);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Corresponds to `aeron_async_next_session_id` and `aeron_async_next_session_id_poll`.
    #[doc(alias("aeron_async_next_session_id", "aeron_async_next_session_id_poll"))]
    pub fn next_session_id(&self, stream_id: i32) -> Result<i32> {
        callback::forbid_blocking("next_session_id", Some("async_next_session_id"))?;
        self.async_next_session_id(stream_id)?.wait().map(NextSessionId::get)
    }

    /// Starts requesting a session id. Poll or await the result.
    ///
    /// Does not block, and can be called from callbacks of a client with a conductor thread.
    ///
    /// # Errors
    /// - [`ErrorKind::BufferFull`]: too many commands are waiting;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback of a client without such a thread;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client.
    ///
    /// Corresponds to `aeron_async_next_session_id`.
    #[doc(alias = "aeron_async_next_session_id")]
    pub fn async_next_session_id(&self, stream_id: i32) -> Result<Registration<NextSessionId>> {
        // SAFETY: C's function for a session id.
        unsafe {
            Registration::begin(&self.client, None, |request, client| {
                sys::aeron_async_next_session_id(request, client, stream_id)
            })
        }
    }

    /// Returns a number that no other caller, client or process gets from this media driver.
    ///
    /// Corresponds to `aeron_next_correlation_id`.
    #[doc(alias = "aeron_next_correlation_id")]
    pub fn next_correlation_id(&self) -> i64 {
        // SAFETY: the client is live; the function adds to a number in memory shared with the driver,
        // which stays mapped as long as the client.
        unsafe { sys::aeron_next_correlation_id(self.client.as_ptr()) }
    }

    /// Returns a builder for a subscription with handlers for available and unavailable images.
    ///
    /// Corresponds to the handlers that `aeron_async_add_subscription` takes.
    #[doc(alias(
        "aeron_async_add_subscription",
        "AvailableImageHandler",
        "UnavailableImageHandler"
    ))]
    pub fn subscription_builder(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
    ) -> SubscriptionBuilder<'_> {
        SubscriptionBuilder::new(&self.client, channel, stream_id)
    }

    /// Returns whether a fatal error, such as the death of the media driver, has ended this client.
    ///
    /// Publications and subscriptions of a closed client report that they are closed. Their memory
    /// stays valid until the last handle is dropped.
    ///
    /// Corresponds to `aeron_is_closed`.
    #[doc(alias = "aeron_is_closed")]
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Returns the reason why this client is closed. `None` if it is open.
    ///
    /// Every error for a closed client carries the same value. The first call after the end notes
    /// the cause, the client's error handler does so, too. Neither blocks nor allocates.
    ///
    /// Corresponds to a part of the text that C gives to the error handler.
    pub fn close_cause(&self) -> Option<CloseCause> {
        self.client.close_cause()
    }

    /// Returns an error with the cause if this client is closed.
    #[doc(hidden)]
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(self.client.closed_error()) } else { Ok(()) }
    }

    /// Returns the id by which the media driver knows this client.
    ///
    /// Corresponds to `aeron_client_id`.
    #[doc(alias = "aeron_client_id")]
    pub fn client_id(&self) -> i64 {
        // SAFETY: the client is live; it only reads a number that never changes.
        unsafe { sys::aeron_client_id(self.client.as_ptr()) }
    }

    /// Adds a handler to a list of this client. In a forked child it is dropped: no event comes there,
    /// and a thread of the parent may have locked the list.
    pub(crate) fn add_handler<F: ?Sized + Send + 'static>(
        &self,
        handlers: &Handlers<F>,
        handler: Box<F>,
    ) -> Handler {
        if self.client.is_inherited() {
            return Handlers::new("handler of a forked child").add(handler);
        }
        handlers.add(handler)
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the configuration of this client.
    ///
    /// Corresponds to `aeron_context`.
    #[doc(alias = "aeron_context")]
    pub fn context(&self) -> &Context {
        self.client.context()
    }
}

impl fmt::Debug for Aeron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aeron")
            .field("client_id", &self.client_id())
            .field("dir", &self.context().dir())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}
