//! Clusters of Aeron's Java consensus module, and services of our own in Java.

mod compiled_aeron;
mod java_cluster;
mod java_node;
mod options;
#[cfg(feature = "cluster")]
mod stand_in;
mod turn;

pub use compiled_aeron::has_compiled_aeron;
pub use java_cluster::JavaCluster;
pub use java_node::JavaNode;
pub use options::{AeronVersion, Options, Service};
#[cfg(feature = "cluster")]
pub use stand_in::{ConnectRequest, StandIn};
