//! The layout of log buffers and the atomic steps by which processes share them.

mod counter_value;
mod frame;
pub mod protocol;

pub use counter_value::CounterValue;
pub use frame::*;
pub use protocol::PARTITION_COUNT;
