//! The cluster client against Aeron's schema, Aeron's encoders and running clusters.

mod codec {
    mod drift;
    mod java;
}
#[cfg(unix)]
mod connect;
#[cfg(unix)]
mod halves;
#[cfg(unix)]
mod leaders;
mod mark_file;
#[cfg(unix)]
mod one_node;
#[cfg(all(unix, feature = "service"))]
mod service;
#[cfg(unix)]
mod three_nodes;
