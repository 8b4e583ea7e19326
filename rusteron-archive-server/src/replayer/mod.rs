//! Replaying: segment files become blocks of a publication.

mod block_reader;
mod block_sink;
mod replay;
mod replayer;

#[cfg(test)]
mod agent_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub(crate) use block_reader::BlockReader;
pub(crate) use block_sink::BlockSink;
pub(crate) use replayer::{Replayer, ReplayerCommand, ReplayerEvent};
