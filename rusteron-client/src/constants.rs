//! The constants of resources, which `rusteron-codegen` finds in Aeron's headers.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
