//! Connecting to a media driver without blocking.

use std::pin::Pin;
use std::task::{self, Poll};

use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::wake;

use crate::aeron::Aeron;
use crate::client::Background;
use crate::context::Context;

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
        Background::connect(|is_cancelled| Self::connect_unless_cancelled(context, is_cancelled))
            .map(AsyncConnect)
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
pub struct AsyncConnect(Background<Result<Aeron>>);

impl AsyncConnect {
    /// Returns the client if it has connected, and `None` if not yet. Does not block.
    ///
    /// # Errors
    /// The outcome is returned once, and can be an error of [`Aeron::connect`]. After that,
    /// [`ErrorKind::IllegalState`].
    pub fn poll(&mut self) -> Result<Option<Aeron>> {
        match self.0.poll()? {
            None => Ok(None),
            Some(Ok(outcome)) => outcome.map(Some),
            // Only a logger of the application can panic.
            Some(Err(_)) => Err(Error::new(ErrorKind::Other, "panicked in the background")),
        }
    }
}

impl Future for AsyncConnect {
    type Output = Result<Aeron>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        wake::outcome(Self::poll(self.get_mut()), context)
    }
}

rusteron_core::impl_debug!(AsyncConnect);
