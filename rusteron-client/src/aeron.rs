//! The client: a connection to a media driver.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{self, Poll};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rusteron_sys as sys;

use crate::channel::uri::{AsChannel, ChannelUse};
use crate::client::background::Background;
use crate::client::counter::{self, Counter};
use crate::client::{Client, NextSessionId, Registration, next_session_id};
use crate::cnc::refusal::{Access, Refusal};
use crate::cnc::{CncFile, CountersReader, epoch};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::handlers::Handler;
use crate::ffi::{c_path, callback, last_error};
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
        callback::forbid_blocking("connect")?;
        connect(context, &AtomicBool::new(false))
    }

    /// Starts connecting on a thread of its own, which ends with the outcome. Poll or await the
    /// result.
    ///
    /// Does not block, and can be called from callbacks. Dropping the [`AsyncConnect`] cancels it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the operating system refuses another thread.
    ///
    /// Corresponds to no function of C, whose `aeron_init` blocks.
    pub fn async_connect(context: Context) -> Result<AsyncConnect> {
        let connecting =
            Background::start("aeron-connect", |cancelled| connect(context, cancelled))?;
        Ok(AsyncConnect { connecting })
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
        callback::forbid_blocking("add_publication")?;
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
        Registration::begin(&self.client, &channel.to_c_string(ChannelUse::Publication)?, stream_id)
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
        callback::forbid_blocking("add_exclusive_publication")?;
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
        Registration::begin(&self.client, &channel.to_c_string(ChannelUse::Publication)?, stream_id)
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
        callback::forbid_blocking("add_subscription")?;
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
        Registration::begin(
            &self.client,
            &channel.to_c_string(ChannelUse::Subscription)?,
            stream_id,
        )
    }

    /// Adds a counter, and waits for the media driver's confirmation.
    ///
    /// The type id says what kind of counter it is; type ids below 1000 are Aeron's own. The key
    /// has at most [`Counter::MAX_KEY_LENGTH`] bytes and tells programs what the counter counts.
    /// The label has at most [`Counter::MAX_LABEL_LENGTH`] bytes and tells people. Java's tools
    /// read labels as US-ASCII. Blocks as [`add_publication`](Self::add_publication) does.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: key or label are too long;
    /// - [`ErrorKind::DriverTimeout`]: no answer in time;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback;
    /// - others that the media driver reports, with its text, such as no space for another counter.
    ///
    /// Corresponds to `aeron_async_add_counter` and `aeron_async_add_counter_poll`.
    #[doc(alias("aeron_async_add_counter", "aeron_async_add_counter_poll"))]
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<Counter> {
        callback::forbid_blocking("add_counter")?;
        self.async_add_counter(type_id, key, label)?.wait()
    }

    /// Starts adding a counter. Poll or await the result.
    ///
    /// Does not block, and can be called from callbacks of a client with a conductor thread.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: key or label are too long;
    /// - [`ErrorKind::BufferFull`]: too many commands are waiting;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback of a client without such a thread;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client.
    ///
    /// Corresponds to `aeron_async_add_counter`.
    #[doc(alias = "aeron_async_add_counter")]
    pub fn async_add_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<Registration<Counter>> {
        counter::begin(&self.client, type_id, key, label, None)
    }

    /// Adds a static counter, or finds the existing one with the same type and registration id.
    /// Waits for the media driver's confirmation.
    ///
    /// Clients share a static counter: all handles refer to the same value. The first request
    /// decides the key and the label. The counter lives as long as the driver. Blocks as
    /// [`add_publication`](Self::add_publication) does.
    ///
    /// # Errors
    /// As for [`add_counter`](Self::add_counter); the media driver also reports a counter with the
    /// same type and registration id that is not static.
    ///
    /// Corresponds to `aeron_async_add_static_counter` and `aeron_async_add_counter_poll`.
    #[doc(alias("aeron_async_add_static_counter", "aeron_async_add_counter_poll"))]
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Counter> {
        callback::forbid_blocking("add_static_counter")?;
        self.async_add_static_counter(type_id, key, label, registration_id)?.wait()
    }

    /// Starts adding or finding a static counter. Poll or await the result.
    ///
    /// Dropping the [`Registration`] does not cancel the counter: the driver creates it once it is
    /// requested.
    ///
    /// # Errors
    /// As for [`async_add_counter`](Self::async_add_counter).
    ///
    /// Corresponds to `aeron_async_add_static_counter`.
    #[doc(alias = "aeron_async_add_static_counter")]
    pub fn async_add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Registration<Counter>> {
        counter::begin(&self.client, type_id, key, label, Some(registration_id))
    }

    /// Returns a reader of the counters of the media driver and of all its clients. The reader
    /// borrows this handle.
    ///
    /// ```
    /// # use rusteron_client::{Aeron, Context};
    /// # use rusteron_media_driver::MediaDriver;
    /// # use rusteron_client::SystemCounter;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = MediaDriver::launch_embedded()?;
    /// # let mut context = Context::new()?;
    /// # context.set_dir(driver.aeron_dir())?;
    /// # let aeron = Aeron::connect(context)?;
    /// let counters = aeron.counters_reader();
    /// println!("{:?} bytes sent", SystemCounter::BytesSent.read(&counters));
    /// for counter in counters.iter() {
    ///     println!("{}: {}", counter.label, counter.value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Corresponds to `aeron_counters_reader`.
    #[doc(alias = "aeron_counters_reader")]
    pub fn counters_reader(&self) -> CountersReader<'_> {
        // SAFETY: the reader is a part of the C client, which lives as long as `self`. The mapping
        // that it reads goes with the context and lives as long, too.
        unsafe { CountersReader::from_raw(sys::aeron_counters_reader(self.client.as_ptr())) }
    }

    /// Adds a handler that is called when a client of the driver, this one or another, has added a
    /// counter that is not static. Dropping the returned [`Handler`] removes the handler.
    ///
    /// The handler's arguments and limits are those of [`Context::set_on_available_counter`].
    /// Neither adding nor removing waits for the conductor; both can be done in callbacks.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # use rusteron_client::{Aeron, Context};
    /// # use rusteron_media_driver::MediaDriver;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = MediaDriver::launch_embedded()?;
    /// # let mut context = Context::new()?;
    /// # context.set_dir(driver.aeron_dir())?;
    /// # let aeron = Aeron::connect(context)?;
    /// let (sender, added) = mpsc::channel();
    /// let _handler = aeron.add_available_counter_handler(move |_counters, registration_id, _id| {
    ///     let _ = sender.send(registration_id);
    /// });
    /// let counter = aeron.add_counter(1001, b"key", "requests of my service")?;
    /// assert!(added.iter().any(|registration_id| registration_id == counter.registration_id()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The handler runs on another thread, so everything that it owns has to be `Send`. This does
    /// not compile:
    ///
    /// ```compile_fail,E0277
    /// # use rusteron_client::{Aeron, Handler};
    /// fn count(aeron: &Aeron, count: std::rc::Rc<std::cell::Cell<u32>>) -> Handler {
    ///     aeron.add_available_counter_handler(move |_, _, _| count.set(count.get() + 1))
    /// }
    /// ```
    ///
    /// Corresponds to `aeron_add_available_counter_handler` and
    /// `aeron_remove_available_counter_handler`.
    #[doc(alias(
        "aeron_add_available_counter_handler",
        "aeron_remove_available_counter_handler",
        "AvailableCounterHandler",
        "removeAvailableCounterHandler"
    ))]
    pub fn add_available_counter_handler(
        &self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> Handler {
        self.context().counter_handlers.available.add(Box::new(handler))
    }

    /// Adds a handler that is called when a counter that is not static is removed. Dropping the
    /// returned [`Handler`] removes the handler.
    ///
    /// The handler's arguments and limits are those of [`Context::set_on_unavailable_counter`].
    /// Neither adding nor removing waits for the conductor; both can be done in callbacks.
    ///
    /// Corresponds to `aeron_add_unavailable_counter_handler` and
    /// `aeron_remove_unavailable_counter_handler`.
    #[doc(alias(
        "aeron_add_unavailable_counter_handler",
        "aeron_remove_unavailable_counter_handler",
        "UnavailableCounterHandler",
        "removeUnavailableCounterHandler"
    ))]
    pub fn add_unavailable_counter_handler(
        &self,
        handler: impl FnMut(&CountersReader<'_>, i64, i32) + Send + 'static,
    ) -> Handler {
        self.context().counter_handlers.unavailable.add(Box::new(handler))
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
        self.context().close_handlers.add(Box::new(handler))
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
        callback::forbid_blocking("next_session_id")?;
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
        next_session_id::begin(&self.client, stream_id)
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

    /// Returns the id by which the media driver knows this client.
    ///
    /// Corresponds to `aeron_client_id`.
    #[doc(alias = "aeron_client_id")]
    pub fn client_id(&self) -> i64 {
        // SAFETY: the client is live; it only reads a number that never changes.
        unsafe { sys::aeron_client_id(self.client.as_ptr()) }
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

/// A client that is being connected. Made by [`Aeron::async_connect`].
///
/// Poll it until it returns the client or an error, or await it as a future. The future needs no
/// particular runtime. If it is dropped before that, the attempt is cancelled, without waiting:
/// a client that connects nevertheless is closed on another thread.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// let mut connecting = Aeron::async_connect(context)?;
/// let aeron = loop {
///     if let Some(aeron) = connecting.poll()? {
///         break aeron;
///     }
///     std::thread::yield_now(); // or go on with other work
/// };
/// assert!(!aeron.is_closed());
/// # Ok(())
/// # }
/// ```
#[must_use = "the attempt is cancelled when this is dropped"]
pub struct AsyncConnect {
    connecting: Background<Aeron>,
}

impl AsyncConnect {
    /// Returns the client if it has connected, and `None` if not yet. Does not block.
    ///
    /// # Errors
    /// The outcome is returned once, and can be an error of [`Aeron::connect`]. After that,
    /// [`ErrorKind::IllegalState`].
    pub fn poll(&mut self) -> Result<Option<Aeron>> {
        self.connecting.poll(None)
    }
}

impl Future for AsyncConnect {
    type Output = Result<Aeron>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        match self.connecting.poll(Some(context.waker())).transpose() {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }
}

impl fmt::Debug for AsyncConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncConnect").finish_non_exhaustive()
    }
}

/// Connects, and blocks meanwhile. Fails soon after the attempt was cancelled.
fn connect(context: Context, is_cancelled: &AtomicBool) -> Result<Aeron> {
    let dir = context.dir().to_owned();
    await_driver(&context, is_cancelled)?;
    let client = Client::start(context).map_err(|error| match error.kind() {
        // The driver has gone since.
        ErrorKind::DriverTimeout => error.with_line(&format!("{}: {ADVICE}", dir.display())),
        _ => error,
    })?;
    warn_of_owner(&dir);
    Ok(Aeron { client: Arc::new(client) })
}

/// Warns of a default directory that belongs to another user.
///
/// All users may create files in `/dev/shm`. Another user can therefore create this directory
/// before the driver does. A directory that the caller named may belong to any user.
#[cfg(unix)]
fn warn_of_owner(dir: &Path) {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    if dir != Context::default_dir() {
        return;
    }
    // SAFETY: reads a number of the process, and cannot fail.
    let user = unsafe { sys::rusteron_effective_user() };
    // Checks the owner of a link and the owner of the link's target.
    let owners = [fs::symlink_metadata(dir), fs::metadata(dir)];
    let mut owners = owners.into_iter().flatten().map(|metadata| metadata.uid());
    if let Some(owner) = owners.find(|owner| i64::from(*owner) != user) {
        log::warn!(
            "{}: the default directory of this user, {user}, belongs to user {owner}, who can read and forge \
             all messages of this client; a directory that is named in AERON_DIR or set_dir is not checked",
            dir.display()
        );
    }
}

#[cfg(not(unix))]
fn warn_of_owner(_dir: &Path) {}

/// Help for a user whose program finds no driver.
const ADVICE: &str = "start a media driver with this directory, or name the directory of a running \
                      driver with Context::set_dir or AERON_DIR";

/// Waits for a driver with a heartbeat that is no older than the driver timeout.
///
/// C waits for the same heartbeat. But C has no deadline while the file is shorter than the length
/// that the file states, and also waits if nothing can change. After this function C finds
/// everything on its first attempt.
fn await_driver(context: &Context, is_cancelled: &AtomicBool) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(1);
    let dir = c_path("dir", context.dir())?;
    let timeout = context.driver_timeout();
    let start = Instant::now();
    loop {
        let refusal = Refusal::find(context.dir(), Access::ReadWrite);
        if let Some(refusal) = refusal.as_ref().filter(|refusal| !refusal.may_end()) {
            return Err(refusal.to_error());
        }
        let mut heartbeat = 0;
        // SAFETY: `dir` is a terminated string; the function maps the file and unmaps it again.
        let state = unsafe { sys::rusteron_cnc_state(dir.as_ptr(), &mut heartbeat) };
        match state {
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPATIBLE => {
                return Err(incompatible(last_error(), context.dir()));
            }
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_FAILED => return Err(last_error()),
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_READY
                if refusal.is_none() && is_recent(heartbeat, timeout) =>
            {
                return Ok(());
            }
            _ => {}
        }
        let Some(remaining) =
            timeout.checked_sub(start.elapsed()).filter(|remaining| !remaining.is_zero())
        else {
            return Err(refusal.map_or_else(
                || driver_timeout(context, state, heartbeat),
                |refusal| refusal.to_error(),
            ));
        };
        if is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io(io::ErrorKind::Interrupted), "cancelled"));
        }
        thread::sleep(remaining.min(PAUSE));
    }
}

