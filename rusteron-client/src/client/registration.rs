//! Pending requests to the media driver for resources.

use std::ffi::c_int;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::{self, Poll};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::{Fallible, SendPtr, callback, last_error, lossy, wake};
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::subscription_callbacks::{CallbackHandle, on_close_complete};

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
    pending: Pending,
    /// The callbacks of a subscription. The request owns them until there is a resource, which owns
    /// them from then on.
    callbacks: Option<CallbackHandle>,
    resource: PhantomData<fn() -> R>,
}

/// C's structure of a pending request, the same for all kinds.
pub(crate) type Request = sys::aeron_client_registering_resource_stct;

/// C's function that writes the outcome of a request, and returns 0 if there is none yet.
pub(crate) type PollRequest<Raw> = unsafe extern "C" fn(*mut Raw, *mut Request) -> c_int;

/// C's function that cancels a request without an outcome.
pub(crate) type CancelRequest = unsafe extern "C" fn(*mut sys::aeron_t, *mut Request) -> c_int;

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
    ///
    /// # Safety
    /// Both functions are C's for requests that begin with the same function of C, and `POLL` gives
    /// its first argument a value when it returns 1.
    pub unsafe trait Resource: Sized {
        /// C's handle of the resource, or its value.
        type Raw;

        const POLL: PollRequest<Self::Raw>;
        const CANCEL: CancelRequest;

        /// # Safety
        /// `raw` is what [`POLL`](Self::POLL) gave, has no other owner, and belongs to `client`.
        unsafe fn from_raw(
            raw: Self::Raw,
            client: Arc<Client>,
            callbacks: Option<CallbackHandle>,
        ) -> Result<Self>;
    }
}

impl<R: Resource> Registration<R> {
    /// # Safety
    /// `add` calls C's function that begins to add an `R` to the client, which is live, and gives back
    /// what that returned. C may call the callbacks until they are released.
    pub(crate) unsafe fn begin(
        client: &Arc<Client>,
        callbacks: Option<CallbackHandle>,
        add: impl FnOnce(*mut *mut Request, *mut sys::aeron_t) -> c_int,
    ) -> Result<Self> {
        // SAFETY: by the contract.
        let pending = unsafe { Pending::begin(client, add) }.inspect_err(|_| {
            // SAFETY: C keeps nothing of a request that it has refused.
            unsafe { client.subscription_callbacks().remove(callbacks) };
        })?;
        Ok(Self { pending, callbacks, resource: PhantomData })
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
        self.pending.registration_id
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
        let registering = self.pending.request()?;
        let mut refusal = MaybeUninit::uninit();
        // SAFETY: no outcome was given, so C still has the structure.
        let state =
            unsafe { sys::rusteron_registration(registering.as_ptr(), refusal.as_mut_ptr()) };
        let refusal = match state {
            sys::rusteron_registration_enum_RUSTERON_REGISTRATION_AWAITING => {
                return self.pending.no_outcome();
            }
            sys::rusteron_registration_enum_RUSTERON_REGISTRATION_TIMED_OUT => {
                // Not polled: C would forget the request. A driver that answers late would then
                // keep an unused resource.
                self.cancel();
                return Err(Error::new(
                    ErrorKind::DriverTimeout,
                    format!(
                        "registration {}: no response from media driver",
                        self.registration_id()
                    ),
                ));
            }
            sys::rusteron_registration_enum_RUSTERON_REGISTRATION_REFUSED => {
                // SAFETY: filled in, as this state says.
                Some(refused(unsafe { refusal.assume_init_ref() }))
            }
            _ => None,
        };
        let mut raw = MaybeUninit::uninit();
        // SAFETY: C's function for this kind of request. The request is live: it is cleared below as
        // soon as C has given the outcome.
        match unsafe { R::POLL(raw.as_mut_ptr(), registering.as_ptr()) }.into_result() {
            Ok(0) => self.pending.no_outcome(),
            Ok(_) => {
                self.pending.raw = None;
                let client = Arc::clone(&self.pending.client);
                // SAFETY: C has set `raw`, and gives a resource of this client to exactly one caller.
                unsafe { R::from_raw(raw.assume_init(), client, self.callbacks) }.map(Some)
            }
            Err(error) => {
                self.pending.raw = None;
                // SAFETY: a request that has failed is never answered with a resource.
                unsafe { self.pending.client.subscription_callbacks().remove(self.callbacks) };
                Err(refusal.unwrap_or(error))
            }
        }
    }

