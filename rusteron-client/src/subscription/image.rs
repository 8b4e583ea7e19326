//! The stream of one publisher, as a subscription sees it. A message goes from `image`, whose
//! methods users call, through `poll`, which owns the position, to `frame`.

pub(crate) mod action;
pub(crate) mod frame;
pub(crate) mod header;
mod image_info;
pub(crate) mod poll;
mod skip;

pub use action::Action;
pub use header::Header;
pub use image_info::ImageInfo;
pub use skip::Skipped;

use std::borrow::Cow;
use std::fmt;
use std::slice;

use rusteron_core::error::{Error, ErrorKind, Position, Result};
use rusteron_core::ffi::{self, Fallible};
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys as sys;

use crate::client::counter::check_length;
use crate::constants::ImageConstants;
use crate::subscription::assembly::Assembly;
use crate::subscription::image::frame::Frame;
use crate::subscription::image::image_info::raw_constants;
use crate::subscription::image::poll::ImageFields;
use crate::subscription::messages::{self, Messages};

/// The stream of one publisher, as it arrives at a subscription.
///
/// An image borrows the subscription exclusively, so that the caller can poll a single image. Look
/// the image up again for each use: the client frees an unavailable image as soon as its
/// subscription has refreshed its images. To keep track of images, store their
/// [`session_id`](Self::session_id)s, or the arguments of
/// [`on_available_image`](crate::SubscriptionBuilder::on_available_image).
///
/// Polls neither block nor allocate nor make system calls, with one exception: the first long
/// messages of an image allocate the memory for their assembly.
///
/// Made by [`Subscription::images`](crate::Subscription::images) and its relatives.
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
/// # while !subscription.is_connected() { std::thread::yield_now(); }
/// // Polls each publisher by itself, at most 10 fragments at a time.
/// for mut image in subscription.images() {
///     let session_id = image.session_id();
///     image.poll(|message, _header| println!("{session_id}: {} bytes", message.len()), 10);
/// }
/// # Ok(())
/// # }
/// ```
///
/// While an image exists, its subscription can neither be used nor dropped. This does not compile:
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
#[doc(alias = "aeron_image_t")]
pub struct Image<'a> {
    pub(crate) image: &'a mut SubscribedImage,
}

// SAFETY: the bound never holds.
unsafe impl Sync for Image<'_> where for<'a> Self: SharedBetweenThreads<'a> {}

/// An image and its partly assembled message.
///
/// Its contract: the image is from the newest list of images that its subscription has announced,
/// or from a later list. Nothing is announced while the image is in use. The conductor frees an
/// image only after a list without the image has been announced. So this image is live.
/// [`Subscription`] fulfils the contract by reloading its images before it uses any image, and by
/// being borrowed exclusively meanwhile.
///
/// [`Subscription`]: crate::Subscription
pub(crate) struct SubscribedImage {
    pub(crate) fields: ImageFields,
    pub(crate) assembly: Assembly,
}

impl SubscribedImage {
    /// # Safety
    /// The contract of the type holds for `fields`.
    pub(crate) unsafe fn new(fields: ImageFields, assembly: Assembly) -> Self {
        Self { fields, assembly }
    }
}

impl fmt::Debug for SubscribedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("correlation_id", &self.fields.raw.correlation_id)
            .field("session_id", &self.fields.raw.session_id)
            .finish_non_exhaustive()
    }
}

/// The images of a subscription, in the order in which they became available.
///
/// Made by [`Subscription::images`](crate::Subscription::images).
#[derive(Debug)]
pub struct Images<'a> {
    images: slice::IterMut<'a, SubscribedImage>,
}

// SAFETY: the bound never holds.
unsafe impl Sync for Images<'_> where for<'a> Self: SharedBetweenThreads<'a> {}

