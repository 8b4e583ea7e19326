//! A copy of what is known of an image.

use std::mem::MaybeUninit;

use rusteron_core::error::Position;
use rusteron_sys as sys;

use crate::constants::ImageConstants;

/// A snapshot of an image when it became available or unavailable. It is a copy, which may be
/// stored.
///
/// Passed to the handlers of [`SubscriptionBuilder`](crate::SubscriptionBuilder).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageInfo {
    constants: ImageConstants,
    position: Position,
    is_end_of_stream: bool,
}

impl ImageInfo {
    /// # Safety
    /// The image is live, and its log buffer is mapped.
    pub(crate) unsafe fn from_raw(image: *mut sys::aeron_image_t) -> Self {
        // SAFETY: by the contract; the text is copied.
        unsafe {
            Self {
                constants: ImageConstants::from_raw(&raw_constants(image)),
                // The conductor calls this function, and another thread may be polling.
                position: sys::rusteron_image_position(image),
                is_end_of_stream: sys::aeron_image_is_end_of_stream(image),
            }
        }
    }

    /// Returns the image's constants.
    pub fn constants(&self) -> &ImageConstants {
        &self.constants
    }

    /// Returns the id by which the media driver knows the image. A response channel is requested
    /// with this id.
    pub fn correlation_id(&self) -> i64 {
        self.constants.correlation_id
    }

    /// Returns the session id, which distinguishes this publisher from others of the same stream.
    pub fn session_id(&self) -> i32 {
        self.constants.session_id
    }

    /// Returns the source that the publisher sends from: an address and a port, or `aeron:ipc`.
    pub fn source_identity(&self) -> &str {
        &self.constants.source_identity
    }

    /// Returns the position at which the subscription joined the stream.
    pub fn join_position(&self) -> Position {
        self.constants.join_position
    }

    /// Returns the position up to which the subscription had read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns whether the publisher had closed, and the subscription had read all messages that it
    /// sent before.
    pub fn is_end_of_stream(&self) -> bool {
        self.is_end_of_stream
    }
}

/// # Safety
/// The image is live; the text in the returned structure lives as long as the image.
pub(crate) unsafe fn raw_constants(image: *mut sys::aeron_image_t) -> sys::aeron_image_constants_t {
    let mut constants = MaybeUninit::zeroed();
    // SAFETY: by the contract. C fails for missing arguments only. It would then leave the zeroed
    // structure as it is, which is valid: numbers and pointers.
    unsafe {
        sys::aeron_image_constants(image, constants.as_mut_ptr());
        constants.assume_init()
    }
}
