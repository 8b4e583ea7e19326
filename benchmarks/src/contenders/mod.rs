//! The ways that messages go, and the programs between which they go.

pub mod applications;
pub mod batches;
pub mod c_functions;
pub mod c_loops;
pub mod cluster;
pub mod latency;
pub mod ping_pong;
pub mod recording;
pub mod round_trips;
pub mod throughput;
pub mod udp_throughput;
