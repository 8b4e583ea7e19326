//! The layout of log buffers and the atomic steps by which processes share them.

mod counter_value;
mod frame;
pub(crate) mod protocol;

pub(crate) use counter_value::CounterValue;
pub(crate) use frame::*;
pub(crate) use protocol::PARTITION_COUNT;
