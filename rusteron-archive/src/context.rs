//! The configuration of an archive client.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;

use rusteron_client::raw_client::RawClient;
use rusteron_client::{Aeron, AnyIdleStrategy, Error, IdleStrategy, IdleStrategyKind, Result};
use rusteron_core::CredentialsSupplier;
use rusteron_core::ffi::callback::{catch, run};
use rusteron_core::ffi::{Fallible, Retained, last_error, lock_context_init};
use rusteron_core::settings::warn_of_missing_units;
use rusteron_sys as sys_client;
use rusteron_sys::archive as sys;

use crate::checks::entered;
use crate::credentials::{self, Supplier};
use crate::error::ArchiveError;
use crate::events::RecordingSignal;
use crate::events::{self, Events};

/// The configuration of an archive client: control channels, streams, timeouts.
///
/// A new context holds Aeron's defaults, changed by the `AERON_ARCHIVE_*` environment variables.
///
/// ```
/// use std::time::Duration;
/// use rusteron_archive::ArchiveContext;
///
/// # fn main() -> Result<(), rusteron_archive::Error> {
/// let mut context = ArchiveContext::new()?;
/// context
///     .set_control_request_channel("aeron:udp?endpoint=localhost:8010")?
///     .set_message_timeout(Duration::from_secs(5))?;
/// assert_eq!(context.control_request_channel(), "aeron:udp?endpoint=localhost:8010");
/// # Ok(())
/// # }
/// ```
#[doc(alias = "aeron_archive_context_t")]
pub struct ArchiveContext {
    raw: NonNull<sys::aeron_archive_context_t>,
    /// State that C has pointers to. C copies the pointers when it connects, and uses them as long
    /// as the connection exists. The connection owns this context.
    events: Arc<Events>,
    credentials: Option<Retained<Supplier>>,
    idle_strategy: Option<Retained<AnyIdleStrategy>>,
    invoker: Retained<Invoker>,
}

/// The callback that C runs while it waits.
#[derive(Default)]
struct Invoker {
    delegate: Option<Box<dyn FnMut() + Send>>,
    /// Set while the waiting thread does the client's own work with the client's lock held.
    in_conductor: bool,
    /// The client that C is connecting with.
    connecting: Option<Connecting>,
}

/// A client with which C waits for the conductor's answer, without a deadline and without a check
/// that the client is open.
///
/// Where C does the conductor's work itself, for a client without a conductor thread, C notices a
/// closed client. If the client is closed, the context therefore gets a substitute: a closed client
/// of that kind. The client itself does not change, because other threads may be connecting with
/// it.
struct Connecting {
    context: *mut sys::aeron_archive_context_t,
    aeron: *mut sys_client::aeron_t,
    /// The substitute, if the client is closed.
    closed: Option<NonNull<sys_client::aeron_t>>,
}

// SAFETY: the client that it points to can be used from all threads, and the context belongs to the
// thread that the whole belongs to.
unsafe impl Send for Connecting {}

// SAFETY: the C structure is plain memory without ties to a thread, and the targets of its pointers
// are `Send`.
unsafe impl Send for ArchiveContext {}
// SAFETY: through a shared reference the structure is only read, by the getters; the queue of events
// has a lock, and the rest is not reached at all.
unsafe impl Sync for ArchiveContext {}

impl ArchiveContext {
    /// Creates a context with Aeron's defaults and the values of environment variables.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an environment variable
    /// that cannot be parsed.
    ///
    /// Corresponds to `aeron_archive_context_init`.
    #[doc(alias = "aeron_archive_context_init")]
    pub fn new() -> Result<Self> {
        let mut raw = ptr::null_mut();
        let lock = lock_context_init();
        // SAFETY: C writes the new structure's address to `raw`, or fails; the lock keeps others from
        // the buffer that it uses.
        unsafe { sys::aeron_archive_context_init(&mut raw) }.into_result()?;
        drop(lock);
        warn_of_missing_units(Self::settings());
        Ok(Self {
            raw: NonNull::new(raw).ok_or_else(last_error)?,
            events: Arc::default(),
            credentials: None,
            idle_strategy: None,
            invoker: Retained::new(Box::default()),
        })
    }

    /// Sets the supplier of the credentials for connecting, at most 3,072 bytes. The default is no credentials.
    ///
    /// In the supplier, calls that would wait for a conductor return an error. A panic of the supplier, or
    /// too many bytes, ends the attempt to connect with an error, even if the archive would accept a client
    /// without credentials. A persistent subscription fails then, and does not try again.
    ///
    /// # Errors
    /// C reports no failure of this call today.
    ///
    /// Corresponds to `aeron_archive_context_set_credentials_supplier`.
    #[doc(alias = "aeron_archive_context_set_credentials_supplier")]
    pub fn set_credentials_supplier(
        &mut self,
        supplier: impl CredentialsSupplier + 'static,
    ) -> Result<&mut Self> {
        let supplier = Retained::new(Box::new(Supplier::new(supplier)));
        // SAFETY: the context is live and not connected yet; the supplier lives as long as it.
        unsafe {
            sys::aeron_archive_context_set_credentials_supplier(
                self.as_ptr(),
                Some(credentials::encoded_credentials),
                Some(credentials::on_challenge),
                Some(credentials::on_free),
                supplier.clientd(),
            )
        }
        .into_result()?;
        self.credentials = Some(supplier);
        Ok(self)
    }

