//! Pending requests to the media driver for resources.

use std::ffi::{CStr, c_int};
use std::fmt;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::{self, Poll};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_sys as sys;

use crate::client::Client;
use crate::client::subscription_callbacks::CallbackList;
use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::{Fallible, SendPtr, callback, last_error, lossy, wake};
use rusteron_core::threads::SharedBetweenThreads;

/// A pending request for a publication, subscription, counter or session id.
///
/// Poll it until it returns the resource or an error, or await it as a future. If it is dropped
/// before that, the request is cancelled: the media driver is told to remove the resource.
/// Cancelling blocks, for up to a second, only while the queue of commands to the conductor is
/// full.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// let mut registration = aeron.async_add_subscription("aeron:ipc", 1001)?;
/// let subscription = loop {
///     if let Some(subscription) = registration.poll()? {
///         break subscription;
///     }
///     std::thread::yield_now(); // or go on with other work
/// };
/// assert_eq!(subscription.stream_id(), 1001);
/// # Ok(())
/// # }
/// ```
#[doc(alias("asyncAddPublication", "getPublication", "getSubscription", "getCounter"))]
#[must_use = "the request is cancelled when this is dropped"]
pub struct Registration<R: Resource> {
    /// `None` once the outcome has been returned: C frees the structure then.
    raw: Option<NonNull<sys::aeron_client_registering_resource_stct>>,
    registration_id: i64,
    client: Arc<Client>,
    deadline: Deadline,
    /// Owned by the request until there is a resource, which owns the callbacks from then on.
    callbacks: R::Callbacks,
}

// SAFETY: C polls the structure through an atomic status and cancels it by its number, and the
// structure has one owner here; neither depends on the thread.
unsafe impl<R: Resource> Send for Registration<R> {}

// SAFETY: the bound never holds.
unsafe impl<R: Resource> Sync for Registration<R> where for<'a> Self: SharedBetweenThreads<'a> {}

/// A resource that a client can request from a media driver.
///
/// Sealed: implemented by [`Publication`](crate::Publication),
/// [`ExclusivePublication`](crate::ExclusivePublication), [`Subscription`](crate::Subscription) and
/// [`Counter`](crate::Counter) and [`NextSessionId`](crate::NextSessionId).
pub trait Resource: sealed::Resource {}

pub(crate) mod sealed {
    use super::*;

    /// The C functions of one kind of resource.
    pub trait Resource: Sized {
        /// C's handle of the resource, or its value.
        type Raw;

        /// Callbacks that C may call for the resource.
        type Callbacks: Copy + Default + Send + Unpin + 'static;

        /// Returns the outcome, or `None` if there is none yet.
        ///
        /// # Safety
        /// `registering` was made by C's function that begins such a resource, has not given its
        /// outcome, and its client is live.
        unsafe fn poll(
            registering: *mut sys::aeron_client_registering_resource_stct,
        ) -> Result<Option<Self::Raw>>;

        /// # Safety
        /// As for [`poll`](Self::poll), and `registering` was made with this `client`.
        unsafe fn cancel(
            client: *mut sys::aeron_t,
            registering: *mut sys::aeron_client_registering_resource_stct,
            callbacks: Self::Callbacks,
        ) -> i32;

        /// Releases the callbacks of a resource that is never created.
        ///
        /// # Safety
        /// C does not call them any more.
        unsafe fn release(_list: &CallbackList, _callbacks: Self::Callbacks) {}

        /// # Safety
        /// `raw` is what [`poll`](Self::poll) gave, has no other owner, and belongs to `client`.
        unsafe fn from_raw(
            raw: Self::Raw,
            client: Arc<Client>,
            callbacks: Self::Callbacks,
        ) -> Result<Self>;
    }

