//! The polls of a subscription.

use rusteron_core::error::{PollError, Result};

use crate::subscription::image::{Action, Header, Image, Skipped};
use crate::subscription::{Messages, Subscription};

impl Subscription {
    /// Passes the messages that have arrived to the handler, at most `fragment_limit` fragments.
    /// Returns the number of fragments. Zero means that nothing has arrived.
    ///
    /// The handler gets whole messages. A message longer than
    /// [`max_payload_length`](crate::PublicationConstants::max_payload_length) arrives in several
    /// fragments. The subscription assembles such a message in its own memory, and passes it on
    /// with its last fragment. So a poll can receive fragments without calling the handler. All
    /// other messages are read in place. Each message starts at a multiple of 32 bytes in memory,
    /// assembled or not.
    ///
    /// A message whose beginning was sent before this subscription joined is dropped. So is a
    /// message that was claimed in fragments and is longer than 2³¹ − 9 bytes.
    ///
    /// A small limit, such as 10, is faster than a large one: the publisher learns earlier how far
    /// it may write. If the handler panics, the panic goes through to the caller, and the next poll
    /// continues after the message that caused it.
    ///
    /// For writing handlers, and for returning errors from them, see [Handlers](crate#handlers).
    ///
    /// # Errors
    /// [`PollError::Closed`] if the client was closed by a fatal error.
    ///
    /// Corresponds to `aeron_subscription_poll` with an `aeron_fragment_assembler_handler`.
    #[doc(alias(
        "aeron_subscription_poll",
        "aeron_fragment_assembler_handler",
        "FragmentAssembler"
    ))]
    #[inline]
    pub fn poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        self.poll_images(|mut image, limit| image.poll(&mut handler, limit), fragment_limit)
    }

    /// Passes the messages that have arrived to the handler together, as an iterator, at most
    /// `fragment_limit` fragments. Returns the number of fragments that were consumed.
    ///
    /// The handler is called once for each publisher with messages. Messages from the iterator are
    /// valid until the handler returns, so that the handler can look at several messages together.
    /// Messages that the handler leaves in the iterator come again with the next poll. The
    /// publisher learns how far it may write when the handler returns. A message that was sent in
    /// several fragments comes alone. If the handler panics, the panic goes through to the caller.
    /// The next poll continues after the messages that the handler had consumed.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// ```
    /// # use rusteron_client::{Aeron, Context};
    /// # use rusteron_media_driver::MediaDriver;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = MediaDriver::launch_embedded()?;
    /// # let mut context = Context::new()?;
    /// # context.set_dir(driver.aeron_dir())?;
    /// # let aeron = Aeron::connect(context)?;
    /// # let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
    /// # let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
    /// # while !publication.is_connected() { std::thread::yield_now(); }
    /// # assert_eq!(publication.offer_batch(&[[1_u8; 8]; 3]).accepted, 3);
    /// let mut total = 0;
    /// while total < 24 {
    ///     subscription.poll_batch(
    ///         |messages| total += messages.map(|(message, _header)| message.len()).sum::<usize>(),
    ///         10,
    ///     )?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Corresponds to no function of C.
    #[inline]
    pub fn poll_batch<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&mut Messages<'_>),
    {
        self.poll_images(|mut image, limit| image.poll_batch(&mut handler, limit), fragment_limit)
    }

    /// As [`poll`](Self::poll), but messages that were sent in several fragments arrive in
    /// fragments. [`Header::flags`] marks the first and the last fragment of a message. Each
    /// fragment starts at a multiple of 32 bytes in memory.
    ///
    /// Use it for handlers that assemble messages themselves, as a
    /// [`FragmentAssembler`](crate::FragmentAssembler) does, and for handlers that do not need
    /// whole messages.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_subscription_poll`.
    #[doc(alias("aeron_subscription_poll", "FragmentHandler"))]
    #[inline]
    pub fn poll_fragments<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let poll = |mut image: Image<'_>, limit| image.poll_fragments(&mut handler, limit);
        self.poll_images(poll, fragment_limit)
    }

    /// As [`poll`](Self::poll), with a handler that controls the position in the publisher's stream
    /// after each message.
    ///
    /// An action applies to the image of the message; the poll of other images continues. Returns
    /// the number of consumed fragments. A fragment that the handler rejected with
    /// [`Action::Abort`] is not counted. A rejected message comes again whole.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_subscription_controlled_poll` with an
    /// `aeron_controlled_fragment_assembler_handler`.
    #[doc(alias(
        "aeron_subscription_controlled_poll",
        "aeron_controlled_fragment_assembler_handler",
        "ControlledFragmentAssembler"
    ))]
    #[inline]
    pub fn controlled_poll<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        let poll = |mut image: Image<'_>, limit| image.controlled_poll(&mut handler, limit);
        self.poll_images(poll, fragment_limit)
    }

    /// As [`controlled_poll`](Self::controlled_poll), but messages that were sent in several
    /// fragments arrive in fragments.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_subscription_controlled_poll`.
    #[doc(alias("aeron_subscription_controlled_poll", "ControlledFragmentHandler"))]
    #[inline]
    pub fn controlled_poll_fragments<F>(
        &mut self,
        mut handler: F,
        fragment_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        let poll =
            |mut image: Image<'_>, limit| image.controlled_poll_fragments(&mut handler, limit);
        self.poll_images(poll, fragment_limit)
    }

    /// Passes the frames that have arrived to the handler, headers included, in one block from each
    /// publisher. Returns their total length in bytes.
    ///
    /// A block has as many whole frames as fit into `block_length_limit` bytes, up to the end of
    /// the term. Each frame starts at a multiple of 32 bytes in memory. The handler also gets the block's session id and term id. See
    /// [`Image::block_poll`](crate::Image::block_poll).
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_subscription_block_poll`.
    #[doc(alias("aeron_subscription_block_poll", "BlockHandler"))]
    pub fn block_poll<F>(
        &mut self,
        mut handler: F,
        block_length_limit: usize,
    ) -> Result<usize, PollError>
    where
        F: FnMut(&[u8], i32, i32),
    {
        let poll = |mut image: Image<'_>| image.block_poll(&mut handler, block_length_limit);
        let length = self.images().map(poll).sum();
        if length == 0 { self.nothing_polled() } else { Ok(length) }
    }

    /// Moves to the newest message of each publisher, for subscribers that want the present and not
    /// all that came before, such as the last quote. The next poll gets that message. Returns what
    /// was passed over.
    ///
    /// A message that is still arriving does not count, and the one before it is the newest. If the
    /// polls have received the beginning of a message that was sent in several fragments, that
    /// message is dropped, unless nothing newer is whole. Publishers may write on at once, as after
    /// a poll. Looks at the header of each fragment that is passed over. Neither blocks, nor
    /// allocates, nor copies.
    ///
    /// # Errors
    /// [`PollError::Closed`] if the client was closed by a fatal error.
    ///
    /// ```
    /// # use rusteron_client::{Aeron, Context};
    /// # use rusteron_media_driver::MediaDriver;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let driver = MediaDriver::launch_embedded()?;
    /// # let mut context = Context::new()?;
    /// # context.set_dir(driver.aeron_dir())?;
    /// # let aeron = Aeron::connect(context)?;
    /// # let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
    /// # let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
    /// # while !publication.is_connected() { std::thread::yield_now(); }
    /// # for price in [100_u32, 101, 102] { publication.offer(&price.to_le_bytes())?; }
    /// // 100, 101 and 102 have arrived.
    /// assert_eq!(subscription.skip_to_latest()?.messages, 2);
    /// subscription.poll(|message, _header| assert_eq!(message, 102_u32.to_le_bytes()), 10)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn skip_to_latest(&mut self) -> Result<Skipped, PollError> {
        let mut total = Skipped::default();
        for mut image in self.images() {
            let skipped = image.skip_to_latest();
            total.messages += skipped.messages;
            total.bytes += skipped.bytes;
        }
        if self.is_closed() { Err(self.closed()) } else { Ok(total) }
    }

    /// Polls one image after the other, and begins with a different image each time. Returns the
    /// total number of fragments.
    #[inline(always)]
    fn poll_images(
        &mut self,
        mut poll: impl FnMut(Image<'_>, usize) -> usize,
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        // The images are live from here until the next call: see `refresh`.
        self.refresh();
        let images = self.images.as_mut_slice();
        let count = images.len();
        if count == 0 {
            return self.nothing_polled();
        }
        let next = self.round_robin_index as usize;
        let first = if next < count { next } else { 0 };
        // The C client counts images in 32 bits.
        self.round_robin_index = first as u32 + 1;

        let mut fragments = 0;
        let mut index = first;
        while let Some(image) = images.get_mut(index) {
            fragments += poll(Image { image }, fragment_limit - fragments);
            if fragments >= fragment_limit {
                break;
            }
            index = if index + 1 == count { 0 } else { index + 1 };
            if index == first {
                break;
            }
        }
        if fragments == 0 { self.nothing_polled() } else { Ok(fragments) }
    }

    fn nothing_polled(&self) -> Result<usize, PollError> {
        if self.is_closed() { Err(self.closed()) } else { Ok(0) }
    }

    /// Returns the error of a closed subscription.
    #[cold]
    #[inline(never)]
    fn closed(&self) -> PollError {
        PollError::Closed(self.client().handle_close_cause())
    }
}
