//! One publisher's stream as a subscription sees it.

use std::borrow::Cow;
use std::fmt;
use std::slice;

use rusteron_sys as sys;

use crate::constants::ImageConstants;
use crate::error::{Error, ErrorKind, Position, Result};
use crate::ffi::{self, Fallible};
use crate::subscription::assembly::Assembly;
use crate::subscription::image::fields::ImageFields;
use crate::subscription::image::frames::{Frame, Frames};
use crate::subscription::image::info::raw_constants;
use crate::subscription::image::{Action, Header};
use crate::subscription::messages::{self, Messages};

/// The stream of one publisher, as it arrives at a subscription.
///
/// It borrows the subscription exclusively, so that it can be polled by itself, and is looked up
/// again for the next time: the client frees an image that has gone as soon as its subscription has
/// looked at its images again. Whoever wants to keep track of images keeps their
/// [`session_id`](Self::session_id)s, or what
/// [`on_available_image`](crate::SubscriptionBuilder::on_available_image) is given.
///
/// Polls neither block nor allocate nor make system calls, except that the first long messages of an
/// image allocate the memory they are put together in.
///
/// Made by [`Subscription::images`](crate::Subscription::images) and its relatives.
///
/// While an image is there, its subscription cannot be used, nor dropped:
///
/// ```compile_fail,E0499
/// # use rusteron_client::Subscription;
/// fn poll_both(subscription: &mut Subscription) {
///     let mut image = subscription.image_at_index(0).unwrap();
///     let _ = subscription.poll(|_, _| {}, 10);
///     image.poll(|_, _| {}, 10);
/// }
/// ```
///
/// ```compile_fail,E0505
/// # use rusteron_client::Subscription;
/// fn outlive(mut subscription: Subscription) {
///     let image = subscription.image_at_index(0);
///     drop(subscription);
///     drop(image);
/// }
/// ```
pub struct Image<'a> {
    image: &'a mut SubscribedImage,
}

/// The images of a subscription, in the order in which they came.
///
/// Made by [`Subscription::images`](crate::Subscription::images).
#[derive(Debug)]
pub struct Images<'a> {
    images: slice::IterMut<'a, SubscribedImage>,
}

/// An image and what belongs to it on this side.
///
/// Its contract: it is of the newest list of images that its subscription has announced, or of one
/// after, and nothing is announced while it is in use. The conductor frees an image only after a
/// list without it has been announced, so that this one is live. [`Subscription`] keeps it by
/// reloading its images before it uses any, and by being borrowed exclusively meanwhile.
///
/// [`Subscription`]: crate::Subscription
pub(crate) struct SubscribedImage {
    fields: ImageFields,
    assembly: Assembly,
}

