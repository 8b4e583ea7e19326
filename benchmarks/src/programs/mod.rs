//! The programs, one in each file; `src/bin` has a `main` for each.

pub mod bounds;
pub mod cluster;
pub mod cluster_cases;
pub mod cluster_options;
pub mod cluster_service;
pub mod driver_resources;
pub mod drivers;
pub mod idle_strategies;
pub mod instructions;
pub mod ipc_throughput;
pub mod ipc_throughput_options;
pub mod latency;
#[cfg(unix)]
pub mod preset_settings;
pub mod recording;
pub mod registrations;
pub mod throughput;
pub mod udp_round_trips;
pub mod udp_throughput;
