//! The settings that `rusteron-codegen` finds in Aeron's headers.

use crate::context::Context;

include!(concat!(env!("OUT_DIR"), "/settings.rs"));
