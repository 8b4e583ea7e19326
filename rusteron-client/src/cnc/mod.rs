//! The command-and-control file of a media driver and its contents.

mod cnc_file;
pub(crate) mod counters_reader;
pub(crate) mod epoch;
pub(crate) mod error_log;
mod liveness;
mod loss_report;
pub(crate) mod refusal;
mod shared_memory;
mod stream_positions;
mod system_counter;

pub use cnc_file::{CncFile, CncVersion};
pub use counters_reader::{CounterSnapshot, CounterState, Counters, CountersReader};
pub use error_log::ErrorLogEntry;
pub(crate) use liveness::DriverWatch;
pub use liveness::gone_driver;
pub use loss_report::LossReportEntry;
pub use stream_positions::{PositionKind, StreamPosition, StreamPositions};
pub use system_counter::SystemCounter;
