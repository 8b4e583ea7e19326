//! Destinations of multi-destination channels, while the media driver is being asked about them.

use std::ffi::CStr;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_sys as sys;

use crate::channel_uri::{AsChannel, Use};
use crate::client::Client;
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::Fallible;

/// A destination that is being added or removed: asked for, and not yet confirmed by the media
/// driver.
///
/// It is polled until it says that it is done, or gives an error. It can be dropped before; the media
/// driver does what it was asked all the same.
pub struct AsyncDestination {
    /// `None` once the outcome has been given out: C frees the structure then.
    raw: Option<NonNull<sys::aeron_client_registering_resource_stct>>,
    registration_id: i64,
    client: Arc<Client>,
    /// After this, the conductor, which has a deadline of its own, must be stuck.
    deadline: Instant,
}

// SAFETY: C polls the structure through an atomic status, and it has one owner here; that does not
// depend on the thread.
unsafe impl Send for AsyncDestination {}

type Raw = *mut sys::aeron_client_registering_resource_stct;

impl AsyncDestination {
    /// Gives C the command, with `begin`, to add or to remove a destination.
    ///
    /// # Safety
    /// `begin` calls a C function that sets its first argument to a request or fails. The conductor
    /// carries the command out later, in its turn: the publication or subscription that the command
    /// is about must not be freed before.
    pub(crate) unsafe fn begin(
        client: &Arc<Client>,
        channel: impl AsChannel,
        begin: impl FnOnce(&mut Raw, *mut sys::aeron_t, &CStr) -> i32,
    ) -> Result<Self> {
        let channel = channel.to_c_string(Use::Destination)?;
        let mut raw = ptr::null_mut();
        client.add(|| begin(&mut raw, client.as_ptr(), &channel).into_result())?;
        let raw = NonNull::new(raw).ok_or_else(Error::last)?;
        // SAFETY: `raw` was made just now.
        let registration_id =
            unsafe { sys::aeron_async_destination_get_registration_id(raw.as_ptr()) };
        let patience = client.context().driver_timeout().saturating_mul(2);
        Ok(Self {
            raw: Some(raw),
            registration_id,
            client: Arc::clone(client),
            deadline: Instant::now() + patience.min(Duration::from_secs(3600)),
        })
    }

    /// The number under which the media driver knows the request and, if it was to add one, the
    /// destination.
    ///
    /// Corresponds to `aeron_async_destination_get_registration_id`.
    pub fn registration_id(&self) -> i64 {
        self.registration_id
    }

    /// Whether the media driver has done what it was asked for. Does not block.
    ///
    /// # Errors
    /// The outcome, given out once, can be an error:
    /// - [`ErrorKind::InvalidChannel`] and others that the media driver reports, with its text;
    /// - [`ErrorKind::DriverTimeout`]: no answer within the driver timeout;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client meanwhile;
    ///
    /// and [`ErrorKind::IllegalState`] if the outcome was given out before.
    ///
    /// Corresponds to `aeron_subscription_async_destination_poll` and its relatives.
    pub fn poll(&mut self) -> Result<bool> {
        let Some(raw) = self.raw else {
            return Err(Error::new(
                ErrorKind::IllegalState,
                format!("destination {} has given its outcome already", self.registration_id),
            ));
        };
        // SAFETY: no outcome was given, so that C still has the structure; it is cleared below as
        // soon as there is one. All kinds of destinations share one function.
        let outcome =
            unsafe { sys::aeron_subscription_async_destination_poll(raw.as_ptr()) }.into_result();
        if let Ok(0) = outcome {
            return self.check_progress().map(|()| false);
        }
        self.raw = None;
        outcome.map(|_| true)
    }

    /// Polls, yielding the processor meanwhile, until there is an outcome; returns the registration
    /// id.
    pub(crate) fn wait(mut self) -> Result<i64> {
        const YIELDS: u32 = 64;
        const PAUSE: Duration = Duration::from_micros(100);
        let mut polls = 0;
        while !self.poll()? {
            if self.client.has_invoker() {
                // What goes wrong there, the next poll reports.
                let _ = self.client.do_work();
            }
            polls += 1;
            if polls < YIELDS { thread::yield_now() } else { thread::sleep(PAUSE) }
        }
        Ok(self.registration_id)
    }

    fn check_progress(&self) -> Result<()> {
        if self.client.is_closed() {
            return Err(self.client.closed_error());
        }
        if Instant::now() >= self.deadline {
            return Err(Error::new(
                ErrorKind::DriverTimeout,
                "the client's conductor has not answered in twice the driver timeout",
            ));
        }
        Ok(())
    }
}

impl Drop for AsyncDestination {
    fn drop(&mut self) {
        // An outcome that is there lets C free the structure now; otherwise it goes with the client.
        if self.raw.is_some() {
            if let Err(error) = self.poll() {
                log::debug!("destination {}: {error}", self.registration_id);
            }
        }
    }
}

impl fmt::Debug for AsyncDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncDestination")
            .field("registration_id", &self.registration_id)
            .field("has_outcome", &self.raw.is_none())
            .finish()
    }
}
