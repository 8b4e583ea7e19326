//! Clusters of Aeron's Java consensus module, with services of our own in Java and Rust.

mod java_backup;
mod java_cluster;
mod java_node;
#[cfg(feature = "service")]
pub mod ledger;
#[cfg(feature = "cluster")]
pub mod load;
mod member_archive;
mod options;
mod ports;
#[cfg(feature = "cluster")]
pub mod requests;
#[cfg(feature = "service")]
mod rust_cluster;
#[cfg(feature = "service")]
mod service_process;
#[cfg(feature = "cluster")]
mod stand_in;
#[cfg(feature = "cluster")]
mod stand_in_module;

pub use java_backup::JavaBackup;
pub use java_cluster::{JavaCluster, has_compiled_aeron};
pub use java_node::{JavaNode, PROPERTIES as MEMBER_PROPERTIES, SERVICE_CLOSED_FIRST};
pub use member_archive::MemberArchive;
pub use options::{AeronVersion, Options, Service};
pub use ports::Ports;
#[cfg(feature = "service")]
pub use rust_cluster::RustCluster;
#[cfg(feature = "service")]
pub use service_process::{ServiceProcess, ServiceProgram};
#[cfg(feature = "cluster")]
pub use stand_in::{ConnectRequest, StandIn};
#[cfg(feature = "cluster")]
pub use stand_in_module::StandInModule;
