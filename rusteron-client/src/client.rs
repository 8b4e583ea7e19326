//! The connection to a media driver, and the resources registered with it.
//!
//! C's conductor talks to the driver: it installs image lists, closes resources that the driver has
//! closed, and frees what no handle can reach. It is a thread of the client, or `Aeron::do_work`
//! under a lock.
//!
//! Between two duty cycles, at most every 5 ms, the conductor's idle strategy asks the kernel
//! whether the driver's process has ended. If so, the shim writes an old heartbeat and makes C's
//! next look at it due. C then closes the client in its own way, and calls the error handler with a
//! driver timeout.

mod background;
mod conductor_idle;
pub(crate) mod connect;
pub(crate) mod counter;
pub(crate) mod destination;
mod next_session_id;
pub(crate) mod registration;
pub(crate) mod subscription_callbacks;
pub(crate) mod wait;

pub(crate) use background::Background;
pub use counter::Counter;
pub use destination::DestinationRegistration;
pub use next_session_id::NextSessionId;
pub use registration::{Registration, Resource};
pub use wait::{WaitError, WaitState};

use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Instant;

use rusteron_core::error::{CloseCause, Error, ErrorKind, Result};
use rusteron_core::ffi::{Fallible, ForkGuard, Process, callback, last_error};
use rusteron_sys as sys;

use crate::client::conductor_idle::ConductorIdle;
use crate::client::subscription_callbacks::CallbackList;
use crate::context::{Context, close_state};

/// The client that all handles share. The client closes when the last handle of any kind is
/// dropped.
///
/// C's functions for commands, such as adding and closing, come in two modes. With a conductor
/// thread, these functions put a command into a queue for many producers. Any thread may call them
/// at any time. With an invoker, these functions do the conductor's work at once, on the caller's
/// thread. The calls must not overlap, and callbacks of that work must not make them.
/// [`command`](Self::command) and [`release`](Self::release) keep these rules. Every call of such a
/// function goes through them.
#[allow(unreachable_pub, missing_debug_implementations, reason = "public in a sealed trait only")]
pub struct Client {
    running: ManuallyDrop<Running>,
    process: Process,
    /// Held during commands and work if the client has no conductor thread.
    invoker: Option<Mutex<()>>,
}

type Deferred = Box<dyn FnOnce() + Send>;

/// The C client and the data it works with. Fields are dropped in order, after the C client.
struct Running {
    /// For the CnC file. Without counters in it, nothing of this client is open in a forked child.
    fork_guard: Option<ForkGuard>,
    raw: NonNull<sys::aeron_t>,
    /// Resources released in a callback without a conductor thread. They wait here until a thread
    /// holds the invoker's lock.
    deferred: Mutex<Vec<Deferred>>,
    context: ManuallyDrop<Context>,
    /// `Some` if there is a conductor thread that sleeps.
    idle: Option<Arc<ConductorIdle>>,
    subscription_callbacks: Arc<CallbackList>,
    retained: Retained,
}

/// Objects that the conductor may use until it has ended.
#[derive(Clone, Default)]
pub(crate) struct Retained(Arc<Mutex<Vec<Box<dyn Send>>>>);

impl Retained {
    pub(crate) fn retain(&self, item: Box<dyn Send>) {
        lock(&self.0).push(item);
    }
}

// SAFETY: see `Client`, which serialises the calls that C does not allow from any thread at any
// time. Everything else that C's functions for a client read is constant or atomic.
unsafe impl Send for Running {}
// SAFETY: as above.
unsafe impl Sync for Running {}

