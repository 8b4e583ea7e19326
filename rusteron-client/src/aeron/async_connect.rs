//! Connecting to a media driver without blocking.
//!
//! C's connect waits for a driver, so it runs on a thread of its own, which wakes the task once. It looks for
//! cancellation each millisecond until a driver is there. A client that connects too late is dropped on a
//! thread other than the task's, because closing waits.

use std::pin::Pin;
use std::task::{self, Poll};

use crate::aeron::Aeron;
use crate::client::background::Background;
use crate::context::Context;
#[cfg(doc)]
use rusteron_core::error::ErrorKind;
use rusteron_core::error::Result;

impl Aeron {
    /// Starts connecting on a thread of its own, which ends with the outcome. Poll or await the
    /// result.
    ///
    /// Does not block, and can be called from callbacks. Dropping the [`AsyncConnect`] cancels it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the operating system refuses another thread.
    ///
    /// Corresponds to no function of C, whose `aeron_init` blocks.
    pub fn async_connect(context: Context) -> Result<AsyncConnect> {
        let connecting = Background::start("aeron-connect", |cancelled| {
            Aeron::connect_unless_cancelled(context, cancelled)
        })?;
        Ok(AsyncConnect { connecting })
    }
}

/// A client that is being connected. Made by [`Aeron::async_connect`].
///
/// Poll it until it returns the client or an error, or await it as a future. The future needs no
/// particular runtime. If it is dropped before that, the attempt is cancelled, without waiting:
/// a client that connects nevertheless is closed on another thread.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// let mut connecting = Aeron::async_connect(context)?;
/// let aeron = loop {
///     if let Some(aeron) = connecting.poll()? {
///         break aeron;
///     }
///     std::thread::yield_now(); // or go on with other work
/// };
/// assert!(!aeron.is_closed());
/// # Ok(())
/// # }
/// ```
#[must_use = "the attempt is cancelled when this is dropped"]
pub struct AsyncConnect {
    connecting: Background<Aeron>,
}

impl AsyncConnect {
    /// Returns the client if it has connected, and `None` if not yet. Does not block.
    ///
    /// # Errors
    /// The outcome is returned once, and can be an error of [`Aeron::connect`]. After that,
    /// [`ErrorKind::IllegalState`].
    pub fn poll(&mut self) -> Result<Option<Aeron>> {
        self.connecting.poll(None)
    }
}

impl Future for AsyncConnect {
    type Output = Result<Aeron>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        match self.connecting.poll(Some(context.waker())).transpose() {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }
}

rusteron_core::impl_debug!(AsyncConnect);