    /// Sets the consumer of recording signals, for example that a recording has stopped.
    ///
    /// Methods of [`Archive`](crate::Archive) call it on the caller's thread before they return.
    /// Signals arrive among the answers. They are read by a request that waits for its answer, or
    /// by [`poll_for_recording_signals`](crate::Archive::poll_for_recording_signals). The consumer
    /// may use the archive. A panic in the consumer goes through to the caller of the method, and
    /// the method's result is lost.
    ///
    /// # Errors
    /// C reports no failure of this call today.
    ///
    /// Corresponds to `aeron_archive_context_set_recording_signal_consumer`.
    #[doc(alias = "aeron_archive_context_set_recording_signal_consumer")]
    pub fn set_recording_signal_consumer(
        &mut self,
        consumer: impl FnMut(&RecordingSignal) + Send + 'static,
    ) -> Result<&mut Self> {
        self.events.set_on_signal(Box::new(consumer));
        // SAFETY: the context is live and not connected yet; the events live as long as it.
        unsafe {
            sys::aeron_archive_context_set_recording_signal_consumer(
                self.as_ptr(),
                Some(events::on_recording_signal),
                self.events.clientd(),
            )
        }
        .into_result()?;
        Ok(self)
    }

    /// Sets the handler of errors that the archive reports without a request, for example of a
    /// replay that fails after it has started.
    ///
    /// It is called as [the consumer of signals](Self::set_recording_signal_consumer) is. Without a
    /// handler, [`check_for_error_response`](crate::Archive::check_for_error_response) and
    /// [`poll_for_recording_signals`](crate::Archive::poll_for_recording_signals) return such
    /// errors. Methods that wait for another answer pass them over. During a listing, all such
    /// errors are passed over.
    ///
    /// # Errors
    /// C reports no failure of this call today.
    ///
    /// Corresponds to `aeron_archive_context_set_error_handler`.
    #[doc(alias = "aeron_archive_context_set_error_handler")]
    pub fn set_error_handler(
        &mut self,
        handler: impl FnMut(&ArchiveError) + Send + 'static,
    ) -> Result<&mut Self> {
        self.events.set_on_error(Box::new(handler));
        // SAFETY: the context is live and not connected yet; the events live as long as it.
        unsafe { set_error_handler(self.as_ptr(), Some(&self.events)) }?;
        Ok(self)
    }

    /// Sets the idle strategy of waiting for an answer. The default is to back off: to spin, then
    /// to yield, then to sleep up to a millisecond.
    ///
    /// # Errors
    /// C reports no failure of this call today.
    ///
    /// Corresponds to `aeron_archive_context_set_idle_strategy`.
    #[doc(alias = "aeron_archive_context_set_idle_strategy")]
    pub fn set_idle_strategy(&mut self, value: IdleStrategyKind) -> Result<&mut Self> {
        let strategy = Retained::new(Box::new(value.new_strategy()));
        // SAFETY: the context is live and not connected yet; the strategy lives as long as it.
        unsafe {
            sys::aeron_archive_context_set_idle_strategy(
                self.as_ptr(),
                Some(idle),
                strategy.clientd(),
            )
        }
        .into_result()?;
        self.idle_strategy = Some(strategy);
        Ok(self)
    }

    /// Sets a callback that runs on the waiting thread between two polls for an answer. A program
    /// with few threads can do other work in it.
    ///
    /// In the callback, calls of an archive return
    /// [`ArchiveErrorKind::Reentrant`](crate::ArchiveErrorKind). For a client without a conductor
    /// thread, the waiting thread does the client's work, and the callback runs as a callback of
    /// the conductor does. A panic in the callback is logged.
    ///
    /// # Errors
    /// This call cannot fail; it returns a `Result` as the other setters do.
    ///
    /// Corresponds to `aeron_archive_context_set_delegating_invoker`.
    #[doc(alias = "aeron_archive_context_set_delegating_invoker")]
    pub fn set_delegating_invoker(
        &mut self,
        invoker: impl FnMut() + Send + 'static,
    ) -> Result<&mut Self> {
        self.invoker_mut().delegate = Some(Box::new(invoker));
        Ok(self)
    }

    fn invoker_mut(&mut self) -> &mut Invoker {
        // SAFETY: the invoker lives as long as `self`. C calls it only while connecting or connected,
        // and then there is no mutable reference to the context.
        unsafe { Retained::<Invoker>::exclusive(self.invoker.clientd()) }
    }