impl Client {
    /// Initialises and starts the C client.
    pub(crate) fn start(context: Context) -> Result<Self> {
        let has_invoker = context.use_conductor_agent_invoker();
        // SAFETY: the context is owned here; the idle strategy lives as long as the client, see
        // `Running`.
        let idle = if has_invoker { None } else { unsafe { ConductorIdle::install(&context) }? };
        let mut raw = ptr::null_mut();
        // SAFETY: the context is live and, being owned here, no other client's.
        let initialised = unsafe { sys::aeron_init(&mut raw, context.as_ptr()) }.into_result();
        let Some(raw) = NonNull::new(raw) else {
            let error = initialised.err().unwrap_or_else(last_error);
            // SAFETY: there is no client that could still use the mapping, see the header.
            unsafe { sys::rusteron_context_forget_cnc(context.as_ptr()) };
            return Err(error);
        };
        let invoker = has_invoker.then(Mutex::default);
        // SAFETY: the client is live; `Running` drops the context last.
        unsafe { context.close_state.set_client(raw.as_ptr()) };
        let (mut address, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the client is live, and maps its CnC file until it is closed. The guard goes first.
        // All values in the file are read as another process may have written them.
        let fork_guard = unsafe {
            sys::rusteron_client_cnc(raw.as_ptr(), &mut address, &mut length);
            ForkGuard::of_mapping(address.cast(), length)
        };
        context.close_state.watch_driver();
        let running = ManuallyDrop::new(Running {
            fork_guard: Some(fork_guard),
            raw,
            deferred: Mutex::default(),
            context: ManuallyDrop::new(context),
            idle,
            subscription_callbacks: Arc::default(),
            retained: Retained::default(),
        });
        let client = Self { running, process: Process::current(), invoker };
        // SAFETY: the client is live; if it cannot be started, dropping it closes it.
        unsafe { sys::aeron_start(client.as_ptr()) }.into_result()?;
        Ok(client)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_t {
        self.running.raw.as_ptr()
    }

    pub(crate) fn context(&self) -> &Context {
        &self.running.context
    }

    pub(crate) fn subscription_callbacks(&self) -> &Arc<CallbackList> {
        &self.running.subscription_callbacks
    }

    /// Returns the list of objects that are retained as long as the conductor can be running.
    pub(crate) fn retained(&self) -> Retained {
        self.running.retained.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        // SAFETY: the client is live; the function reads an atomic flag.
        self.is_inherited() || unsafe { sys::aeron_is_closed(self.as_ptr()) }
    }

    /// Returns whether another process has made this client, of which this is a fork.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.process.is_current()
    }

    /// Returns an error in a process that has inherited this client in a fork. The threads behind the
    /// client are in the other process, and perhaps held its locks.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.process.check()
    }

    /// Returns whether the driver has timed out this client. The conductor may not have noticed
    /// this yet. Walks the counters.
    #[cold]
    pub(crate) fn is_timed_out(&self) -> bool {
        // SAFETY: the client is live.
        unsafe { close_state::is_timed_out(self.as_ptr()) }
    }

    /// Returns the reason why the client is closed.
    pub(crate) fn close_cause(&self) -> Option<CloseCause> {
        if self.is_inherited() {
            return Some(self.process.close_cause());
        }
        self.context().close_state.cause()
    }

    /// Returns the reason why a handle of this client is closed. The driver may have timed out the
    /// client before the conductor has noticed that.
    #[cold]
    #[inline(never)]
    pub(crate) fn handle_close_cause(&self) -> CloseCause {
        match self.close_cause() {
            Some(cause) => cause,
            None if self.is_timed_out() => CloseCause::ClientTimeout,
            None => CloseCause::Handle,
        }
    }

    /// Runs a C function that gives the conductor a command.
    pub(crate) fn command<T>(&self, call: impl FnOnce() -> T) -> Result<T> {
        self.check_process()?;
        let Some(invoker) = &self.invoker else { return Ok(self.command_conductor(call)) };
        callback::forbid_blocking("without a conductor thread, a command", None)?;
        let lock = lock(invoker);
        let outcome = call();
        self.end_duty_cycle(invoker, lock);
        Ok(outcome)
    }

