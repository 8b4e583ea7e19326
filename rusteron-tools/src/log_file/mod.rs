//! Reads a log buffer file. The file may be damaged, foreign, or in use.
//!
//! The file is read, not mapped: if the file shrinks meanwhile, a read only returns fewer bytes. The
//! layout follows `aeron_logbuffer_descriptor.h` and `aeron_udp_protocol.h`: three terms of the same
//! length, and 4,096 bytes at the end that describe them.

mod fields;
mod file;
pub(crate) mod frame;
mod metadata;
#[cfg(test)]
mod tests;

pub(crate) use file::{LogFault, LogFile};
pub(crate) use frame::{Entry, Frame};
pub(crate) use metadata::{LogKind, Metadata, PARTITION_COUNT};
