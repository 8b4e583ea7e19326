//! The polls of a single image, and the actions of controlled polls.

use crate::subscription::image::frames::Frame;
use crate::subscription::image::{Header, Image, SubscribedImage};
use crate::subscription::messages::{self, Messages};
#[cfg(doc)]
use rusteron_core::error::ErrorKind;
use rusteron_core::error::{Position, Result};

/// The action that a handler of a controlled poll requests for the stream's position, after a
/// message or fragment.
///
/// ```
/// use rusteron_client::{Action, PollError, Subscription};
///
/// /// Passes on messages until the target is full. The rejected message comes again.
/// fn fill(subscription: &mut Subscription, target: &mut Vec<Vec<u8>>) -> Result<usize, PollError> {
///     let handler = |message: &[u8], _: &rusteron_client::Header<'_>| {
///         if target.len() == 100 {
///             return Action::Abort;
///         }
///         target.push(message.to_vec());
///         Action::Continue
///     };
///     subscription.controlled_poll(handler, 10)
/// }
/// ```
///
/// Corresponds to `aeron_controlled_fragment_handler_action_t`.
#[doc(alias("aeron_controlled_fragment_handler_action_t", "ControlledFragmentHandler"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// End the poll of this image. The current message or fragment counts as not received and comes
    /// again.
    Abort,
    /// End the poll of this image after the current message or fragment.
    Break,
    /// Move the position past the current message or fragment at once, and continue the poll. The
    /// publisher, and other readers of the position, see the move at once.
    Commit,
    /// Continue the poll. The position moves when the poll ends.
    Continue,
}