impl Image<'_> {
    /// The greatest length of the reason for a [rejection](Self::reject), in bytes. Aeron's
    /// protocol allows 1,023 bytes, but Aeron's C driver overwrites its own stack before that.
    pub const MAX_REASON_LENGTH: usize = 1000;

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
        let SubscribedImage { fields, assembly } = &mut *self.image;
        // SAFETY: as in `poll`; handlers cannot retain their arguments.
        unsafe { messages::poll(fields, assembly, &mut handler, fragment_limit) }
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

    /// Moves the position forward, to skip messages that have arrived. The position of a closed
    /// image stays.
    ///
    /// Takes time in proportion to the number of skipped fragments.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] unless the position is the end of a fragment that has
    /// arrived, in the current term and not behind the current position. (Aeron only checks the
    /// alignment and that range. A poll from a position in the middle of a message would then read
    /// payload as a header.)
    ///
    /// Corresponds to Aeron's `Image.position(long)`, which the C client has no function for.
    pub fn set_position(&mut self, position: Position) -> Result<()> {
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.set_position(position) }
    }

    /// Moves the position to where the newest message begins that has arrived whole: the next poll
    /// gets that one. As [`Subscription::skip_to_latest`](crate::Subscription::skip_to_latest), for
    /// this image.
    pub fn skip_to_latest(&mut self) -> Skipped {
        // SAFETY: as in `poll`.
        unsafe { self.image.fields.skip_to_latest() }
    }

    /// Returns the position up to which this subscription has read, in bytes since the beginning of
    /// the stream.
    ///
    /// Corresponds to `aeron_image_position`.
    #[doc(alias = "aeron_image_position")]
    pub fn position(&self) -> Position {
        self.image.fields.position()
    }

    /// Returns whether the image has become unavailable, or a fatal error has closed the client.
    ///
    /// Corresponds to `aeron_image_is_closed`.
    #[doc(alias = "aeron_image_is_closed")]
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.image.fields.is_closed()
    }

    /// Returns whether the publisher has closed, and all messages that it sent before have been
    /// read.
    ///
    /// Corresponds to `aeron_image_is_end_of_stream`.
    #[doc(alias = "aeron_image_is_end_of_stream")]
    pub fn is_end_of_stream(&self) -> bool {
        self.end_of_stream_position().is_some_and(|end| self.position() >= end)
    }

    /// Returns the position at which the stream ends, if the publisher has closed it; `None` until
    /// then.
    ///
    /// Corresponds to `aeron_image_end_of_stream_position`, which returns the greatest position until
    /// then.
    #[doc(alias = "aeron_image_end_of_stream_position")]
    pub fn end_of_stream_position(&self) -> Option<Position> {
        // SAFETY: the image is live, as in `poll`, and so it is in the functions below.
        let end = unsafe { sys::aeron_image_end_of_stream_position(self.as_ptr()) };
        Some(end).filter(|&end| end != Position::MAX)
    }

    /// Returns the number of transports over which the image is currently received, such as the
    /// destinations of a multi-destination subscription. Returns zero for a closed image, and over
    /// IPC.
    ///
    /// Corresponds to `aeron_image_active_transport_count`.
    #[doc(alias = "aeron_image_active_transport_count")]
    pub fn active_transport_count(&self) -> usize {
        // SAFETY: as in `end_of_stream_position`. It is a count, and fails for a missing image only.
        unsafe { sys::aeron_image_active_transport_count(self.as_ptr()) }.max(0) as usize
    }

    /// Returns whether the publisher has revoked its publication. The image then ends at once, even
    /// if messages have not been read.
    ///
    /// Corresponds to `aeron_image_is_publication_revoked`.
    #[doc(alias = "aeron_image_is_publication_revoked")]
    pub fn is_publication_revoked(&self) -> bool {
        // SAFETY: as in `end_of_stream_position`.
        unsafe { sys::aeron_image_is_publication_revoked(self.as_ptr()) }
    }

    /// Rejects the stream: tells the media driver, and through it the publisher. The image becomes
    /// unavailable, and for a while its publisher cannot come back.
    ///
    /// Does not wait until the image is unavailable.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the reason has more than
    ///   [`MAX_REASON_LENGTH`](Self::MAX_REASON_LENGTH) bytes, or a NUL byte;
    /// - [`ErrorKind::DriverBufferFull`]: the media driver is behind with its commands; try again;
    /// - [`ErrorKind::ClientClosed`]: a fatal error has ended the client.
    ///
    /// Corresponds to `aeron_image_reject`.
    #[doc(alias = "aeron_image_reject")]
    pub fn reject(&mut self, reason: &str) -> Result<()> {
        check_length("reason", reason.len(), Self::MAX_REASON_LENGTH)?;
        let reason = ffi::c_string("reason", reason)?;
        // SAFETY: as in `end_of_stream_position`; C copies the reason.
        let rejected = unsafe { sys::aeron_image_reject(self.as_ptr(), reason.as_ptr()) };
        rejected.into_result().map(drop).map_err(|error| match error.code() {
            // C has reported this only to the error handler.
            0 => {
                Error::new(ErrorKind::DriverBufferFull, "the media driver's command buffer is full")
            }
            _ => error,
        })
    }

    /// Returns the image's constants. Allocates; the methods below do not.
    ///
    /// Corresponds to `aeron_image_constants`.
    #[doc(alias = "aeron_image_constants")]
    pub fn constants(&self) -> ImageConstants {
        // SAFETY: filled in just now; its text lives as long as the image.
        unsafe { ImageConstants::from_raw(&raw_constants(self.as_ptr())) }
    }

    /// Returns the session id, which distinguishes this publisher from others of the same stream.
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.image.fields.raw.session_id
    }

    /// Returns the id by which the media driver knows the image. A response channel is requested
    /// with this id.
    #[inline]
    pub fn correlation_id(&self) -> i64 {
        self.image.fields.raw.correlation_id
    }

    /// Returns the source that the publisher sends from: an address and a port, or `aeron:ipc`.
    pub fn source_identity(&self) -> Cow<'_, str> {
        // SAFETY: the text lives as long as the image.
        unsafe { ffi::lossy(self.raw_constants().source_identity) }
    }

    /// Returns the position at which this subscription joined the stream.
    pub fn join_position(&self) -> Position {
        self.raw_constants().join_position
    }

    /// Returns the id of the stream's first term.
    #[inline]
    pub fn initial_term_id(&self) -> i32 {
        self.image.fields.raw.initial_term_id
    }

    /// Returns the length of a term in bytes.
    pub fn term_buffer_length(&self) -> usize {
        self.raw_constants().term_buffer_length
    }

    /// Returns the greatest length of the publisher's datagrams, in bytes.
    pub fn mtu_length(&self) -> usize {
        self.raw_constants().mtu_length
    }

    /// Returns the id of the position counter.
    pub fn subscriber_position_id(&self) -> i32 {
        self.raw_constants().subscriber_position_id
    }

    /// Returns the C image, for the functions that have no safe form.
    ///
    /// It is live as long as `self`. Calling C's functions on it needs the same exclusiveness as
    /// `&mut self`.
    pub fn as_ptr(&self) -> *mut sys::aeron_image_t {
        self.image.fields.raw.image
    }

    fn raw_constants(&self) -> sys::aeron_image_constants_t {
        // SAFETY: as in `end_of_stream_position`.
        unsafe { raw_constants(self.as_ptr()) }
    }
}

rusteron_core::impl_debug!(
    Image<'_>: correlation_id(), session_id(), source_identity(), position(), is_closed()
);

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