impl Image<'_> {
    /// Passes the messages that have arrived, `fragment_limit` fragments of them at the most, to the
    /// handler, and returns how many fragments there were.
    ///
    /// As [`Subscription::poll`](crate::Subscription::poll), for this image.
    ///
    /// Corresponds to `aeron_image_poll` with an `aeron_image_fragment_assembler_handler`.
    #[inline]
    pub fn poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        // SAFETY: the subscription is borrowed, so that the image is live and polled here only.
        unsafe { self.image.poll(&mut handler, fragment_limit) }
    }

    /// Passes the messages that have arrived to the handler all at once, `fragment_limit` at the most,
    /// and returns how many fragments were taken.
    ///
    /// As [`Subscription::poll_batch`](crate::Subscription::poll_batch), for this image.
    ///
    /// Corresponds to no function of C.
    #[inline]
    pub fn poll_batch<F>(&mut self, mut handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&mut Messages<'_>),
    {
        // SAFETY: as in `poll`.
        unsafe { self.image.poll_batch(&mut handler, fragment_limit) }
    }

    /// As [`poll`](Self::poll), but long messages arrive in fragments.
    ///
    /// Corresponds to `aeron_image_poll`.
    #[inline]
    pub fn poll_fragments<F>(&mut self, mut handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        // SAFETY: as in `poll`.
        unsafe { self.image.poll_fragments(&mut handler, fragment_limit) }
    }

    /// As [`poll`](Self::poll), for fragments that begin before `limit_position`.
    ///
    /// Corresponds to `aeron_image_bounded_poll` with an `aeron_image_fragment_assembler_handler`.
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

    /// As [`poll`](Self::poll), with a handler that decides about the position after each message.
    ///
    /// Returns how many fragments were consumed; one that was refused with [`Action::Abort`] is not
    /// among them.
    ///
    /// Corresponds to `aeron_image_controlled_poll` with an
    /// `aeron_image_controlled_fragment_assembler_handler`.
    #[inline]
    pub fn controlled_poll<F>(&mut self, handler: F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        self.bounded_controlled_poll(handler, Position::MAX, fragment_limit)
    }

    /// As [`controlled_poll`](Self::controlled_poll), but long messages arrive in fragments.
    ///
    /// Corresponds to `aeron_image_controlled_poll`.
    #[inline]
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
    #[inline]
    pub fn bounded_controlled_poll<F>(
        &mut self,
        mut handler: F,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        // SAFETY: as in `poll`.
        unsafe { self.image.controlled_poll(&mut handler, limit_position, fragment_limit) }
    }

    /// As [`bounded_controlled_poll`](Self::bounded_controlled_poll), but long messages arrive in
    /// fragments.
    ///
    /// Corresponds to `aeron_image_bounded_controlled_poll`.
    #[inline]
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
    /// Returns the position after the last message that was passed whole, with which
    /// [`set_position`](Self::set_position) skips what was seen, and from which another peek goes
    /// on. Long messages arrive in fragments. [`Action::Abort`] ends the peek before what was just
    /// given, [`Action::Break`] after it; the others go on. A closed image shows nothing.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if `initial_position` is not the image's position, nor at the
    /// end of a later fragment in the same term that has arrived.
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
    /// The handler is also given the session id and the term id. Padding at the end of a term makes
    /// a block of its own, however long. Returns the length of the block; zero means that nothing
    /// was there, or that the next frame is longer than the limit.
    ///
    /// Corresponds to `aeron_image_block_poll`.
    #[inline]
    pub fn block_poll<F>(&mut self, mut handler: F, block_length_limit: usize) -> usize
    where
        F: FnMut(&[u8], i32, i32),
    {
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.block_poll(&mut handler, block_length_limit) }
    }

    /// Moves the position forward, to skip what has arrived. A closed image's position stays.
    ///
    /// Takes time in proportion to the number of fragments that are skipped.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if the position is not at the end of a fragment that has
    /// arrived, in the current term and not behind the current position. (Aeron's own check is that
    /// it is aligned and in that range; a position in the middle of a message would then be read as
    /// a header.)
    ///
    /// Corresponds to Aeron's `Image.position(long)`, which the C client has no function for.
    pub fn set_position(&mut self, position: Position) -> Result<()> {
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.set_position(position) }
    }

    /// How far this subscription has read, in bytes since the beginning of the stream.
    ///
    /// Corresponds to `aeron_image_position`.
    pub fn position(&self) -> Position {
        self.image.fields.position()
    }

    /// Whether the image has gone, or the client was closed by a fatal error.
    ///
    /// Corresponds to `aeron_image_is_closed`.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.image.fields.is_closed()
    }

    /// Whether everything that the publisher has sent before it closed has been read.
    ///
    /// Corresponds to `aeron_image_is_end_of_stream`.
    pub fn is_end_of_stream(&self) -> bool {
        self.end_of_stream_position().is_some_and(|end| self.position() >= end)
    }

    /// The position at which the stream ends, if the publisher has closed it; `None` until then.
    ///
    /// Corresponds to `aeron_image_end_of_stream_position`, which returns the greatest position until
    /// then.
    pub fn end_of_stream_position(&self) -> Option<Position> {
        // SAFETY: the image is live, as in `poll`, and so it is in the functions below.
        let end = unsafe { sys::aeron_image_end_of_stream_position(self.as_ptr()) };
        Some(end).filter(|&end| end != Position::MAX)
    }

    /// How many transports, such as the destinations of a multi-destination subscription, the image
    /// is currently received over. Zero for a closed one, and over IPC.
    ///
    /// Corresponds to `aeron_image_active_transport_count`.
    pub fn active_transport_count(&self) -> usize {
        // SAFETY: as in `end_of_stream_position`. It is a count, and fails for a missing image only.
        unsafe { sys::aeron_image_active_transport_count(self.as_ptr()) }.max(0) as usize
    }

    /// Whether the publisher has revoked its publication: it ends at once, read or not.
    ///
    /// Corresponds to `aeron_image_is_publication_revoked`.
    pub fn is_publication_revoked(&self) -> bool {
        // SAFETY: as in `end_of_stream_position`.
        unsafe { sys::aeron_image_is_publication_revoked(self.as_ptr()) }
    }

    /// Tells the media driver, and through it the publisher, that this stream is not wanted. The
    /// image goes, and for a while its publisher cannot come back.
    ///
    /// Does not wait until that has happened.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the reason has more than 1,023 bytes, or a NUL byte;
    /// - [`ErrorKind::DriverBufferFull`]: the media driver is behind with its commands; the call can
    ///   be repeated;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client.
    ///
    /// Corresponds to `aeron_image_reject`.
    pub fn reject(&mut self, reason: &str) -> Result<()> {
        const MAX: usize = 1023;
        if reason.len() > MAX {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("reason: {} bytes; the maximum is {MAX}", reason.len()),
            ));
        }
        let reason = ffi::c_string("reason", reason)?;
        // SAFETY: as in `end_of_stream_position`; C copies the reason.
        let rejected = unsafe { sys::aeron_image_reject(self.as_ptr(), reason.as_ptr()) };
        rejected.into_result().map(drop).map_err(|error| match error.code() {
            // C has told the error handler, and no more.
            0 => {
                Error::new(ErrorKind::DriverBufferFull, "the media driver's command buffer is full")
            }
            _ => error,
        })
    }

    /// What does not change during the image's life. Allocates; the methods below do not.
    ///
    /// Corresponds to `aeron_image_constants`.
    pub fn constants(&self) -> ImageConstants {
        // SAFETY: filled in just now; its text lives as long as the image.
        unsafe { ImageConstants::from_raw(&raw_constants(self.as_ptr())) }
    }

    /// The number that tells this publisher from others of the same stream.
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.image.fields.session_id()
    }

    /// The id by which the media driver knows the image; what a response channel is asked for with.
    #[inline]
    pub fn correlation_id(&self) -> i64 {
        self.image.fields.correlation_id()
    }

    /// Where the publisher sends from: an address and a port, or `aeron:ipc`.
    pub fn source_identity(&self) -> Cow<'_, str> {
        // SAFETY: the text lives as long as the image.
        unsafe { ffi::lossy(self.raw_constants().source_identity) }
    }

    /// The position at which this subscription joined the stream.
    pub fn join_position(&self) -> Position {
        self.raw_constants().join_position
    }

    /// The id of the stream's first term.
    #[inline]
    pub fn initial_term_id(&self) -> i32 {
        self.image.fields.initial_term_id()
    }

    /// The length of a term in bytes.
    pub fn term_buffer_length(&self) -> usize {
        self.raw_constants().term_buffer_length
    }

    /// The greatest length of a datagram of the publisher's, in bytes.
    pub fn mtu_length(&self) -> usize {
        self.raw_constants().mtu_length
    }

    /// The id of the counter that holds the position.
    pub fn subscriber_position_id(&self) -> i32 {
        self.raw_constants().subscriber_position_id
    }

    /// The C image, for the functions that have no safe form.
    ///
    /// It is live as long as `self`. Calling C's functions on it needs the same exclusiveness as
    /// `&mut self`.
    pub fn as_ptr(&self) -> *mut sys::aeron_image_t {
        self.image.fields.as_ptr()
    }

    fn raw_constants(&self) -> sys::aeron_image_constants_t {
        // SAFETY: as in `end_of_stream_position`.
        unsafe { raw_constants(self.as_ptr()) }
    }
}

