//! Recording: blocks of images become segment files.

mod block_writer;
mod io_totals;
mod recorder;
mod recording;
mod syncs;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod script_tests;
#[cfg(test)]
mod tests;

pub(crate) use block_writer::BlockWriter;
pub(crate) use io_totals::{IoCounters, IoTotals};
pub(crate) use recorder::{Recorder, RecorderCommand, RecorderEvent};
#[cfg(any(test, fuzzing))]
pub(crate) use recording::{BlockSource, Recording};
