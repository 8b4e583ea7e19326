//! The client: a connection to a media driver.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_sys as sys;

use crate::callback;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::exclusive_publication::ExclusivePublication;
use crate::ffi::{Fallible, c_path};
use crate::publication::Publication;
use crate::registration::Registration;
use crate::subscription::Subscription;

/// A client of a media driver: the factory of publications and subscriptions.
///
/// A clone is another handle of the same client, and so is, in effect, every publication and
/// subscription made from it: they can be dropped in any order, and the client closes when the last
/// of them goes. Closing waits for the client's conductor thread to end.
///
/// One thread of the client's own, the conductor, talks to the media driver.
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
#[derive(Clone)]
pub struct Aeron {
    client: Arc<Client>,
}

impl Aeron {
    /// Connects to the media driver in the context's directory, and starts the conductor thread.
    ///
    /// Blocks until the driver answers, for the context's driver timeout at the most.
    ///
    /// # Errors
    /// - [`ErrorKind::DriverTimeout`]: no driver is running in the directory, or it has stopped
    ///   showing signs of life, or it has begun but not finished to initialise its files;
    /// - [`ErrorKind::IncompatibleDriver`]: the driver is of another major version of the protocol;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback;
    /// - [`ErrorKind::Io`]: the directory or its files cannot be read and written.
    ///
    /// Corresponds to `aeron_init` and `aeron_start`.
    pub fn connect(context: Context) -> Result<Self> {
        callback::forbid_blocking("connect")?;
        await_cnc_file(&context)?;

        let mut raw = ptr::null_mut();
        // SAFETY: the context is live and, being owned here, no other client's.
        let initialised = unsafe { sys::aeron_init(&mut raw, context.as_ptr()) }.into_result();
        let client = match (initialised, NonNull::new(raw)) {
            (Ok(_), Some(raw)) => Client::new(Running { raw, context, kept: Mutex::default() }),
            (failure, _) => {
                let error = failure.err().unwrap_or_else(Error::last);
                // SAFETY: there is no client that could still use the mapping, see the header.
                unsafe { sys::rusteron_context_forget_cnc(context.as_ptr()) };
                return Err(error);
            }
        };
        // SAFETY: the client is live; if it cannot be started, dropping it takes it down.
        unsafe { sys::aeron_start(client.as_ptr()) }.into_result()?;
        Ok(Self { client: Arc::new(client) })
    }

    /// Adds a publication that several threads can share, and waits for the media driver to confirm.
    ///
    /// If this client already has one with the same channel and stream id, the new handle writes to
    /// the same log buffer. Blocks for the driver timeout at the most.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidChannel`] and others that the media driver reports, with its text;
    /// - [`ErrorKind::DriverTimeout`]: no answer in time;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
    /// - [`ErrorKind::CalledFromConductor`]: called from a callback;
    /// - [`ErrorKind::InvalidArgument`]: a NUL byte in `channel`.
    ///
    /// Corresponds to `aeron_async_add_publication` and `aeron_async_add_publication_poll`.
    pub fn add_publication(&self, channel: &str, stream_id: i32) -> Result<Publication> {
        callback::forbid_blocking("add_publication")?;
        self.async_add_publication(channel, stream_id)?.wait()
    }

    /// Begins to add a publication, and returns what tells when it is there.
    ///
    /// Does not block, and can be called from callbacks.
    ///
    /// # Errors
    /// - [`ErrorKind::BufferFull`]: too many commands are waiting;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client;
    /// - [`ErrorKind::InvalidArgument`]: a NUL byte in `channel`.
    ///
    /// Corresponds to `aeron_async_add_publication`.
    pub fn async_add_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Registration<Publication>> {
        Registration::begin(&self.client, channel, stream_id)
    }

    /// Adds a publication with a log buffer of its own, for one writer, and waits for the media
    /// driver to confirm.
    ///
    /// It is faster than a shared one. Blocks for the driver timeout at the most.
    ///
    /// # Errors
    /// As for [`add_publication`](Self::add_publication).
    ///
    /// Corresponds to `aeron_async_add_exclusive_publication` and
    /// `aeron_async_add_exclusive_publication_poll`.
    pub fn add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication> {
        callback::forbid_blocking("add_exclusive_publication")?;
        self.async_add_exclusive_publication(channel, stream_id)?.wait()
    }

    /// Begins to add an exclusive publication, and returns what tells when it is there.
    ///
    /// # Errors
    /// As for [`async_add_publication`](Self::async_add_publication).
    ///
    /// Corresponds to `aeron_async_add_exclusive_publication`.
    pub fn async_add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Registration<ExclusivePublication>> {
        Registration::begin(&self.client, channel, stream_id)
    }

    /// Adds a subscription, and waits for the media driver to confirm.
    ///
    /// Blocks for the driver timeout at the most. The images of its publishers arrive later; see
    /// [`Subscription::is_connected`].
    ///
    /// # Errors
    /// As for [`add_publication`](Self::add_publication).
    ///
    /// Corresponds to `aeron_async_add_subscription` and `aeron_async_add_subscription_poll`.
    pub fn add_subscription(&self, channel: &str, stream_id: i32) -> Result<Subscription> {
        callback::forbid_blocking("add_subscription")?;
        self.async_add_subscription(channel, stream_id)?.wait()
    }

