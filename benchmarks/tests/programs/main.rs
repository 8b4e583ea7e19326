//! The programs, as a user runs them.
//!
//! One test program for all, so that it is linked once.

mod bad_values;
mod bounds;
mod child;
mod cluster;
#[cfg(target_os = "linux")]
mod cluster_service;
#[cfg(target_os = "linux")]
mod driver_resources;
#[cfg(target_os = "linux")]
mod drivers;
mod idle_strategies;
mod ipc_throughput;
mod ipc_throughput_driver;
mod ipc_throughput_values;
mod java;
mod latency;
#[cfg(target_os = "linux")]
mod preset_settings;
mod recording;
mod registrations;
mod throughput;
#[cfg(target_os = "linux")]
mod udp_round_trips;
#[cfg(target_os = "linux")]
mod udp_throughput;
