//! Running a service over a recorded log, without a cluster.

mod determinism_check;
mod recorded_log;
mod recorder;

pub use determinism_check::{Comparison, DeterminismCheck, Divergence};
pub use recorded_log::RecordedLog;
pub use recorder::Effect;
