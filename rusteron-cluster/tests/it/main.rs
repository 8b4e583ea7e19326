//! The cluster client against Aeron's schema, Aeron's encoders and running clusters.

mod codec;
mod connect;
#[cfg(unix)]
mod one_node;
