//! The benchmarks, one in each file.

pub mod archives;
pub mod calls;
pub mod cluster;
pub mod cluster_nodes;
pub mod comparison;
pub mod driver_resources;
pub mod drivers;
pub mod headline;
pub mod idling;
pub mod instructions;
pub mod ipc_latency;
pub mod ipc_throughput;
pub mod recording;
pub mod render;
pub mod udp_round_trips;
pub mod udp_throughput;
