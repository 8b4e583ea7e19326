//! The stream of one publisher, as a subscription sees it.

mod action;
pub(crate) mod fields;
pub(crate) mod frames;
pub(crate) mod header;
mod image;
pub(crate) mod info;

pub use action::Action;
pub use header::Header;
pub(crate) use image::SubscribedImage;
pub use image::{Image, Images};
pub use info::ImageInfo;