impl fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("correlation_id", &self.correlation_id())
            .field("session_id", &self.session_id())
            .field("source_identity", &self.source_identity())
            .field("position", &self.position())
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

impl<'a> Images<'a> {
    pub(crate) fn new(images: &'a mut [SubscribedImage]) -> Self {
        Self { images: images.iter_mut() }
    }
}

impl<'a> Iterator for Images<'a> {
    type Item = Image<'a>;

    fn next(&mut self) -> Option<Image<'a>> {
        self.images.next().map(|image| Image { image })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.images.size_hint()
    }
}

impl ExactSizeIterator for Images<'_> {}

impl SubscribedImage {
    /// # Safety
    /// The contract of the type holds for `fields`.
    pub(crate) unsafe fn new(fields: ImageFields, assembly: Assembly) -> Self {
        Self { fields, assembly }
    }

    pub(crate) fn fields(&self) -> &ImageFields {
        &self.fields
    }

    pub(crate) fn into_assembly(self) -> Assembly {
        self.assembly
    }

    /// Whole messages, with [`ImageFields::poll`].
    ///
    /// # Safety
    /// As for [`ImageFields::poll`].
    #[inline(always)]
    pub(crate) unsafe fn poll<F>(&mut self, handler: &mut F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let Self { fields, assembly } = self;
        let give = |frame: Frame<'_>| frame.give_message(assembly, handler);
        // SAFETY: handed on to the caller.
        unsafe { fields.poll(give, fragment_limit) }
    }

