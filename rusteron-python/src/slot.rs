//! The owner of a Rust handle that Python threads share.
//!
//! A slot guards `&mut`. A call that finds the handle in use raises `InUse`; waiting for a mutex without the
//! GIL would deadlock when a handler uses its own subscription. Calls between which no Python code can run,
//! such as offers, never meet, because the GIL orders them. So threads can share an exclusive publication.
//!
//! `close()` of a handle in use marks the slot, and the call that uses the handle closes it at its end. In a
//! child of `os.fork()`, each slot refuses its use, because a thread that does not exist in the child may hold
//! its lock.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use pyo3::ffi;
use pyo3::prelude::*;
use rusteron_client as client;
use rusteron_client::{OfferError, OfferedBatch};
use rusteron_core::ffi::Process;

use crate::{error, exit};

/// A handle that can be closed at any time, from any thread.
pub(crate) trait Close: Send + Sync {
    /// Closes the handle, or has it closed at the end of the call that uses it.
    fn close(&self);
}

/// A driver or a server that others need, and keep open.
pub(crate) type Owner = Arc<dyn Close>;

/// Drivers and servers that are open at the end of the interpreter are closed then, so that no directory is left behind.
static OPEN_AT_EXIT: Mutex<Vec<Weak<dyn Close>>> = Mutex::new(Vec::new());

/// Has a handle closed at the end of the interpreter.
pub(crate) fn close_at_exit<T: Send + 'static>(slot: Arc<Slot<T>>) -> Arc<Slot<T>> {
    let mut open = OPEN_AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|handle| handle.strong_count() > 0);
    let weak = Arc::downgrade(&slot);
    open.push(weak);
    slot
}

/// Closes these handles at the end of the interpreter, the newest first: a server needs its driver.
pub(crate) fn close_all() {
    let open = std::mem::take(&mut *OPEN_AT_EXIT.lock().unwrap_or_else(PoisonError::into_inner));
    for handle in open.iter().rev().filter_map(Weak::upgrade) {
        handle.close();
    }
}

/// Returns what keeps a handle open, or raises if it is closed.
pub(crate) fn open<T: Send + 'static>(slot: &Arc<Slot<T>>) -> PyResult<Owner> {
    if slot.is_closed() { Err(error::closed(slot.noun)) } else { Ok(Arc::clone(slot) as Owner) }
}

/// Holds a handle until it is closed. One call at a time uses the handle.
///
/// A call that finds the handle in use raises an error instead of waiting. It would wait with the GIL, which the other
/// call may need. The lock itself is held longer than a moment only by such a call.
pub(crate) struct Slot<T: Send> {
    pub(crate) noun: &'static str,
    process: Process,
    is_busy: AtomicBool,
    is_reserved: AtomicBool,
    is_closing: AtomicBool,
    value: Mutex<Option<T>>,
}

impl<T: Send> Slot<T> {
    pub(crate) fn new(noun: &'static str, value: T) -> Arc<Self> {
        Arc::new(Self {
            noun,
            process: Process::current(),
            is_busy: AtomicBool::new(false),
            is_reserved: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            value: Mutex::new(Some(value)),
        })
    }

    /// Returns the handle for one call, with the GIL held.
    pub(crate) fn enter(&self) -> PyResult<Entered<'_, T>> {
        self.check_process()?;
        if self.is_busy.swap(true, Ordering::SeqCst) {
            return Err(self.refusal());
        }
        // Only `peek` can have the lock now, for a moment, and it never takes the GIL.
        let value = self.lock();
        let entered = Entered { slot: self, value: ManuallyDrop::new(value) };
        if entered.value.is_none() || self.is_closing.load(Ordering::SeqCst) {
            return Err(error::closed(self.noun));
        }
        Ok(entered)
    }

    /// Raises in a child of `os.fork()`, where another thread of the parent may seem to use the handle for ever.
    pub(crate) fn check_process(&self) -> PyResult<()> {
        self.process.check().map_err(error::client)
    }

    /// Passes the handle to a short function that needs no GIL; `None` if the handle is in use, reserved or closed.
    fn peek<R>(&self, function: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        // A reservation begins under the lock. A call that has not got the lock yet waits for this function.
        if self.is_busy.load(Ordering::SeqCst) {
            return None;
        }
        value.as_mut().map(function)
    }

    /// Returns whether a wait for the handle is over: because the handle is closed, or the function says so. Needs no GIL.
    pub(crate) fn is_closed_or(&self, function: impl FnOnce(&mut T) -> bool) -> bool {
        self.is_closed() || self.peek(function).unwrap_or(false)
    }

    /// Has the handle count as in use after the call that uses it, until `release`.
    pub(crate) fn reserve(&self) {
        self.is_reserved.store(true, Ordering::SeqCst);
    }

    /// Ends a call, or what `reserve` began.
    pub(crate) fn release(&self) {
        self.is_reserved.store(false, Ordering::SeqCst);
        self.is_busy.store(false, Ordering::SeqCst);
        self.reap();
    }

    /// Takes the handle away, until `put_back`. Until then, the handle counts as in use.
    pub(crate) fn take(&self) -> PyResult<T> {
        let mut entered = self.enter()?;
        let value = entered.value.take();
        self.reserve();
        drop(entered);
        value.ok_or_else(|| error::closed(self.noun))
    }

    /// Gives back the handle of `take`.
    pub(crate) fn put_back(&self, value: T) {
        *self.lock() = Some(value);
        self.release();
    }

    /// Returns whether the handle was closed, or will be closed at the end of the call that uses it, or is a parent's.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst) || !self.process.is_current()
    }

    fn refusal(&self) -> PyErr {
        if self.is_closed() { error::closed(self.noun) } else { error::in_use(self.noun) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the handle if it is to be closed and no call uses it.
    fn reap(&self) {
        let is_due = self.is_closed() && self.process.is_current();
        if !is_due || self.is_busy.swap(true, Ordering::SeqCst) {
            return;
        }
        let value = self.lock().take();
        self.is_busy.store(false, Ordering::SeqCst);
        drop_detached(value);
    }
}

impl<T: Send> Close for Slot<T> {
    fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.reap();
    }
}

