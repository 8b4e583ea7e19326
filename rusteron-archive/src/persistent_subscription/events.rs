//! The events of a persistent subscription.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};

use rusteron_client::__private::{Retained, lossy};

use crate::error::ArchiveError;

/// An event of a persistent subscription.
#[doc(alias = "PersistentSubscriptionListener")]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PersistentSubscriptionEvent {
    /// The subscription has joined the live stream.
    LiveJoined,
    /// The subscription has left the live stream, and falls back to the recording.
    LiveLeft,
    /// An error. The subscription tries again, unless it [has
    /// failed](crate::PersistentSubscription::failure).
    Error(ArchiveError),
}

/// Events that C reports, queued until C has returned.
pub(crate) enum Event {
    LiveJoined,
    LiveLeft,
    Error(c_int, String),
}

/// # Safety
/// `clientd` comes from a live `Retained` of events with no other user.
pub(super) unsafe fn exclusive_events<'a>(clientd: *mut c_void) -> &'a mut VecDeque<Event> {
    // SAFETY: handed on to the caller.
    unsafe { Retained::exclusive(clientd) }
}

/// # Safety
/// As for [`exclusive_events`].
pub(crate) unsafe extern "C" fn on_live_joined(clientd: *mut c_void) {
    // SAFETY: handed on to the caller.
    unsafe { exclusive_events(clientd) }.push_back(Event::LiveJoined);
}

/// # Safety
/// As for [`exclusive_events`].
pub(crate) unsafe extern "C" fn on_live_left(clientd: *mut c_void) {
    // SAFETY: handed on to the caller.
    unsafe { exclusive_events(clientd) }.push_back(Event::LiveLeft);
}

/// # Safety
/// As for [`exclusive_events`]; the text is terminated.
pub(crate) unsafe extern "C" fn on_error(
    clientd: *mut c_void,
    code: c_int,
    message: *const c_char,
) {
    // SAFETY: handed on to the caller.
    let (events, text) = unsafe { (exclusive_events(clientd), lossy(message)) };
    events.push_back(Event::Error(code, text.into_owned()));
}
