//! Errors of archives, and the texts by which some of them are known.

mod error;
pub(crate) mod phrases;

pub use error::{ArchiveError, ArchiveErrorKind, Result};