    /// The kinds of resource that a channel and a stream id describe completely.
    pub(crate) trait Stream: Resource {
        /// # Safety
        /// `client` is live, and so are the callbacks until they are released.
        unsafe fn add(
            registering: &mut *mut sys::aeron_client_registering_resource_stct,
            client: *mut sys::aeron_t,
            channel: &CStr,
            stream_id: i32,
            callbacks: Self::Callbacks,
        ) -> i32;
    }
}

impl<R: Resource> Registration<R> {
    pub(crate) fn begin(client: &Arc<Client>, channel: &CStr, stream_id: i32) -> Result<Self>
    where
        R: sealed::Stream,
    {
        Self::begin_stream(client, channel, stream_id, R::Callbacks::default())
    }

    /// As [`begin`](Self::begin), with callbacks, which the request owns from here on.
    pub(crate) fn begin_stream(
        client: &Arc<Client>,
        channel: &CStr,
        stream_id: i32,
        callbacks: R::Callbacks,
    ) -> Result<Self>
    where
        R: sealed::Stream,
    {
        // SAFETY: `add` is the function for such a resource, and the client is live in the call.
        unsafe {
            Self::begin_with(client, callbacks, |raw, client| {
                R::add(raw, client, channel, stream_id, callbacks)
            })
        }
    }

    /// # Safety
    /// `add` calls C's function that begins to add an `R` to the client, which is live, and gives back
    /// what that returned. C may call the callbacks until they are released.
    pub(crate) unsafe fn begin_with(
        client: &Arc<Client>,
        callbacks: R::Callbacks,
        add: impl FnOnce(
            &mut *mut sys::aeron_client_registering_resource_stct,
            *mut sys::aeron_t,
        ) -> i32,
    ) -> Result<Self> {
        let mut raw = ptr::null_mut();
        let added = client
            .add(|| add(&mut raw, client.as_ptr()).into_result())
            .and_then(|_| NonNull::new(raw).ok_or_else(last_error));
        let raw = added.inspect_err(|_| {
            // SAFETY: C keeps nothing of a request that it has refused.
            unsafe { R::release(client.subscription_callbacks(), callbacks) };
        })?;
        // SAFETY: `raw` was made just now; all kinds share one structure and so one getter.
        let registration_id =
            unsafe { sys::aeron_async_add_publication_get_registration_id(raw.as_ptr()) };
        Ok(Self {
            raw: Some(raw),
            registration_id,
            client: Arc::clone(client),
            deadline: Deadline::new(client),
            callbacks,
        })
    }

