//! Segment files: a recording's frames, as they were in the log buffer.

pub(crate) mod block;
pub(crate) mod checksum;
pub(crate) mod cut;
pub(crate) mod frame;
pub(crate) mod geometry;
pub(crate) mod scan;
pub(crate) mod start;

#[cfg(test)]
pub(crate) mod sample;

pub(crate) use geometry::Geometry;
