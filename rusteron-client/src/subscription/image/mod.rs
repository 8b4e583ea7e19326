//! The stream of one publisher, as a subscription sees it. A message goes from `image`, whose
//! methods users call, through `poll`, which owns the position, to `frame`.

pub(crate) mod action;
pub(crate) mod frame;
pub(crate) mod header;
mod image;
mod image_info;
pub(crate) mod poll;

pub use action::Action;
pub use header::Header;
pub(crate) use image::SubscribedImage;
pub use image::{Image, Images};
pub use image_info::ImageInfo;