impl<T: Send> Drop for Slot<T> {
    fn drop(&mut self) {
        // In a forked child, a thread of the parent may hold the lock for ever, and dropping the handle does nothing.
        if self.process.is_current() {
            drop_detached(self.lock().take());
        }
    }
}

/// Drops a handle without the GIL: the drop of a last handle waits for threads.
fn drop_detached<T: Send>(value: Option<T>) {
    let Some(value) = value else { return };
    // SAFETY: this needs no GIL, and reads what belongs to this thread.
    if unsafe { ffi::PyGILState_GetThisThreadState() }.is_null() {
        // Not a thread of Python, so it has no GIL to give away. Attaching it could end it, at the interpreter's exit.
        return drop(value);
    }
    // If the interpreter is gone, the closure is dropped uncalled, and the handle with it.
    Python::try_attach(move |py| exit::detached(py, move || drop(value)));
}

/// The handle of a slot, during one call.
pub(crate) struct Entered<'a, T: Send> {
    slot: &'a Slot<T>,
    value: ManuallyDrop<MutexGuard<'a, Option<T>>>,
}

impl<T: Send> Deref for Entered<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("`enter` has checked it")
    }
}

impl<T: Send> DerefMut for Entered<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("`enter` has checked it")
    }
}

impl<T: Send> Drop for Entered<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this is the only drop of the guard, and nothing uses it later.
        unsafe { ManuallyDrop::drop(&mut self.value) };
        if !self.slot.is_reserved.load(Ordering::SeqCst) {
            self.slot.release();
        }
    }
}

/// A handle with the driver or server that it needs, which is dropped after it.
pub(crate) struct Owned<T> {
    handle: T,
    _driver: Option<Owner>,
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.handle
    }
}

impl<T> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.handle
    }
}

impl<T> Owned<T> {
    /// Returns the handle and its driver. `from_parts` takes the driver for another handle of the same client.
    pub(crate) fn into_parts(self) -> (T, Option<Owner>) {
        (self.handle, self._driver)
    }

    pub(crate) fn from_parts(handle: T, driver: Option<Owner>) -> Self {
        Self { handle, _driver: driver }
    }
}

pub(crate) type OwnedSlot<T> = Slot<Owned<T>>;

/// A Rust publication of either kind. Claims hold a shared one, and offers go on meanwhile.
#[expect(
    clippy::large_enum_variant,
    reason = "it stays in its slot, and an offer looks it up once"
)]
pub(crate) enum AnyPublication {
    Shared(Arc<client::Publication>),
    Exclusive(client::ExclusivePublication),
}

impl Deref for AnyPublication {
    type Target = client::PublicationHandle;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shared(publication) => publication,
            Self::Exclusive(publication) => publication,
        }
    }
}

impl AnyPublication {
    pub(crate) fn offer(&mut self, message: &[u8]) -> Result<i64, OfferError> {
        match self {
            Self::Shared(publication) => publication.offer(message),
            Self::Exclusive(publication) => publication.offer(message),
        }
    }

    pub(crate) fn offer_batch(&mut self, messages: &[&[u8]]) -> OfferedBatch {
        match self {
            Self::Shared(publication) => publication.offer_batch(messages),
            Self::Exclusive(publication) => publication.offer_batch(messages),
        }
    }

    pub(crate) fn position(&self) -> Result<i64, OfferError> {
        match self {
            Self::Shared(publication) => publication.position(),
            Self::Exclusive(publication) => publication.position(),
        }
    }

    pub(crate) fn available_window(&self) -> Result<usize, OfferError> {
        match self {
            Self::Shared(publication) => publication.available_window(),
            Self::Exclusive(publication) => publication.available_window(),
        }
    }
}

/// The handles of one client: they are closed with it.
#[derive(Clone)]
pub(crate) struct Scope {
    driver: Option<Owner>,
    handles: Arc<Mutex<Handles>>,
}

#[derive(Default)]
struct Handles {
    open: Vec<Weak<dyn Close>>,
    is_closed: bool,
}

impl Scope {
    pub(crate) fn new(driver: Option<Owner>) -> Self {
        Self { driver, handles: Arc::default() }
    }

    /// Makes a handle one of this client's.
    pub(crate) fn own<T: Send + 'static>(
        &self,
        noun: &'static str,
        handle: T,
    ) -> Arc<OwnedSlot<T>> {
        let slot = Slot::new(noun, Owned::from_parts(handle, self.driver.clone()));
        let weak = Arc::downgrade(&slot);
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = handles.is_closed;
        let open = &mut handles.open;
        // The list is as long as twice the number of live handles at most.
        if open.len() == open.capacity() {
            open.retain(|handle| handle.strong_count() > 0);
        }
        open.push(weak);
        drop(handles);
        // Another thread closed the client while the handle was being added.
        if is_late {
            slot.close();
        }
        slot
    }

    /// Closes all handles, and those that come later.
    pub(crate) fn close(&self) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.is_closed = true;
        let open = std::mem::take(&mut handles.open);
        drop(handles);
        for handle in open.iter().rev().filter_map(Weak::upgrade) {
            handle.close();
        }
    }
}

/// Writes a boolean as `repr` shows it.
pub(crate) fn py_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}
