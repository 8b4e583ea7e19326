//! The stream of one publisher, as a subscription sees it.

mod action;
pub(crate) mod fields;
pub(crate) mod frames;
pub(crate) mod header;
mod image;
pub(crate) mod info;
mod polls;
mod subscribed_image;

pub use action::Action;
pub use header::Header;
pub use image::{Image, Images};
pub use info::ImageInfo;
pub(crate) use subscribed_image::SubscribedImage;