    /// Polls until there is an outcome, and yields the processor between polls.
    pub(crate) fn wait(mut self) -> Result<R> {
        let client = Arc::clone(&self.pending.client);
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

/// A request whose outcome C has not given yet.
pub(crate) struct Pending {
    /// `None` once the outcome has been returned: C frees the structure then.
    pub(crate) raw: Option<NonNull<Request>>,
    pub(crate) registration_id: i64,
    pub(crate) client: Arc<Client>,
    /// The conductor has its own, shorter deadline, and gives every request an outcome in time. After
    /// this instant it has ended, or is stuck in a callback.
    deadline: Instant,
}

// SAFETY: C polls the structure through an atomic status and cancels it by its number, and the
// structure has one owner here; neither depends on the thread.
unsafe impl Send for Pending {}

impl Pending {
    /// # Safety
    /// `add` calls a function of C that begins a request to the client, which is live, and gives back
    /// what that returned.
    pub(crate) unsafe fn begin(
        client: &Arc<Client>,
        add: impl FnOnce(*mut *mut Request, *mut sys::aeron_t) -> c_int,
    ) -> Result<Self> {
        let mut raw = ptr::null_mut();
        client.add(|| add(&mut raw, client.as_ptr()).into_result())?;
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        // SAFETY: `raw` was made just now; all kinds share one structure and so one getter.
        let registration_id =
            unsafe { sys::aeron_async_add_publication_get_registration_id(raw.as_ptr()) };
        let timeout = client.context().driver_timeout().saturating_mul(2);
        let deadline = Instant::now() + timeout.min(Duration::from_secs(3600));
        Ok(Self { raw: Some(raw), registration_id, client: Arc::clone(client), deadline })
    }

    /// Returns C's structure, or an error if the outcome has been returned.
    pub(crate) fn request(&self) -> Result<NonNull<Request>> {
        self.client.check_process()?;
        self.raw.ok_or_else(|| {
            let text =
                format!("registration {} has given its outcome already", self.registration_id);
            Error::new(ErrorKind::IllegalState, text)
        })
    }

    /// Returns `None`, or an error if no outcome can be expected any more.
    pub(crate) fn no_outcome<T>(&self) -> Result<Option<T>> {
        if self.client.is_closed() {
            return Err(self.client.closed_error());
        }
        if Instant::now() >= self.deadline {
            return Err(Error::new(
                ErrorKind::DriverTimeout,
                "the client's conductor has not answered in twice the driver timeout",
            ));
        }
        Ok(None)
    }

    pub(crate) fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("registration_id", &self.registration_id)
            .field("has_outcome", &self.raw.is_none())
            .finish()
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
        let Some(registering) = self.pending.raw.take() else { return };
        let (owner, registration_id) = (&self.pending.client, self.registration_id());
        let (client, registering) = (SendPtr(owner.as_ptr()), SendPtr(registering.as_ptr()));
        let (list, callbacks) = (Arc::clone(owner.subscription_callbacks()), self.callbacks);
        owner.release(move || {
            let cancelled = while_buffer_is_full(|| {
                // SAFETY: no outcome was given, so C still has the structure, which is not used again
                // once this has succeeded; the client outlives what it runs.
                unsafe {
                    let (client, request) = (client.get(), registering.get());
                    match callbacks {
                        None => R::CANCEL(client, request),
                        // As C's own cancel of a subscription. Here C also notifies when it is
                        // done, whatever became of the request.
                        _ => sys::aeron_async_remove_subscription(
                            registration_id,
                            client,
                            Some(on_close_complete),
                            CallbackHandle::clientd(callbacks),
                        ),
                    }
                }
                .into_result()
            });
            if let Err(error) = cancelled {
                // The structure, and the resource that may result, then live as long as the client.
                if error.kind() == ErrorKind::ClientClosed {
                    // SAFETY: a client that refuses commands for being closed calls nothing any
                    // more.
                    unsafe { list.remove(callbacks) };
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
        self.pending.debug("Registration", f)
    }
}