    /// Returns the id under which the media driver knows the request, and later the resource. For a
    /// static counter, the id of the resource differs.
    ///
    /// Corresponds to `aeron_async_add_publication_get_registration_id`,
    /// `aeron_async_add_exclusive_publication_get_registration_id`,
    /// `aeron_async_add_subscription_get_registration_id` and
    /// `aeron_async_add_counter_get_registration_id`.
    #[doc(alias(
        "aeron_async_add_publication_get_registration_id",
        "aeron_async_add_exclusive_publication_get_registration_id",
        "aeron_async_add_subscription_get_registration_id",
        "aeron_async_add_counter_get_registration_id"
    ))]
    pub fn registration_id(&self) -> i64 {
        self.registration_id
    }

    /// Returns the resource if the media driver has confirmed it, and `None` if not yet. Does not
    /// block.
    ///
    /// # Errors
    /// The outcome is returned once, and can be an error:
    /// - [`ErrorKind::InvalidChannel`] and others that the media driver reports, with its text;
    /// - [`ErrorKind::CorruptLogBuffer`]: another process has overwritten the log buffer of the
    ///   publication; the text names the value;
    /// - [`ErrorKind::DriverTimeout`]: no answer within the driver timeout;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client meanwhile;
    ///
    /// and [`ErrorKind::IllegalState`] if the outcome was returned before.
    ///
    /// Corresponds to `aeron_async_add_publication_poll`,
    /// `aeron_async_add_exclusive_publication_poll`, `aeron_async_add_subscription_poll`,
    /// `aeron_async_add_counter_poll` and `aeron_async_next_session_id_poll`.
    #[doc(alias(
        "aeron_async_add_publication_poll",
        "aeron_async_add_exclusive_publication_poll",
        "aeron_async_add_subscription_poll",
        "aeron_async_add_counter_poll",
        "aeron_async_next_session_id_poll"
    ))]
    pub fn poll(&mut self) -> Result<Option<R>> {
        self.client.check_process()?;
        let Some(registering) = self.raw else {
            return Err(Error::new(
                ErrorKind::IllegalState,
                format!("registration {} has given its outcome already", self.registration_id),
            ));
        };
        let mut refusal = MaybeUninit::uninit();
        // SAFETY: no outcome was given, so C still has the structure.
        let state =
            unsafe { sys::rusteron_registration(registering.as_ptr(), refusal.as_mut_ptr()) };
        let refusal = match state {
            sys::rusteron_registration_enum_RUSTERON_REGISTRATION_AWAITING => {
                return self.deadline.check(&self.client).map(|()| None);
            }
            sys::rusteron_registration_enum_RUSTERON_REGISTRATION_TIMED_OUT => {
                // Not polled: C would forget the request. A driver that answers late would then
                // keep an unused resource.
                self.cancel();
                return Err(Error::new(
                    ErrorKind::DriverTimeout,
                    format!("registration {}: no response from media driver", self.registration_id),
                ));
            }
            sys::rusteron_registration_enum_RUSTERON_REGISTRATION_REFUSED => {
                // SAFETY: filled in, as this state says.
                Some(refused(unsafe { refusal.assume_init_ref() }))
            }
            _ => None,
        };
        // SAFETY: `registering` is cleared below as soon as C has given the outcome.
        match unsafe { R::poll(registering.as_ptr()) } {
            Ok(None) => self.deadline.check(&self.client).map(|()| None),
            Ok(Some(raw)) => {
                self.raw = None;
                // SAFETY: C gives a resource to exactly one caller, and it belongs to this client.
                unsafe { R::from_raw(raw, Arc::clone(&self.client), self.callbacks) }.map(Some)
            }
            Err(error) => {
                self.raw = None;
                // SAFETY: a request that has failed is never answered with a resource.
                unsafe { R::release(self.client.subscription_callbacks(), self.callbacks) };
                Err(refusal.unwrap_or(error))
            }
        }
    }

    /// Polls until there is an outcome, and yields the processor between polls.
    pub(crate) fn wait(mut self) -> Result<R> {
        let client = Arc::clone(&self.client);
        wait_for(&client, || self.poll())
    }
}

/// Returns the error of a publication whose log buffer has an impossible value.
#[cold]
fn refused(refusal: &sys::rusteron_refusal_t) -> Error {
    // SAFETY: both are literals of the shim.
    let (name, expected) = unsafe { (lossy(refusal.name), lossy(refusal.expected)) };
    Error::new(
        ErrorKind::CorruptLogBuffer,
        format!("publication refused: {name} is {}, expected {expected}", refusal.value),
    )
}

/// Calls one of C's functions that poll for a resource and give its address.
///
/// # Safety
/// As for [`sealed::Resource::poll`], and `poll` is the function for that kind of resource.
pub(crate) unsafe fn poll_for_address<T>(
    poll: unsafe extern "C" fn(
        *mut *mut T,
        *mut sys::aeron_client_registering_resource_stct,
    ) -> c_int,
    registering: *mut sys::aeron_client_registering_resource_stct,
) -> Result<Option<NonNull<T>>> {
    let mut raw = ptr::null_mut();
    // SAFETY: the caller guarantees a live request of this kind (`Resource::poll`).
    match unsafe { poll(&mut raw, registering) }.into_result()? {
        0 => Ok(None),
        _ => NonNull::new(raw).ok_or_else(last_error).map(Some),
    }
}