    /// Runs a C function that asks the media driver for something.
    pub(crate) fn add<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.command(|| {
            // In one case C fails without setting an error text. An older text would hide that.
            // SAFETY: clears a thread-local.
            unsafe { sys::aeron_err_clear() };
            if !self.has_invoker() {
                return call();
            }
            // SAFETY: the client is live, and this thread holds its lock, which keeps other threads
            // from the list.
            let known = unsafe { sys::rusteron_registering_count(self.as_ptr()) };
            call().inspect_err(|_| {
                // C has freed a request that did not fit into the driver's buffer, but the request
                // is still in C's list.
                // SAFETY: as above; the truncation removes that request, if it is in the list.
                unsafe { sys::rusteron_registering_truncate(self.as_ptr(), known) };
            })
        })?
        .map_err(|error| match error.code() {
            0 => Error::new(
                ErrorKind::DriverBufferFull,
                "the request does not fit into the media driver's command buffer",
            ),
            _ => self.explained(error),
        })
    }

    /// Runs a C function that releases a resource. In a forked child, the resource is the parent's,
    /// and `call` is leaked.
    ///
    /// For a client without a conductor thread, two cases are deferred to the end of the duty
    /// cycle: a call in a callback of this client, and a call in another client's callback during
    /// this client's duty cycle.
    ///
    /// `call` must not need anything but the C client, which outlives `call`. User code that `call`
    /// runs or drops is run as a callback.
    pub(crate) fn release(&self, call: impl FnOnce() + Send + 'static) {
        if self.is_inherited() {
            return std::mem::forget(call);
        }
        match &self.invoker {
            None => self.command_conductor(call),
            Some(invoker) if callback::is_running() => {
                lock(&self.running.deferred).push(Box::new(call));
                // The callback may belong to this client's duty cycle, which holds the lock. So
                // this does not wait.
                self.release_without_waiting(invoker);
            }
            Some(invoker) => {
                let lock = lock(invoker);
                // Marked as a callback: logging in `call` must not wait for the lock.
                callback::mark(call);
                self.end_duty_cycle(invoker, lock);
            }
        }
    }

    /// Does one duty cycle of the conductor's work on this thread. Returns the amount of work done.
    pub(crate) fn do_work(&self) -> Result<usize> {
        self.check_process()?;
        let invoker = self.invoker()?;
        callback::forbid_blocking("do_work", None)?;
        let lock = lock(invoker);
        // SAFETY: this thread runs the conductor, and the lock keeps others from it.
        unsafe { self.context().close_state.look_for_driver(Instant::now()) };
        // SAFETY: the client is live, and the lock keeps every other call of the conductor's
        // functions away.
        let work = unsafe { sys::aeron_main_do_work(self.as_ptr()) }.into_result();
        self.end_duty_cycle(invoker, lock);
        work.map(|work| work as usize).map_err(|error| self.explained(error))
    }

    /// Runs a call that may send the conductor a command. If it has sent one, wakes the conductor's
    /// thread after the call. A wait for the answer within the call would last as long as the
    /// conductor sleeps.
    fn command_conductor<T>(&self, call: impl FnOnce() -> T) -> T {
        // SAFETY: the client is live; the function reads an atomic number, which grows with each command.
        let commands = || unsafe { sys::rusteron_command_position(self.as_ptr()) };
        let before = commands();
        let outcome = call();
        // A command of another thread can also cause this wake-up. That does no harm.
        if commands() != before {
            self.running.wake_conductor();
        }
        outcome
    }

    /// Returns the lock of a client without a conductor thread.
    pub(crate) fn invoker(&self) -> Result<&Mutex<()>> {
        self.invoker.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::IllegalState,
                "this client has a conductor thread; the context's \
                 use_conductor_agent_invoker makes one without",
            )
        })
    }

    /// Returns whether the application has to call [`do_work`](Self::do_work).
    pub(crate) fn has_invoker(&self) -> bool {
        self.invoker.is_some()
    }

    /// Releases the resources that callbacks of the ending duty cycle have deferred.
    fn end_duty_cycle(&self, invoker: &Mutex<()>, guard: MutexGuard<'_, ()>) {
        self.running.release_deferred();
        drop(guard);
        self.release_without_waiting(invoker);
    }

    /// Releases the deferred resources, unless another thread, or a stack frame below this one,
    /// holds the lock. The holder checks again after it has released the lock. So no resource
    /// deferred before then is overlooked.
    fn release_without_waiting(&self, invoker: &Mutex<()>) {
        while self.running.has_deferred() {
            let guard = match invoker.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.running.release_deferred();
            drop(guard);
        }
    }

    /// Returns the error of a closed client.
    pub(crate) fn closed_error(&self) -> Error {
        let cause = self.handle_close_cause();
        Error::closed(cause, cause.with_advice())
    }

    /// Replaces C's error for a closed client, which does not name the cause.
    fn explained(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::ClientClosed => self.closed_error(),
            _ => self.context().close_state.explain(error),
        }
    }
}

