//! The ways that messages go over shared memory, in Rust, C and Java.

pub mod batches;
pub mod c_functions;
pub mod c_loops;
pub mod latency;
pub mod ping_pong;
pub mod throughput;
