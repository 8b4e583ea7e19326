//! Aeron's cluster client for Rust.

mod codec;

/// The parts of this crate that its tests and fuzz targets need. They may change in every release.
#[doc(hidden)]
pub mod __private {
    pub use crate::codec::*;
}
