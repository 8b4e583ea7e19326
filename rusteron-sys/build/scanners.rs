//! Two headers of Aeron's that headers of the shim replace: the functions that walk over frames.
//!
//! Aeron's sources are compiled unchanged. The compiler finds the shim's header first.
//!
//! By `aeron_term_scanner.h`, the sender finds the frames of a datagram; by `aeron_term_gap_scanner.h`, the
//! loss detector finds gaps. With the feature `cmake`, a directory property puts the same headers first. Tests
//! compare the functions with a walk over single frames, and Aeron's headers with known sums, so that a change
//! of Aeron's does not go unnoticed.

use std::path::{Path, PathBuf};

use crate::manifest_dir;

/// The headers, relative to the directories of both.
const HEADERS: [&str; 2] =
    ["concurrent/aeron_term_scanner.h", "concurrent/aeron_term_gap_scanner.h"];

/// Returns the directory that precedes all others.
pub(crate) fn include_dir() -> PathBuf {
    manifest_dir().join("shim/scanners")
}

/// Refuses a tree without such a header: nothing would be replaced.
pub(crate) fn check(client_dir: &Path) -> Result<(), String> {
    match HEADERS.iter().map(|header| client_dir.join(header)).find(|path| !path.is_file()) {
        Some(missing) => Err(format!("{}: no such file, which is replaced", missing.display())),
        None => Ok(()),
    }
}
