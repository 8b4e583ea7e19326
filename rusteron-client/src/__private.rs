//! The parts of this crate that its siblings and their generated code need.
//!
//! May change in every release: the siblings pin the exact version.

use std::ffi::CString;

use rusteron_sys as sys;

use crate::aeron::Aeron;
use crate::channel::uri::{AsChannel, Use, address};
use crate::client::{Counter, registration};
use crate::ffi::callback;

pub use crate::error::{Error, ErrorKind, Result};
pub use crate::ffi::callback::{catch, mark, run};
pub use crate::ffi::wake::soon as wake_soon;
pub use crate::ffi::{
    Fallible, Retained, c_path, c_string, last_error, lock_context_init, lossy, millis, nanos, path,
};

/// The C client behind a handle, and in which way it may be called.
///
/// C's archive client calls C's functions for commands by itself, and, for a client without a
/// conductor thread, those for the conductor's work. All its functions are therefore called in
/// [`command`](Self::command) or, where nothing may wait, in [`release`](Self::release).
#[derive(Clone, Copy, Debug)]
pub struct RawClient<'a>(&'a Aeron);

impl<'a> RawClient<'a> {
    /// That of `aeron`.
    pub fn new(aeron: &'a Aeron) -> Self {
        Self(aeron)
    }

    /// The C client, which is live as long as a handle of it.
    pub fn as_ptr(self) -> *mut sys::aeron_t {
        self.0.client().as_ptr()
    }

    /// Whether there is no conductor thread, so that whoever waits has to do its work.
    pub fn has_invoker(self) -> bool {
        self.0.client().has_invoker()
    }

    /// Runs a C function that may wait, or give the conductor commands; `operation` names it. The conductor is
    /// woken for its commands when it returns.
    ///
    /// # Errors
    /// [`ErrorKind::CalledFromConductor`] in a callback of a conductor.
    pub fn command<T>(self, operation: &str, call: impl FnOnce() -> T) -> Result<T> {
        callback::forbid_blocking(operation)?;
        self.0.client().command(call)
    }

    /// Runs a C function that gives a resource back, now or, in a callback of a client without a
    /// conductor thread, when that has ended. `call` needs nothing but the C client.
    pub fn release(self, call: impl FnOnce() + Send + 'static) {
        self.0.client().release(call);
    }

    /// Polls until there is an outcome, doing the conductor's work if nobody else does and yielding
    /// the processor meanwhile.
    ///
    /// # Errors
    /// Those of `poll`.
    pub fn wait_for<T>(self, poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        registration::wait_for(self.0.client(), poll)
    }
}

/// Gives a counter to C, whose function for closing it is then to be called.
pub fn counter_into_raw(counter: Counter) -> *mut sys::aeron_counter_t {
    counter.into_raw()
}

/// The text for C of a channel that somebody else subscribes to, checked.
pub fn subscription_channel(channel: &impl AsChannel) -> Result<CString> {
    channel.to_c_string(Use::Subscription)
}

/// The text for C of a channel that somebody else publishes to, checked.
pub fn publication_channel(channel: &impl AsChannel) -> Result<CString> {
    channel.to_c_string(Use::Publication)
}

/// The text for C of a destination that a subscription receives from, checked.
pub fn receive_destination(channel: &impl AsChannel) -> Result<CString> {
    channel.to_c_string(Use::ReceiveDestination)
}

/// Whether C can take a setting's address or interface apart without copying a text of negative length.
pub fn is_safe_address(text: &str, is_interface: bool) -> bool {
    address::is_safe_for_c(text, is_interface)
}
