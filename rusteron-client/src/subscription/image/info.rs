//! What the handlers of a subscription are told about an image.

use std::mem::MaybeUninit;

use rusteron_sys as sys;

use crate::constants::ImageConstants;
use crate::error::Position;

/// An image at the moment when it came or went: a copy, which may be kept.
///
/// Given to the handlers of [`SubscriptionBuilder`](crate::SubscriptionBuilder).
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
                // The conductor calls, and another thread may be polling.
                position: sys::rusteron_image_position(image),
                is_end_of_stream: sys::aeron_image_is_end_of_stream(image),
            }
        }
    }

    /// What does not change during the image's life.
    pub fn constants(&self) -> &ImageConstants {
        &self.constants
    }

    /// The id by which the media driver knows the image; what a response channel is asked for with.
    pub fn correlation_id(&self) -> i64 {
        self.constants.correlation_id
    }

    /// The number that tells this publisher from others of the same stream.
    pub fn session_id(&self) -> i32 {
        self.constants.session_id
    }

    /// Where the publisher sends from: an address and a port, or `aeron:ipc`.
    pub fn source_identity(&self) -> &str {
        &self.constants.source_identity
    }

    /// The position at which the subscription joined the stream.
    pub fn join_position(&self) -> Position {
        self.constants.join_position
    }

    /// How far the subscription had read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Whether the subscription had read everything that the publisher sent before it closed.
    pub fn is_end_of_stream(&self) -> bool {
        self.is_end_of_stream
    }
}

/// # Safety
/// The image is live; the text in what is returned lives as long as the image.
pub(crate) unsafe fn raw_constants(image: *mut sys::aeron_image_t) -> sys::aeron_image_constants_t {
    let mut constants = MaybeUninit::zeroed();
    // SAFETY: by the contract. C fails for missing arguments only, and would leave what is a valid
    // structure as it is: numbers and pointers.
    unsafe {
        sys::aeron_image_constants(image, constants.as_mut_ptr());
        constants.assume_init()
    }
}
