//! Raw declarations of Aeron's C client, media driver and archive client, and the library itself.
//!
//! Aeron is compiled from source into one static library by this crate's build script; nothing but a
//! C compiler is needed. Programs use the safe crates `rusteron-client`, `rusteron-media-driver` and
//! `rusteron-archive`; this crate is for those who write their own.
//!
//! - the root: the client (`aeronc.h`), counters, and the `rusteron_*` functions of the shim, which
//!   hand out the addresses of fields that the message path works on;
//! - `driver`: the media driver (`aeronmd.h`), with the feature `driver`;
//! - `archive`: the archive client (`aeron_archive.h`), with the feature `archive`.
//!
//! Build scripts of dependent crates find Aeron's headers in `DEP_AERON_INCLUDE` (paths joined as in
//! `PATH`), the tree in `DEP_AERON_SOURCE`, its version in `DEP_AERON_VERSION` and the text of these
//! bindings in `DEP_AERON_BINDINGS`.

#![no_std]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("Aeron needs a 64-bit target");

/// The version of the Aeron sources this crate was compiled from.
pub const AERON_VERSION: &str = env!("RUSTERON_AERON_VERSION");

pub use client::*;

#[allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod client {
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/client.rs"));
    #[cfg(not(feature = "bindgen"))]
    include!("bindings/client.rs");
}

/// The media driver: `aeronmd.h`.
#[cfg(feature = "driver")]
#[allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub mod driver {
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/driver.rs"));
    #[cfg(not(feature = "bindgen"))]
    include!("bindings/driver.rs");
}

/// The archive client: `aeron_archive.h`.
#[cfg(feature = "archive")]
#[allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub mod archive {
    #[cfg(feature = "bindgen")]
    include!(concat!(env!("OUT_DIR"), "/archive.rs"));
    #[cfg(not(feature = "bindgen"))]
    include!("bindings/archive.rs");
}
