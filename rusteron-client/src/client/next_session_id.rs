//! Session ids that the media driver gives out for later publications.

use std::fmt;
use std::sync::Arc;

use rusteron_sys as sys;

use crate::client::Client;
use crate::client::registration::{Registration, Resource, sealed};
use rusteron_core::error::Result;
use rusteron_core::ffi::Fallible;

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

/// Starts requesting a session id.
pub(crate) fn begin(client: &Arc<Client>, stream_id: i32) -> Result<Registration<NextSessionId>> {
    // SAFETY: this is the function that begins to ask for a session id; there is nothing to call back.
    unsafe {
        Registration::begin_with(client, (), |registering, client| {
            sys::aeron_async_next_session_id(registering, client, stream_id)
        })
    }
}

impl Resource for NextSessionId {}

impl sealed::Resource for NextSessionId {
    type Raw = i32;
    type Callbacks = ();

    unsafe fn poll(
        registering: *mut sys::aeron_client_registering_resource_stct,
    ) -> Result<Option<i32>> {
        let mut session_id = 0;
        // SAFETY: the caller guarantees a live request of this kind (`Resource::poll`).
        let polled = unsafe { sys::aeron_async_next_session_id_poll(&mut session_id, registering) };
        Ok((polled.into_result()? != 0).then_some(session_id))
    }

    unsafe fn cancel(
        client: *mut sys::aeron_t,
        registering: *mut sys::aeron_client_registering_resource_stct,
        (): (),
    ) -> i32 {
        // SAFETY: the caller guarantees a live request of this client (`Resource::cancel`).
        unsafe { sys::rusteron_async_next_session_id_cancel(client, registering) }
    }

    unsafe fn from_raw(session_id: i32, _client: Arc<Client>, (): ()) -> Result<Self> {
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
