//! What all handles of a client share: the C client, its lifetime, and who may call it when.

use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use rusteron_sys as sys;

use crate::client::conductor_idle::ConductorIdle;
use crate::client::subscription_callbacks::CallbackList;
use crate::cnc::CountersReader;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::{Fallible, callback, last_error};

/// The client that all handles share; closed when the last of them, of any kind, is gone.
///
/// C's functions for commands, such as adding and closing, come in two modes. With a conductor
/// thread they put a command into a queue for many producers, and may be called from any thread at
/// any time. With an invoker they do the conductor's work at once, on the caller's thread, and must
/// neither overlap nor be called from the callbacks of that work. [`command`](Self::command) and
/// [`release`](Self::release) keep these rules; every call of such a function goes through them.
#[allow(unreachable_pub, missing_debug_implementations, reason = "public in a sealed trait only")]
pub struct Client {
    running: ManuallyDrop<Running>,
    /// Held during commands and work if the client has no conductor thread.
    invoker: Option<Mutex<()>>,
}

type Deferred = Box<dyn FnOnce() + Send>;

/// The C client and what it works with. Fields are dropped in order, after the C client.
struct Running {
    raw: NonNull<sys::aeron_t>,
    /// What was released in a callback without a conductor thread, until somebody holds the invoker's lock.
    deferred: Mutex<Vec<Deferred>>,
    context: ManuallyDrop<Context>,
    /// If there is a conductor thread that sleeps.
    idle: Option<Arc<ConductorIdle>>,
    subscription_callbacks: Arc<CallbackList>,
    kept: Kept,
}

/// What the conductor may use until it has ended.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<Box<dyn Send>>>>);

impl Kept {
    pub(crate) fn keep(&self, item: Box<dyn Send>) {
        lock(&self.0).push(item);
    }
}

// SAFETY: see `Client`: what C does not allow from any thread at any time is serialised there.
// Everything else that C's functions for a client read is constant or atomic.
unsafe impl Send for Running {}
// SAFETY: as above.
unsafe impl Sync for Running {}

impl Client {
    /// Initialises and starts the C client.
    pub(crate) fn start(context: Context) -> Result<Self> {
        let has_invoker = context.use_conductor_agent_invoker();
        // SAFETY: the context is owned here; what idles lives as long as the client, see `Running`.
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
        let running = ManuallyDrop::new(Running {
            raw,
            deferred: Mutex::default(),
            context: ManuallyDrop::new(context),
            idle,
            subscription_callbacks: Arc::default(),
            kept: Kept::default(),
        });
        let client = Self { running, invoker };
        // SAFETY: the client is live; if it cannot be started, dropping it takes it down.
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

    /// Keeps things for as long as the conductor can be running.
    pub(crate) fn kept(&self) -> Kept {
        self.running.kept.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        // SAFETY: the client is live; the function reads an atomic flag.
        unsafe { sys::aeron_is_closed(self.as_ptr()) }
    }

    /// Whether the driver has given up this client, which the conductor may not have noticed. Walks the counters.
    #[cold]
    pub(crate) fn is_given_up(&self) -> bool {
        let type_id = sys::AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID as i32;
        // SAFETY: the client is live, and with it the counters that it has mapped; its id is a constant.
        let (counters, id) = unsafe {
            let counters = CountersReader::from_raw(sys::aeron_counters_reader(self.as_ptr()));
            (counters, sys::aeron_client_id(self.as_ptr()))
        };
        counters.find_by_type_id_and_registration_id(type_id, id).is_none()
    }

    /// Runs a C function that gives the conductor a command.
    pub(crate) fn command<T>(&self, call: impl FnOnce() -> T) -> Result<T> {
        let Some(invoker) = &self.invoker else { return Ok(self.command_conductor(call)) };
        callback::forbid_blocking("without a conductor thread, a command")?;
        let lock = lock(invoker);
        let outcome = call();
        self.end_turn(invoker, lock);
        Ok(outcome)
    }

    /// Runs a C function that asks the media driver for something.
    pub(crate) fn add<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.command(|| {
            // C fails in one case without saying why, which an older text would hide.
            // SAFETY: clears a thread-local.
            unsafe { sys::rusteron_err_clear() };
            if !self.has_invoker() {
                return call();
            }
            // SAFETY: the client is live, and its lock, which is held, keeps others from the list.
            let known = unsafe { sys::rusteron_registering_count(self.as_ptr()) };
            call().inspect_err(|_| {
                // A request that did not fit into the driver's buffer has been freed by C, and is
                // still in C's list.
                // SAFETY: as above; what is cut off is that request, if it is there.
                unsafe { sys::rusteron_registering_truncate(self.as_ptr(), known) };
            })
        })?
        .map_err(|error| match error.code() {
            0 => Error::new(
                ErrorKind::DriverBufferFull,
                "the request does not fit into the media driver's command buffer",
            ),
            _ => error,
        })
    }

