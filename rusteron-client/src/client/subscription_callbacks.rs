//! The closures that C calls for a subscription, and their lifetime.
//!
//! A list owns each subscription's closures. The list lives as long as its client, and so longer
//! than any thread of C's. Closures are removed from the list and freed when C will not call them
//! any more:
//!
//! - C's close of the subscription calls `on_close_complete` as the last thing, after
//!   `on_unavailable_image` for every image that was still there;
//! - the removal of a subscription by its registration id calls `on_complete` in the same place; an
//!   unconfirmed subscription is cancelled this way;
//! - a failed registration has no subscription, and never gets a subscription;
//! - a fatal error sets `is_closed` of the client, and then of every subscription, on the thread
//!   that would call the closures; after that, the loop of that thread only fails.
//!
//! The remaining closures are freed with the client, after `aeron_close`. Of the closures,
//! `aeron_close` calls only `on_close_complete` and `on_complete`.

use std::collections::HashSet;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rusteron_core::error::{ErrorKind, Result};
use rusteron_core::ffi::{Fallible, callback};
use rusteron_sys as sys;

/// A closure that is called with a live image, whose log buffer is mapped.
type OnImage = Box<dyn FnMut(*mut sys::aeron_image_t) + Send>;

/// The closures of one subscription.
#[derive(Default)]
pub(crate) struct SubscriptionCallbacks {
    pub(crate) on_available_image: Option<OnImage>,
    pub(crate) on_unavailable_image: Option<OnImage>,
    pub(crate) on_close_complete: Option<Box<dyn FnOnce() + Send>>,
}

/// All closures of a client's subscriptions. Dropping the list frees the remaining closures.
#[derive(Default)]
pub(crate) struct CallbackList(Mutex<HashSet<CallbackHandle>>);

/// Handle of closures in a list, valid as long as C may call them. C receives it as `clientd`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[allow(unreachable_pub, missing_debug_implementations, reason = "public in a sealed trait only")]
pub struct CallbackHandle(NonNull<Entry>);

// SAFETY: the closures are `Send`, and a handle gives access to them on one thread at a time: on
// the conductor's thread, and then on the thread of the one call that frees them.
unsafe impl Send for CallbackHandle {}

struct Entry {
    callbacks: SubscriptionCallbacks,
    list: Weak<CallbackList>,
}

impl CallbackList {
    pub(crate) fn insert(self: &Arc<Self>, callbacks: SubscriptionCallbacks) -> CallbackHandle {
        let entry = Box::new(Entry { callbacks, list: Arc::downgrade(self) });
        let handle = CallbackHandle(NonNull::from(Box::leak(entry)));
        self.lock().insert(handle);
        handle
    }

    /// Frees the closures, if they have not been freed yet.
    ///
    /// # Safety
    /// C does not call them any more.
    pub(crate) unsafe fn remove(&self, handle: Option<CallbackHandle>) {
        let Some(handle) = handle else { return };
        if self.lock().remove(&handle) {
            // SAFETY: the handle was in the list and is not any more, so that this happens once; by
            // the contract, no thread uses it.
            unsafe { handle.free() };
        }
    }

    /// Locks the list. The lock is never held while closures run or are dropped.
    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<CallbackHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallbackList {
    fn drop(&mut self) {
        for handle in std::mem::take(&mut *self.lock()) {
            // SAFETY: the list is dropped after its client, so that C calls nothing any more; each
            // entry is removed once.
            unsafe { handle.free() };
        }
    }
}

impl CallbackHandle {
    /// Returns the argument that C passes to the functions below: NULL without closures.
    pub(crate) fn clientd(handle: Option<Self>) -> *mut c_void {
        handle.map_or(ptr::null_mut(), |handle| handle.0.as_ptr().cast())
    }

    /// Sets the closure that is called when the subscription is closed.
    ///
    /// # Safety
    /// The closures have not been freed, and C was not told yet to call `on_close_complete`.
    pub(crate) unsafe fn set_on_close_complete(self, on_close: Box<dyn FnOnce() + Send>) {
        // SAFETY: by the contract the entry is live; the conductor may be using the other fields at
        // this moment, but not this one.
        unsafe { (&raw mut (*self.0.as_ptr()).callbacks.on_close_complete).write(Some(on_close)) };
    }

