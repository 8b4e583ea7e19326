//! An image in the list of its subscription.

use std::fmt;

use crate::subscription::assembly::Assembly;
use crate::subscription::image::fields::ImageFields;
use crate::subscription::image::frames::{Frame, Frames};
use crate::subscription::image::{Action, Header};
use crate::subscription::messages::{self, Messages};
use rusteron_core::error::Position;

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
    pub(super) fields: ImageFields,
    pub(super) assembly: Assembly,
}

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

    /// Passes whole messages to the handler, with [`ImageFields::poll`].
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
        // SAFETY: the caller guarantees that the image outlives the poll, which is the only one
        // (`ImageFields::poll`).
        unsafe { fields.poll(give, fragment_limit) }
    }

    /// Passes whole messages to the handler together. Returns the number of consumed fragments.
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
        // SAFETY: the caller guarantees that the image outlives the poll, which is the only one
        // (`ImageFields::poll`); handlers cannot retain their arguments.
        let Some(frames) = (unsafe { Frames::new(fields) }) else { return 0 };
        messages::poll(frames, assembly, handler, fragment_limit)
    }

    /// Passes fragments to the handler, with [`ImageFields::poll`].
    ///
    /// # Safety
    /// As for [`ImageFields::poll`].
    #[inline(always)]
    pub(crate) unsafe fn poll_fragments<F>(&self, handler: &mut F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let give = |frame: Frame<'_>| frame.give_fragment(handler);
        // SAFETY: the caller guarantees that the image outlives the poll, which is the only one
        // (`ImageFields::poll`).
        unsafe { self.fields.poll(give, fragment_limit) }
    }

    /// Passes whole messages to the handler, with [`ImageFields::controlled_poll`].
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
        // SAFETY: the caller guarantees that the image outlives the poll, which is the only one
        // (`ImageFields::poll`).
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
