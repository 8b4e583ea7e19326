//! Running a service over a recorded log, without a cluster.

mod determinism_check;
mod effect;
mod recorded_log;
mod recorder;
mod recording;
mod recording_log;
mod snapshot;

pub use determinism_check::{Comparison, DeterminismCheck, Divergence};
pub use effect::Effect;
pub use recorded_log::RecordedLog;