/// Decides as C does.
fn is_recent(heartbeat: i64, timeout: Duration) -> bool {
    let oldest = SystemTime::now().checked_sub(timeout).map_or(0, epoch::millis);
    heartbeat != 0 && heartbeat >= oldest
}

/// Adds directory and advice to C's text, which names both versions.
fn incompatible(error: Error, dir: &Path) -> Error {
    error.with_kind(ErrorKind::IncompatibleDriver).with_line(&format!(
        "{}: use a driver and a client of the same major version",
        dir.join("cnc.dat").display()
    ))
}

/// Describes the absence of a driver. The first line is C's, except for an incomplete file: C has no
/// text for that case.
fn driver_timeout(context: &Context, state: sys::rusteron_cnc_state_t, heartbeat: i64) -> Error {
    let (dir, timeout) = (context.dir(), context.driver_timeout().as_millis());
    let name = dir.display();
    let message = match state {
        sys::rusteron_cnc_state_enum_RUSTERON_CNC_ABSENT => {
            let file = dir.join("cnc.dat");
            let finding = if dir.exists() { "has no cnc.dat" } else { "does not exist" };
            format!(
                "CnC file not created: {}\nno media driver runs in {name}, which {finding} after {timeout} ms; \
                 {ADVICE}",
                file.display()
            )
        }
        sys::rusteron_cnc_state_enum_RUSTERON_CNC_READY => {
            let driver = silent_driver(dir, heartbeat);
            format!("no driver heartbeat detected after: {timeout}ms\n{name}: {driver}")
        }
        _ => format!(
            "the CnC file in {name} is not complete after {timeout} ms; if its driver is not \
             starting, start a new one with dir_delete_on_start"
        ),
    };
    Error::from_code(-(sys::AERON_CLIENT_ERROR_DRIVER_TIMEOUT as i32), message)
}

/// Describes a driver that has stopped to report.
fn silent_driver(dir: &Path, heartbeat: i64) -> String {
    let process = match CncFile::open(dir, Duration::ZERO) {
        Ok(cnc) => format!("the media driver, process {},", cnc.pid()),
        // Another driver is about to replace the file.
        Err(_) => "the media driver".to_owned(),
    };
    let advice = "start a new one, with dir_delete_on_start to replace the directory at once";
    match epoch::time(heartbeat).filter(|_| heartbeat > 0) {
        Some(last) => {
            let age = SystemTime::now().duration_since(last).unwrap_or_default();
            format!("{process} gave its last heartbeat {age:.1?} ago; if it has died, {advice}")
        }
        None if heartbeat == 0 => {
            format!("{process} has given no heartbeat yet; if it has died, {advice}")
        }
        // A driver that ends in good order writes a negative number.
        None => format!("{process} has ended; {advice}"),
    }
}