impl Image<'_> {
    /// Passes the messages that have arrived to the handler, at most `fragment_limit` fragments.
    /// Returns the number of fragments.
    ///
    /// As [`Subscription::poll`](crate::Subscription::poll), for this image.
    ///
    /// Corresponds to `aeron_image_poll` with an `aeron_image_fragment_assembler_handler`.
    #[doc(alias(
        "aeron_image_poll",
        "aeron_image_fragment_assembler_handler",
        "ImageFragmentAssembler"
    ))]
    #[inline(always)]
    pub fn poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let SubscribedImage { fields, assembly } = &mut *self.image;
        let give = |frame: Frame<'_>| frame.give_message(assembly, &mut handler);
        // SAFETY: the subscription is borrowed, so that the image is live and polled here only.
        unsafe { fields.poll(give, fragment_limit) }
    }

    /// Passes the messages that have arrived to the handler together, at most `fragment_limit`
    /// fragments. Returns the number of fragments that were consumed.
    ///
    /// As [`Subscription::poll_batch`](crate::Subscription::poll_batch), for this image.
    ///
    /// Corresponds to no function of C.
    #[inline(always)]
    pub fn poll_batch<F>(&mut self, mut handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&mut Messages<'_>),
    {
        // SAFETY: as in `poll`; handlers cannot retain their arguments.
        unsafe { messages::poll(self.image, &mut handler, fragment_limit) }
    }

    /// As [`poll`](Self::poll), but long messages arrive in fragments.
    ///
    /// Corresponds to `aeron_image_poll`.
    #[doc(alias = "aeron_image_poll")]
    #[inline(always)]
    pub fn poll_fragments<F>(&mut self, mut handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let give = |frame: Frame<'_>| frame.give_fragment(&mut handler);
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.poll(give, fragment_limit) }
    }

    /// As [`poll`](Self::poll), for fragments that begin before `limit_position`.
    ///
    /// Corresponds to `aeron_image_bounded_poll` with an `aeron_image_fragment_assembler_handler`.
    #[doc(alias("aeron_image_bounded_poll", "aeron_image_fragment_assembler_handler"))]
    #[inline]
    pub fn bounded_poll<F>(
        &mut self,
        mut handler: F,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let SubscribedImage { fields, assembly } = &mut *self.image;
        let give = |frame: Frame<'_>| frame.give_message(assembly, &mut handler);
        // SAFETY: as in `poll`.
        unsafe { fields.bounded_poll(give, limit_position, fragment_limit) }
    }

    /// As [`poll_fragments`](Self::poll_fragments), for fragments that begin before
    /// `limit_position`.
    ///
    /// Corresponds to `aeron_image_bounded_poll`.
    #[doc(alias = "aeron_image_bounded_poll")]
    #[inline]
    pub fn bounded_poll_fragments<F>(
        &mut self,
        mut handler: F,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let give = |frame: Frame<'_>| frame.give_fragment(&mut handler);
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.bounded_poll(give, limit_position, fragment_limit) }
    }

    /// As [`poll`](Self::poll), with a handler that controls the position after each message.
    ///
    /// Returns the number of consumed fragments. A fragment that the handler rejected with
    /// [`Action::Abort`] is not counted.
    ///
    /// Corresponds to `aeron_image_controlled_poll` with an
    /// `aeron_image_controlled_fragment_assembler_handler`.
    #[doc(alias(
        "aeron_image_controlled_poll",
        "aeron_image_controlled_fragment_assembler_handler",
        "ImageControlledFragmentAssembler"
    ))]
    #[inline(always)]
    pub fn controlled_poll<F>(&mut self, handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        self.bounded_controlled_poll(handler, Position::MAX, fragment_limit)
    }

    /// As [`controlled_poll`](Self::controlled_poll), but long messages arrive in fragments.
    ///
    /// Corresponds to `aeron_image_controlled_poll`.
    #[doc(alias = "aeron_image_controlled_poll")]
    #[inline(always)]
    pub fn controlled_poll_fragments<F>(&mut self, handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        self.bounded_controlled_poll_fragments(handler, Position::MAX, fragment_limit)
    }

    /// As [`controlled_poll`](Self::controlled_poll), for fragments that begin before
    /// `limit_position`.
    ///
    /// Corresponds to `aeron_image_bounded_controlled_poll` with an
    /// `aeron_image_controlled_fragment_assembler_handler`.
    #[doc(alias(
        "aeron_image_bounded_controlled_poll",
        "aeron_image_controlled_fragment_assembler_handler"
    ))]
    #[inline(always)]
    pub fn bounded_controlled_poll<F>(
        &mut self,
        mut handler: F,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        let SubscribedImage { fields, assembly } = &mut *self.image;
        let mut whole = |fragment: &[u8], header: &Header<'_>| {
            assembly.controlled_poll(fragment, header, &mut handler)
        };
        // SAFETY: as in `poll`.
        unsafe { fields.controlled_poll(&mut whole, limit_position, fragment_limit) }
    }

    /// As [`bounded_controlled_poll`](Self::bounded_controlled_poll), but long messages arrive in
    /// fragments.
    ///
    /// Corresponds to `aeron_image_bounded_controlled_poll`.
    #[doc(alias = "aeron_image_bounded_controlled_poll")]
    #[inline(always)]
    pub fn bounded_controlled_poll_fragments<F>(
        &mut self,
        mut handler: F,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.controlled_poll(&mut handler, limit_position, fragment_limit) }
    }

    /// Passes the fragments from `initial_position` up to `limit_position`, or to the end of the
    /// term, to the handler, without moving the image's position.
    ///
    /// Returns the position after the last message that was passed whole. Pass this position to
    /// [`set_position`](Self::set_position) to skip the seen messages, or to another peek to
    /// continue. Long messages arrive in fragments. [`Action::Abort`] ends the peek before the
    /// current fragment, and [`Action::Break`] ends it after the current fragment. The other
    /// actions continue the peek. A closed image has no fragments to peek at.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if `initial_position` is neither the image's position, nor
    /// the end of a later fragment that has arrived in the same term.
    ///
    /// Corresponds to Aeron's `Image.controlledPeek`, which the C client has no function for.
    pub fn controlled_peek<F>(
        &mut self,
        initial_position: Position,
        mut handler: F,
        limit_position: Position,
    ) -> Result<Position>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.controlled_peek(initial_position, &mut handler, limit_position) }
    }

    /// Passes the frames that have arrived to the handler in one piece, headers included: as many
    /// whole frames as fit into `block_length_limit` bytes, up to the end of the term.
    ///
    /// The handler also gets the session id and the term id. Padding at the end of a term is a
    /// separate block, however long. Returns the length of the block. Zero means that nothing has
    /// arrived, or that the next frame is longer than the limit. It also means that what the
    /// handler got may have been overwritten while it read: the driver has timed out this client,
    /// for which the publisher waits no more.
    ///
    /// Corresponds to `aeron_image_block_poll`.
    #[doc(alias("aeron_image_block_poll", "BlockHandler"))]
    #[inline]
    pub fn block_poll<F>(&mut self, mut handler: F, block_length_limit: usize) -> usize
    where
        F: FnMut(&[u8], i32, i32),
    {
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.block_poll(&mut handler, block_length_limit) }
    }
}