    /// # Safety
    /// The handle was made by `insert`, no thread uses it, and this is called once.
    unsafe fn free(self) {
        // SAFETY: by the contract; made of a box in `insert`.
        let entry = unsafe { Box::from_raw(self.0.as_ptr()) };
        let SubscriptionCallbacks { on_available_image, on_unavailable_image, on_close_complete } =
            entry.callbacks;
        // A closure may have captured a handle of this client, and this thread may be the client's
        // conductor.
        callback::run("drop of a handler of images", || {
            drop((on_available_image, on_unavailable_image));
        });
        if let Some(on_close_complete) = on_close_complete {
            callback::run("notification of a closed subscription", on_close_complete);
        }
    }
}

/// # Safety
/// `clientd` is NULL, or of closures that have not been freed; the image is live. Called on one
/// thread at a time, the conductor's.
pub(crate) unsafe extern "C" fn on_available_image(
    clientd: *mut c_void,
    _subscription: *mut sys::aeron_subscription_t,
    image: *mut sys::aeron_image_t,
) {
    let Some(entry) = NonNull::new(clientd.cast::<Entry>()) else { return };
    // SAFETY: by the contract; a closure is used on the conductor's thread only.
    let closure = unsafe { &mut (*entry.as_ptr()).callbacks.on_available_image };
    if let Some(closure) = closure {
        // C has just mapped its log buffer.
        callback::run("handler of available images", || closure(image));
    }
}

/// # Safety
/// As for [`on_available_image`].
pub(crate) unsafe extern "C" fn on_unavailable_image(
    clientd: *mut c_void,
    _subscription: *mut sys::aeron_subscription_t,
    image: *mut sys::aeron_image_t,
) {
    let Some(entry) = NonNull::new(clientd.cast::<Entry>()) else { return };
    // SAFETY: as above.
    let closure = unsafe { &mut (*entry.as_ptr()).callbacks.on_unavailable_image };
    if let Some(closure) = closure {
        // C releases the image and its log buffer after this call.
        callback::run("handler of unavailable images", || closure(image));
    }
}

/// C's last call for a subscription.
///
/// # Safety
/// `clientd` is NULL, or of closures that have not been freed.
pub(crate) unsafe extern "C" fn on_close_complete(clientd: *mut c_void) {
    let Some(entry) = NonNull::new(clientd.cast::<Entry>()) else { return };
    // SAFETY: by the contract.
    let list = unsafe { &(*entry.as_ptr()).list }.upgrade();
    if let Some(list) = list {
        // SAFETY: C calls nothing for this subscription after this.
        unsafe { list.remove(Some(CallbackHandle(entry))) };
    }
}

/// Hands a subscription to the conductor, which closes and frees it and its images. If an error has
/// ended the client, the subscription is freed with the client.
///
/// # Safety
/// The subscription is live, and its owner does not use it any more. The callbacks are its own.
pub(crate) unsafe fn close(
    subscription: *mut sys::aeron_subscription_t,
    callbacks: Option<CallbackHandle>,
    list: &CallbackList,
) -> Result<()> {
    // SAFETY: live by the contract; the first function reads an atomic flag. While the client is
    // open, only this function closes the subscription.
    let (ended_by_error, closed) = unsafe {
        let ended_by_error = sys::aeron_subscription_is_closed(subscription);
        let clientd = CallbackHandle::clientd(callbacks);
        let closed = sys::aeron_subscription_close(subscription, Some(on_close_complete), clientd);
        (ended_by_error, closed.into_result())
    };
    if ended_by_error || closed.as_ref().is_err_and(|error| error.kind() == ErrorKind::ClientClosed)
    {
        // SAFETY: the conductor has marked the subscription, or itself, as closed. It calls nothing
        // for the subscription any more, and was not asked to.
        unsafe { list.remove(callbacks) };
    }
    closed.map(drop)
}