    /// Begins to add a subscription, and returns what tells when it is there.
    ///
    /// # Errors
    /// As for [`async_add_publication`](Self::async_add_publication).
    ///
    /// Corresponds to `aeron_async_add_subscription`.
    pub fn async_add_subscription(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Registration<Subscription>> {
        Registration::begin(&self.client, channel, stream_id)
    }

    /// Whether a fatal error has ended this client, such as a media driver that died.
    ///
    /// Publications and subscriptions of a closed client report that they are closed; the memory
    /// they work on stays valid until the last handle is dropped.
    ///
    /// Corresponds to `aeron_is_closed`.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The number by which the media driver knows this client.
    ///
    /// Corresponds to `aeron_client_id`.
    pub fn client_id(&self) -> i64 {
        // SAFETY: the client is live; it only reads a number that never changes.
        unsafe { sys::aeron_client_id(self.client.as_ptr()) }
    }

    /// The configuration this client runs with.
    ///
    /// Corresponds to `aeron_context`.
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

/// Waits until the file that C will map is as long as it says it has to be: C itself would wait for
/// that without a deadline.
fn await_cnc_file(context: &Context) -> Result<()> {
    let dir = c_path("dir", context.dir())?;
    let timeout = context.driver_timeout();
    let start = Instant::now();
    loop {
        // SAFETY: `dir` is a terminated string; the function maps the file and unmaps it again.
        match unsafe { sys::rusteron_cnc_state(dir.as_ptr()) } {
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPATIBLE => {
                return Err(Error::last().with_kind(ErrorKind::IncompatibleDriver));
            }
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_FAILED => return Err(Error::last()),
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPLETE => {}
            // C waits for an absent file, with a deadline and with its own words for it.
            _ => return Ok(()),
        }
        if start.elapsed() >= timeout {
            return Err(Error::new(
                ErrorKind::DriverTimeout,
                format!(
                    "the CnC file in {} is not complete after {} ms",
                    context.dir().display(),
                    timeout.as_millis()
                ),
            ));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The client that all handles share; closed when the last of them, of any kind, is gone.
#[allow(unreachable_pub, missing_debug_implementations, reason = "public in a sealed trait only")]
pub struct Client {
    running: ManuallyDrop<Running>,
}

/// The C client and what it works with. Fields are dropped in order, after the C client.
struct Running {
    raw: NonNull<sys::aeron_t>,
    context: Context,
    /// What the conductor may use until it has ended.
    kept: Mutex<Vec<Box<dyn Send>>>,
}

// SAFETY: C's client functions may be called from any thread at any time: commands go to the
// conductor through a queue for many producers, and everything else they read is constant or
// atomic. The invoker mode, in which that is not so, cannot be switched on through `Context`.
unsafe impl Send for Running {}
// SAFETY: as above.
unsafe impl Sync for Running {}

impl Client {
    fn new(running: Running) -> Self {
        Self { running: ManuallyDrop::new(running) }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_t {
        self.running.raw.as_ptr()
    }

    pub(crate) fn context(&self) -> &Context {
        &self.running.context
    }

    pub(crate) fn is_closed(&self) -> bool {
        // SAFETY: the client is live; the function reads an atomic flag.
        unsafe { sys::aeron_is_closed(self.as_ptr()) }
    }

    /// Keeps something for as long as the conductor can be running.
    pub(crate) fn keep(&self, item: Box<dyn Send>) {
        let mut kept = self.running.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(item);
    }

    /// Why a closed client does nothing any more, in Aeron's words.
    pub(crate) fn closed_error(&self) -> Error {
        const NO_SUCH_ID: i64 = -1;
        // SAFETY: the client is live. A closed one refuses every command and says why; an open one
        // would find nothing to remove.
        let refusal = unsafe {
            sys::aeron_async_remove_publication(NO_SUCH_ID, self.as_ptr(), None, ptr::null_mut())
        };
        refusal.into_result().err().unwrap_or_else(|| {
            Error::new(ErrorKind::ClientClosed, "the client was closed by a fatal error")
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: taken once, and `self` is not used after.
        let running = unsafe { ManuallyDrop::take(&mut self.running) };
        if !callback::is_running() {
            return;
        }
        // The last handle went in a callback, on the conductor thread that closing waits for: let
        // another thread wait. Were there none to be had, leaking is better than a deadlock, which
        // is why the closure must not drop the client by being dropped itself.
        let running = ManuallyDrop::new(running);
        let closing = thread::Builder::new()
            .name("aeron-close".into())
            .spawn(move || drop(ManuallyDrop::into_inner(running)));
        if let Err(error) = closing {
            log::error!("Aeron client: left open, for want of a thread to close it: {error}");
        }
    }
}

impl Drop for Running {
    /// The context, being a field, goes after this: C uses it up to the end of `aeron_close`.
    fn drop(&mut self) {
        // SAFETY: the client is live and its only owner is being dropped, so no other call is under
        // way or to come; it frees the client unless its thread cannot be joined.
        if let Err(error) = unsafe { sys::aeron_close(self.raw.as_ptr()) }.into_result() {
            log::error!("Aeron client: closing failed: {error}");
        }
    }
}
