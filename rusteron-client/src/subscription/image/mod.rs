//! The stream of one publisher, as a subscription sees it.

pub(crate) mod fields;
pub(crate) mod frames;
pub(crate) mod header;
mod image;
mod polls;

pub use header::Header;
pub(crate) use image::SubscribedImage;
pub use image::{Image, ImageInfo, Images};
pub use polls::Action;
