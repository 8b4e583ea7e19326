//! Session ids that the media driver gives out for later publications.

use std::fmt;
use std::sync::Arc;

use rusteron_core::error::Result;
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::registration::{CancelRequest, PollRequest, Resource, sealed};
use crate::client::subscription_callbacks::CallbackHandle;

/// A session id that the media driver has given out for a later publication.
///
/// Made by [`Aeron::async_next_session_id`](crate::Aeron::async_next_session_id).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextSessionId(i32);

impl NextSessionId {
    /// Returns the id, for the channel parameter
    /// [`SessionId`](crate::Parameter::SessionId).
    pub fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Display for NextSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Resource for NextSessionId {}

// SAFETY: both functions are C's for requests of this kind.
unsafe impl sealed::Resource for NextSessionId {
    type Raw = i32;

    const POLL: PollRequest<Self::Raw> = sys::aeron_async_next_session_id_poll;
    const CANCEL: CancelRequest = sys::rusteron_async_next_session_id_cancel;

    unsafe fn from_raw(
        session_id: i32,
        _client: Arc<Client>,
        _callbacks: Option<CallbackHandle>,
    ) -> Result<Self> {
        Ok(Self(session_id))
    }
}

#[cfg(test)]
mod tests {
    use rusteron_media_driver::MediaDriver;
    use rusteron_sys as sys;

    use crate::{Aeron, Context};

    #[test]
    fn dropped_request_leaves_the_conductors_list() {
        let driver = MediaDriver::launch_embedded().expect("a driver");
        let mut context = Context::new().expect("a context");
        context
            .set_dir(driver.aeron_dir())
            // Commands are carried out at once, and the list changes in calls only.
            .and_then(|context| context.set_use_conductor_agent_invoker(true))
            .expect("valid settings");
        let aeron = Aeron::connect(context).expect("a client");
        // SAFETY: the client is live, and no other thread uses it.
        let waiting = || unsafe { sys::rusteron_registering_count(aeron.client().as_ptr()) };
        let registration = aeron.async_next_session_id(7).expect("begun");
        assert_eq!(waiting(), 1);
        drop(registration);
        assert_eq!(waiting(), 0);
    }
}
