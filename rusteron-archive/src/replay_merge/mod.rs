//! Merging a replay with the live stream.

mod builder;
mod error;
mod replay_merge;

pub use builder::ReplayMergeBuilder;
pub use error::{ReplayMergeCloseError, ReplayMergeError};
pub use replay_merge::ReplayMerge;
