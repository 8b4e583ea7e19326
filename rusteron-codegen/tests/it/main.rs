//! Generated wrappers, of a small C library and of Aeron.

mod aeron;
mod common;
mod context;
mod coverage;
mod types;