/// The data of these locks cannot be left half changed: user code never runs while they are being
/// written, and panics in callbacks are caught before they get here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.is_inherited() {
            // The client is the parent's.
            return;
        }
        // SAFETY: taken once, and `self` is not used after.
        let running = unsafe { ManuallyDrop::take(&mut self.running) };
        if !callback::is_running() {
            return;
        }
        // The last handle was dropped in a callback, perhaps on the conductor thread that closing
        // waits for. So another thread closes the client. If no thread can be started, leaking the
        // client is better than a deadlock. Dropping the closure must therefore not drop the
        // client.
        let running = ManuallyDrop::new(running);
        let closing = thread::Builder::new()
            .name("aeron-close".into())
            .spawn(move || drop(ManuallyDrop::into_inner(running)));
        if let Err(error) = closing {
            log::error!("Aeron client: left open, for want of a thread to close it: {error}");
        }
    }
}

impl Running {
    /// Wakes the conductor's thread at once, and makes it poll often for a while.
    fn wake_conductor(&self) {
        if let Some(idle) = &self.idle {
            idle.wake();
        }
    }

    fn has_deferred(&self) -> bool {
        !lock(&self.deferred).is_empty()
    }

    /// Releases the deferred resources. The caller is the only thread that does the conductor's
    /// work. User data can panic when it is dropped; the remaining resources are released all the
    /// same.
    fn release_deferred(&self) {
        loop {
            // Taken out first: a release can lead to another callback, which can defer more
            // resources.
            let deferred = std::mem::take(&mut *lock(&self.deferred));
            if deferred.is_empty() {
                return;
            }
            for release in deferred {
                callback::run("release of what was dropped in a callback", release);
            }
        }
    }
}

impl Drop for Running {
    /// C uses the context and the callbacks up to the end of `aeron_close`.
    fn drop(&mut self) {
        // Deferred releases need the C client.
        self.release_deferred();
        // Shortens the pauses before the conductor's next duty cycles, one of which ends the
        // conductor.
        self.wake_conductor();
        self.fork_guard = None;
        // SAFETY: the client is live and its only owner is being dropped, so no other call is under
        // way or to come; it frees the client unless its thread cannot be joined.
        if let Err(error) = unsafe { sys::aeron_close(self.raw.as_ptr()) }.into_result() {
            log::error!("Aeron client: closing failed: {error}");
            // The conductor's thread may go on. So nothing that the thread uses is freed.
            let used = (
                self.idle.clone(),
                Arc::clone(&self.subscription_callbacks),
                self.retained.clone(),
            );
            std::mem::forget(used);
            return;
        }
        // SAFETY: dropped here only, and the client that used it is gone.
        unsafe { ManuallyDrop::drop(&mut self.context) };
    }
}