    /// Whole messages at once, and how many fragments were taken.
    ///
    /// # Safety
    /// As for [`ImageFields::poll`].
    #[inline(always)]
    pub(crate) unsafe fn poll_batch<F>(&mut self, handler: &mut F, fragment_limit: usize) -> usize
    where
        F: FnMut(&mut Messages<'_>),
    {
        let Self { fields, assembly } = self;
        if fields.is_closed() {
            return 0;
        }
        // SAFETY: handed on to the caller; handlers keep nothing of what they are given.
        let Some(frames) = (unsafe { Frames::new(fields) }) else { return 0 };
        messages::poll(frames, assembly, handler, fragment_limit)
    }

    /// Fragments, with [`ImageFields::poll`].
    ///
    /// # Safety
    /// As for [`ImageFields::poll`].
    #[inline(always)]
    pub(crate) unsafe fn poll_fragments<F>(&self, handler: &mut F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let give = |frame: Frame<'_>| frame.give_fragment(handler);
        // SAFETY: handed on to the caller.
        unsafe { self.fields.poll(give, fragment_limit) }
    }

    /// Whole messages, with [`ImageFields::controlled_poll`].
    ///
    /// # Safety
    /// As for [`ImageFields::poll`].
    #[inline(always)]
    pub(crate) unsafe fn controlled_poll<F>(
        &mut self,
        handler: &mut F,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        let Self { fields, assembly } = self;
        let mut whole = |fragment: &[u8], header: &Header<'_>| {
            assembly.controlled_poll(fragment, header, handler)
        };
        // SAFETY: handed on to the caller.
        unsafe { fields.controlled_poll(&mut whole, limit_position, fragment_limit) }
    }
}

impl fmt::Debug for SubscribedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("correlation_id", &self.fields.correlation_id())
            .field("session_id", &self.fields.session_id())
            .finish_non_exhaustive()
    }
}
