//! Raw declarations of Aeron's C client, media driver and archive client, and the library itself.
//!
//! This crate's build script compiles Aeron from source into one static library. It needs only a C
//! compiler. Programs use the safe crates `rusteron-client`, `rusteron-media-driver` and
//! `rusteron-archive`. This crate is for authors of other wrappers.
//!
//! - the root: the client (`aeronc.h`), counters, and the `rusteron_*` functions of the shim, which
//!   return the addresses of fields that the message path works on;
//! - `driver`: the media driver (`aeronmd.h`), with the feature `driver`;
//! - `archive`: the archive client (`aeron_archive.h`), with the feature `archive`.
//!
//! Build scripts of dependent crates get five variables. `DEP_AERON_INCLUDE` has the directories of
//! Aeron's headers (joined as in `PATH`), `DEP_AERON_SOURCE` the tree, `DEP_AERON_VERSION` its
//! version, `DEP_AERON_PLAN` a list of the compiled files and their definitions, and
//! `DEP_AERON_BINDINGS` the directory with the text of these bindings.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    missing_debug_implementations,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("Aeron needs a 64-bit target");

/// The version of the Aeron sources this crate was compiled from.
pub const AERON_VERSION: &str = env!("RUSTERON_AERON_VERSION");

pub use client::*;

mod client {
    include!(concat!(env!("RUSTERON_BINDINGS_DIR"), "/client.rs"));
}

/// The media driver: `aeronmd.h`.
#[cfg(feature = "driver")]
pub mod driver {
    include!(concat!(env!("RUSTERON_BINDINGS_DIR"), "/driver.rs"));
}

/// The archive client: `aeron_archive.h`.
#[cfg(feature = "archive")]
pub mod archive {
    include!(concat!(env!("RUSTERON_BINDINGS_DIR"), "/archive.rs"));
}