    /// Runs a C function that gives a resource back. In a callback of this client without a conductor
    /// thread, and in another client's while this one has its turn, it runs at the end of the turn.
    ///
    /// `call` must not need anything but the C client, which outlives it. User code that it runs, or
    /// drops, is run as a callback.
    pub(crate) fn release(&self, call: impl FnOnce() + Send + 'static) {
        match &self.invoker {
            None => self.command_conductor(call),
            Some(invoker) if callback::is_running() => {
                lock(&self.running.deferred).push(Box::new(call));
                // The callback may be of this client's turn, which holds the lock: no waiting.
                self.release_without_waiting(invoker);
            }
            Some(invoker) => {
                let lock = lock(invoker);
                // Marked: what it logs must not wait for the lock.
                callback::mark(call);
                self.end_turn(invoker, lock);
            }
        }
    }

    /// One turn of the conductor's work, on this thread; returns how much was done.
    pub(crate) fn do_work(&self) -> Result<usize> {
        let Some(invoker) = &self.invoker else {
            return Err(Error::new(
                ErrorKind::IllegalState,
                "this client has a conductor thread; the context's \
                 use_conductor_agent_invoker makes one without",
            ));
        };
        callback::forbid_blocking("do_work")?;
        let lock = lock(invoker);
        // SAFETY: the client is live, and the lock keeps every other call of the conductor's
        // functions away.
        let work = unsafe { sys::aeron_main_do_work(self.as_ptr()) }.into_result();
        self.end_turn(invoker, lock);
        work.map(|work| work as usize)
    }

    /// Runs what may give the conductor's thread a command, and then wakes it if that was so. What waits for
    /// the answer within the call would wait for a sleep of the conductor's.
    fn command_conductor<T>(&self, call: impl FnOnce() -> T) -> T {
        // SAFETY: the client is live; the function reads an atomic number, which grows with each command.
        let commands = || unsafe { sys::rusteron_command_position(self.as_ptr()) };
        let before = commands();
        let outcome = call();
        // One of another thread, which wakes the conductor as well, does no harm.
        if commands() != before {
            self.running.wake_conductor();
        }
        outcome
    }

    /// Whether somebody has to call [`do_work`](Self::do_work).
    pub(crate) fn has_invoker(&self) -> bool {
        self.invoker.is_some()
    }

    /// Releases what was deferred by the callbacks of the turn that ends.
    fn end_turn(&self, invoker: &Mutex<()>, turn: MutexGuard<'_, ()>) {
        self.running.release_deferred();
        drop(turn);
        self.release_without_waiting(invoker);
    }

    /// Releases what is deferred, unless another thread, or a frame below this one, holds the lock: that
    /// looks again when it has let go of the lock, so that nothing deferred before then is overlooked.
    fn release_without_waiting(&self, invoker: &Mutex<()>) {
        while self.running.has_deferred() {
            let turn = match invoker.try_lock() {
                Ok(turn) => turn,
                Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.running.release_deferred();
            drop(turn);
        }
    }

    /// Why a closed client does nothing any more, in Aeron's words.
    pub(crate) fn closed_error(&self) -> Error {
        const NO_SUCH_ID: i64 = -1;
        if self.has_invoker() && callback::is_running() {
            return Error::new(ErrorKind::ClientClosed, "the client was closed by a fatal error");
        }
        let refusal = self.command(|| {
            // SAFETY: the client is live. A closed one refuses every command and says why; an open
            // one would find nothing to remove.
            unsafe {
                sys::aeron_async_remove_publication(
                    NO_SUCH_ID,
                    self.as_ptr(),
                    None,
                    ptr::null_mut(),
                )
            }
            .into_result()
        });
        refusal.and_then(|refusal| refusal).err().unwrap_or_else(|| {
            Error::new(ErrorKind::ClientClosed, "the client was closed by a fatal error")
        })
    }
}

/// The data of these locks cannot be left half changed: user code never runs while they are being
/// written, and panics in callbacks are caught before they get here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: taken once, and `self` is not used after.
        let running = unsafe { ManuallyDrop::take(&mut self.running) };
        if !callback::is_running() {
            return;
        }
        // The last handle went in a callback, perhaps on the conductor thread that closing waits
        // for: let another thread wait. Were there none to be had, leaking is better than a deadlock, which
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

impl Running {
    /// Has the conductor's thread look for something to do at once, and often for a while.
    fn wake_conductor(&self) {
        if let Some(idle) = &self.idle {
            idle.wake();
        }
    }

    fn has_deferred(&self) -> bool {
        !lock(&self.deferred).is_empty()
    }

    /// Nobody else is doing the conductor's work. What is a user's can panic when it is dropped; the
    /// others are released all the same.
    fn release_deferred(&self) {
        loop {
            // Taken first: a release can lead to another callback, which can defer more.
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
        // It needs the C client.
        self.release_deferred();
        // Its next turns, of which one ends it, are near each other.
        self.wake_conductor();
        // SAFETY: the client is live and its only owner is being dropped, so no other call is under
        // way or to come; it frees the client unless its thread cannot be joined.
        if let Err(error) = unsafe { sys::aeron_close(self.raw.as_ptr()) }.into_result() {
            log::error!("Aeron client: closing failed: {error}");
            // Its thread may go on: nothing that it uses is freed.
            let used =
                (self.idle.clone(), Arc::clone(&self.subscription_callbacks), self.kept.clone());
            std::mem::forget(used);
            return;
        }
        // SAFETY: dropped here only, and the client that used it is gone.
        unsafe { ManuallyDrop::drop(&mut self.context) };
    }
}
