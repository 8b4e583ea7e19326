//! Running a service over a recorded log, without a cluster.
//!
//! `recording.log` names the recordings of log and snapshots, and the archive's files have the frames. The
//! archive's catalogue is not read: the names of files have the positions, and a frame of length 0 is the end.
//!
//! The container's `core` handles the messages. Its network, `recorder`, accepts everything and makes an effect
//! of each message. The two runs follow each other. Effects of the first run are kept, so that the first
//! difference has both; a pause between the runs lets clocks differ, and the first instance lives on, so that
//! addresses differ.
//!
//! State is visible through snapshots only. After each snapshot, the second run goes on with a new instance,
//! which shows what the snapshot leaves out. Uncommitted messages at the end of a killed member's log do no
//! harm, because both runs get them.

mod determinism_check;
mod recorded_log;
mod recorder;

pub use determinism_check::{Comparison, DeterminismCheck, Divergence};
pub use recorded_log::RecordedLog;
pub use recorder::Effect;
