//! The control protocol: messages, codes and versions.

#[cfg(test)]
mod drift;
pub(crate) mod error_code;
pub(crate) mod messages;
pub(crate) mod response_code;
pub(crate) mod signal;

/// The version of the protocol, 1.12.0, as `major << 16 | minor << 8 | patch`. Sessions need the same major version.
pub(crate) const PROTOCOL_VERSION: i32 = 1 << 16 | 12 << 8;
