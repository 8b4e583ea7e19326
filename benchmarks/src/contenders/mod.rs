//! The contenders of each comparison, and the ways that messages go.

pub mod applications;
pub mod batches;
pub mod c_functions;
pub mod c_loops;
pub mod cluster;
pub mod latency;
pub mod ping_pong;
pub mod recording;
pub mod registration;
pub mod restart;
pub mod round_trips;
pub mod throughput;
pub mod tokio_task;
pub mod udp_throughput;
