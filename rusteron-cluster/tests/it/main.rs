//! Clients and services against Aeron's schema, stand-ins and running clusters.

mod codec;
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
