//! Messages of one batch poll.

use std::fmt;

use rusteron_core::threads::UsedByOtherThreads;

use crate::subscription::assembly::Assembly;
use crate::subscription::image::frame::Frame;
use crate::subscription::image::header::Header;
use crate::subscription::image::poll::{Frames, ImageFields};

/// The messages of one publisher that a batch poll has found, with their headers, in order.
///
/// Messages that the handler takes from the iterator count as received. The remaining messages come
/// again with the next poll. Messages and headers are read in place, and valid until the handler
/// returns.
///
/// Made by [`Subscription::poll_batch`](crate::Subscription::poll_batch) and
/// [`Image::poll_batch`](crate::Image::poll_batch).
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// # let publication = aeron.add_publication("aeron:ipc", 1001)?;
/// # let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
/// # while publication.offer(b"hello").is_err() { std::thread::yield_now(); }
/// let mut total = 0;
/// while total == 0 {
///     let handler = |messages: &mut rusteron_client::Messages<'_>| {
///         for (message, _header) in messages {
///             total += message.len();
///         }
///     };
///     subscription.poll_batch(handler, 10)?;
/// }
/// assert_eq!(total, 5);
/// # Ok(())
/// # }
/// ```
///
/// A message cannot be kept. This does not compile:
///
/// ```compile_fail,E0521
/// # use rusteron_client::Subscription;
/// fn keep_one(subscription: &mut Subscription) {
///     let mut kept: &[u8] = &[];
///     let _ = subscription.poll_batch(|messages| kept = messages.next().unwrap().0, 10);
/// }
/// ```
pub struct Messages<'a> {
    source: Source<'a>,
    left: usize,
}

// SAFETY: the bound never holds.
unsafe impl Send for Messages<'_> where for<'a> Self: UsedByOtherThreads<'a> {}
// SAFETY: as above.
unsafe impl Sync for Messages<'_> where for<'a> Self: UsedByOtherThreads<'a> {}

enum Source<'a> {
    /// Whole messages in the log.
    Frames(Frames<'a>),
    /// An assembled message, and the frame that ends it.
    Assembled { message: &'a [u8], header: Header<'a>, frames: Frames<'a>, last: Frame<'a> },
}

impl<'a> Iterator for Messages<'a> {
    type Item = (&'a [u8], Header<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let item = match &mut self.source {
            Source::Assembled { message, header, frames, last } => {
                frames.take(last);
                (*message, *header)
            }
            Source::Frames(frames) => loop {
                let frame = frames.peek()?;
                if frame.is_message() {
                    frames.take(&frame);
                    break (frame.payload(), frame.header());
                }
                if !frame.is_padding() {
                    // The next poll assembles the message.
                    return None;
                }
                frames.take(&frame);
            },
        };
        self.left -= 1;
        Some(item)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl fmt::Debug for Messages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("at_most", &self.left).finish_non_exhaustive()
    }
}

/// Passes the available messages to the handler: a run of whole messages or, if a longer message
/// comes first, that message as soon as all of its fragments have arrived. Returns the number of
/// consumed fragments.
///
/// # Safety
/// As for [`ImageFields::poll`].
#[inline(always)]
pub(crate) unsafe fn poll<F>(
    fields: &ImageFields,
    assembly: &mut Assembly,
    handler: &mut F,
    fragment_limit: usize,
) -> usize
where
    F: FnMut(&mut Messages<'_>),
{
    if fields.is_closed() {
        return 0;
    }
    // SAFETY: the caller guarantees that the image outlives the poll, which is the only one
    // (`ImageFields::poll`).
    let Some(mut frames) = (unsafe { Frames::new(fields) }) else { return 0 };
    let mut fragments = 0;
    while fragments < fragment_limit {
        let Some(frame) = frames.peek() else { break };
        if frame.is_message() {
            if fragments > 0 {
                // These are fragments of a message whose end is missing. The next poll continues
                // here.
                break;
            }
            let mut messages = Messages { source: Source::Frames(frames), left: fragment_limit };
            handler(&mut messages);
            return fragment_limit - messages.left;
        }
        if !frame.is_padding() {
            if let Some((message, header)) = assembly.whole(frame.payload(), &frame.header()) {
                let source = Source::Assembled { message, header, frames, last: frame };
                let mut messages = Messages { source, left: 1 };
                handler(&mut messages);
                return fragments + 1 - messages.left;
            }
            fragments += 1;
        }
        frames.take(&frame);
    }
    fragments
}