/// Polls until there is an outcome, and yields the processor between polls. For a client without a
/// conductor thread, does the conductor's work meanwhile.
pub(crate) fn wait_for<T, E>(
    client: &Client,
    mut poll: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, E> {
    const YIELDS: u32 = 64;
    const PAUSE: Duration = Duration::from_micros(100);
    let mut polls = 0;
    loop {
        if let Some(outcome) = poll()? {
            return Ok(outcome);
        }
        if client.has_invoker() {
            // The next poll reports an error of this call.
            let _ = client.do_work();
        }
        polls += 1;
        if polls < YIELDS { thread::yield_now() } else { thread::sleep(PAUSE) }
    }
}

/// Deadline for the conductor's answer. The conductor gives every registration an outcome in time,
/// unless it has ended or is stuck in a callback.
pub(crate) struct Deadline {
    /// The conductor has its own, shorter deadline. After this instant the conductor must be stuck.
    instant: Instant,
}

impl Deadline {
    pub(crate) fn new(client: &Client) -> Self {
        let timeout = client.context().driver_timeout().saturating_mul(2);
        Self { instant: Instant::now() + timeout.min(Duration::from_secs(3600)) }
    }

    /// Returns an error if no answer can be expected any more.
    pub(crate) fn check(&self, client: &Client) -> Result<()> {
        if client.is_closed() {
            return Err(client.closed_error());
        }
        if Instant::now() >= self.instant {
            return Err(Error::new(
                ErrorKind::DriverTimeout,
                "the client's conductor has not answered in twice the driver timeout",
            ));
        }
        Ok(())
    }
}

/// Resolves to the resource once the media driver has confirmed it. The future needs no particular
/// runtime. A thread of this crate, one for the process, wakes the task.
///
/// A client without a conductor thread makes progress only in
/// [`Aeron::do_work`](crate::Aeron::do_work). The application has to call that function meanwhile.
impl<R: Resource> Future for Registration<R> {
    type Output = Result<R>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        wake::outcome(Registration::poll(self.get_mut()), context)
    }
}

impl<R: Resource> Registration<R> {
    /// Cancels the request, if it has not returned its outcome.
    fn cancel(&mut self) {
        let Some(registering) = self.raw.take() else { return };
        let (client, registering) = (SendPtr(self.client.as_ptr()), SendPtr(registering.as_ptr()));
        let (list, callbacks) = (Arc::clone(self.client.subscription_callbacks()), self.callbacks);
        let registration_id = self.registration_id;
        self.client.release(move || {
            let cancelled = while_buffer_is_full(|| {
                // SAFETY: no outcome was given, so C still has the structure, which is not used again
                // once this has succeeded; the client outlives what it runs.
                unsafe { R::cancel(client.get(), registering.get(), callbacks) }.into_result()
            });
            if let Err(error) = cancelled {
                // The structure, and the resource that may result, then live as long as the client.
                if error.kind() == ErrorKind::ClientClosed {
                    // SAFETY: a client that refuses commands for being closed calls nothing any
                    // more.
                    unsafe { R::release(&list, callbacks) };
                } else {
                    log::warn!("registration {registration_id} is not cancelled: {error}");
                }
            }
        });
    }
}

/// Repeats a command while the conductor's queue is full. The conductor empties the queue within
/// milliseconds, unless it is stuck. On the conductor's own thread, waiting is of no use.
fn while_buffer_is_full<T>(mut command: impl FnMut() -> Result<T>) -> Result<T> {
    const DEADLINE: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_micros(100);
    let start = Instant::now();
    loop {
        match command() {
            Err(error)
                if error.kind() == ErrorKind::BufferFull
                    && !callback::is_running()
                    && start.elapsed() < DEADLINE =>
            {
                thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

impl<R: Resource> Drop for Registration<R> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<R: Resource> fmt::Debug for Registration<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("registration_id", &self.registration_id)
            .field("has_outcome", &self.raw.is_none())
            .finish()
    }
}
