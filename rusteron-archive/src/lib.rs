//! Aeron's archive client for Rust.
//!
//! So far this crate compiles and links the C archive client and offers its [`Context`]; connecting,
//! recording and replaying are not there yet.

mod context;

/// What `rusteron-codegen` makes of Aeron's headers: the context's settings.
mod generated {
    use crate::Context;

    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}

pub use context::Context;
pub use rusteron_client::{Error, ErrorKind, Result};
