//! The command-and-control file of a media driver and its contents.

mod client_identity;
mod cnc_copy;
mod cnc_file;
pub mod counters_reader;
pub mod epoch;
pub mod error_log;
mod liveness;
mod loss_report;
pub mod refusal;
mod shared_memory;
mod stream_positions;
mod system_counter;
mod termination;

pub use client_identity::ClientIdentity;
pub use cnc_file::{CncConstants, CncFile, CncVersion};
pub use counters_reader::{
    CounterSnapshot, CounterState, Counters, CountersReader, i32_at, i64_at,
};
pub use error_log::ErrorLogEntry;
pub use liveness::DriverWatch;
pub use liveness::gone_driver;
pub use loss_report::LossReportEntry;
pub use stream_positions::{PositionKind, StreamPosition, StreamPositions};
pub use system_counter::SystemCounter;
pub use termination::request_driver_termination;