    /// Makes `aeron` the client to connect with. It must outlive the connection.
    pub(crate) fn set_aeron(&mut self, aeron: &Aeron) -> Result<()> {
        let client = RawClient::new(aeron);
        // SAFETY: the context is live and not connected yet.
        unsafe { sys::aeron_archive_context_set_aeron(self.as_ptr(), client.as_ptr()) }
            .into_result()?;
        // SAFETY: the context is live and not connected yet.
        unsafe { sys::aeron_archive_context_set_owns_aeron_client(self.as_ptr(), false) }
            .into_result()?;
        self.invoker_mut().in_conductor = client.has_invoker();
        // SAFETY: the context is live and not connected yet, and owns the invoker.
        unsafe {
            sys::aeron_archive_context_set_delegating_invoker(
                self.as_ptr(),
                Some(invoke),
                self.invoker.clientd(),
            )
        }
        .into_result()
        .map(drop)
    }

    /// Runs a C function that starts connecting with `aeron`. Ends the attempt if that client is
    /// closed.
    ///
    /// For a client with a conductor thread, `aeron` has to be open when this is called.
    pub(crate) fn connecting<T>(
        &mut self,
        aeron: &Aeron,
        begin: impl FnOnce(*mut sys::aeron_archive_context_t) -> T,
    ) -> T {
        let client = RawClient::new(aeron);
        let (context, aeron) = (self.as_ptr(), client.as_ptr());
        self.invoker_mut().connecting =
            (!client.has_invoker()).then_some(Connecting { context, aeron, closed: None });
        let outcome = begin(context);
        self.invoker_mut().connecting = None;
        outcome
    }

    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Returns and clears the reason for missing credentials.
    ///
    /// # Safety
    /// C is not asking for credentials at the moment.
    pub(crate) unsafe fn take_credentials_failure(&self) -> Option<Error> {
        let supplier = self.credentials.as_ref()?;
        // SAFETY: the caller guarantees that C is not in a call of the supplier, so this is its only user.
        unsafe { Retained::<Supplier>::exclusive(supplier.clientd()) }.take_failure()
    }

    /// The C structure, which lives as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_archive_context_t {
        self.raw.as_ptr()
    }
}

/// # Safety
/// The context is live, C does not use it at the moment, and the events live as long as it is used.
pub(crate) unsafe fn set_error_handler(
    context: *mut sys::aeron_archive_context_t,
    events: Option<&Events>,
) -> Result<()> {
    let handler: rusteron_sys::aeron_error_handler_t = Some(events::on_error);
    let clientd = events.map_or(ptr::null_mut(), Events::clientd);
    // SAFETY: the caller guarantees that the context is live, and that the events outlive its use.
    unsafe {
        sys::aeron_archive_context_set_error_handler(
            context,
            handler.filter(|_| events.is_some()),
            clientd,
        )
    }
    .into_result()
    .map(drop)
}

/// # Safety
/// `state` comes from a live `Retained<AnyIdleStrategy>` with no other user.
unsafe extern "C" fn idle(state: *mut c_void, work_count: c_int) {
    // SAFETY: C passes the state that it was given, one call at a time; the context retains it.
    let strategy = unsafe { Retained::<AnyIdleStrategy>::exclusive(state) };
    strategy.idle(work_count.max(0) as usize);
}

/// # Safety
/// `clientd` comes from a live `Retained<Invoker>` with no other user.
unsafe extern "C" fn invoke(clientd: *mut c_void) {
    const ROLE: &str = "delegating invoker";
    // SAFETY: C passes the `clientd` that it was given, one call at a time; the context retains the invoker.
    let invoker = unsafe { Retained::<Invoker>::exclusive(clientd) };
    if let Some(connecting) = &mut invoker.connecting {
        connecting.check_client();
    }
    let Some(delegate) = &mut invoker.delegate else { return };
    entered(|| {
        if invoker.in_conductor {
            run(ROLE, delegate);
        } else {
            catch(ROLE, delegate);
        }
    });
}

impl Connecting {
    fn check_client(&mut self) {
        // SAFETY: the connecting caller has a handle of the client.
        if self.closed.is_none() && unsafe { sys_client::aeron_is_closed(self.aeron) } {
            let mut closed = ptr::null_mut();
            // SAFETY: the connecting caller has a handle of the client, which is closed.
            unsafe { sys::rusteron_closed_client_create(&mut closed, self.aeron) };
            // Without memory for it, C waits until there is some.
            self.closed = NonNull::new(closed);
            if self.closed.is_some() {
                self.set_aeron(closed);
            }
        }
        // C looks for the answer without a pause.
        thread::yield_now();
    }

    fn set_aeron(&self, aeron: *mut sys_client::aeron_t) {
        // SAFETY: the context is live, and used by this thread alone.
        unsafe { sys::aeron_archive_context_set_aeron(self.context, aeron) };
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if let Some(closed) = self.closed {
            self.set_aeron(self.aeron);
            // SAFETY: C copies the client of a context only after a command to the client. The closed
            // client accepts no command.
            unsafe { rusteron_sys::aeron_free(closed.as_ptr().cast()) };
        }
    }
}

impl Drop for ArchiveContext {
    fn drop(&mut self) {
        // SAFETY: the structure is live and not used again: a connection that uses it owns this
        // context, and has been closed before.
        unsafe { sys::aeron_archive_context_close(self.as_ptr()) };
    }
}

rusteron_core::impl_debug!(ArchiveContext: control_request_channel(), control_response_channel());
