//! Closing a subscription.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use rusteron_sys as sys;

use crate::client::subscription_callbacks::{CallbackHandle, CallbackList, on_close_complete};
use rusteron_core::error::{ErrorKind, Result};
use rusteron_core::ffi::{Fallible, SendPtr};

/// A subscription that is being handed to the conductor, which frees it and its images.
pub(crate) struct Closing {
    pub(crate) raw: SendPtr<sys::aeron_subscription_t>,
    pub(crate) registration_id: i64,
    pub(crate) callbacks: Option<CallbackHandle>,
    pub(crate) list: Arc<CallbackList>,
}

impl Closing {
    pub(crate) fn run(self) {
        // While the client is open, only this function closes the subscription.
        // SAFETY: the subscription is live; the function reads an atomic flag.
        let ended_by_error = unsafe { sys::aeron_subscription_is_closed(self.raw.0) };
        let closed = self.hand_over();
        let refused = closed.as_ref().is_err_and(|error| error.kind() == ErrorKind::ClientClosed);
        if let (Some(callbacks), true) = (self.callbacks, ended_by_error || refused) {
            // SAFETY: the conductor has marked the subscription, or itself, as closed. It calls
            // nothing for the subscription any more, and was not asked to.
            unsafe { self.list.remove(callbacks) };
        }
        if let Err(error) = closed {
            log::debug!("subscription {}: {error}", self.registration_id);
        }
    }

    /// Hands the subscription to the conductor. If an error has ended the client, does nothing, and
    /// the subscription is freed with the client.
    fn hand_over(&self) -> Result<()> {
        let notification: sys::aeron_notification_t = Some(on_close_complete);
        let notification = notification.filter(|_| self.callbacks.is_some());
        let clientd = clientd(self.callbacks);
        // SAFETY: the subscription is live, and this was its only owner.
        unsafe { sys::aeron_subscription_close(self.raw.0, notification, clientd) }
            .into_result()
            .map(drop)
    }
}

/// Returns the `clientd` argument that C passes to the handlers of a subscription.
pub(crate) fn clientd(callbacks: Option<CallbackHandle>) -> *mut c_void {
    callbacks.map_or(ptr::null_mut(), CallbackHandle::clientd)
}
