//! The files of an archive that is not running: described, verified and put in order, as Java's `ArchiveTool` does.
//!
//! ```no_run
//! use rusteron_archive_server::offline::{ArchiveFiles, VerifyOptions};
//!
//! # fn main() -> rusteron_archive_server::Result<()> {
//! let files = ArchiveFiles::open_stopped("/var/lib/aeron-archive")?;
//! for recording in files.recordings() {
//!     for finding in files.verify(recording, &VerifyOptions::default()).findings {
//!         println!("recording {}: {finding}", recording.recording_id);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod archive_editor;
mod archive_files;
mod verification;

#[cfg(test)]
mod tests;

pub use crate::catalog::{RecordingEntry, RecordingState};
pub use archive_editor::{ArchiveEditor, Compaction, Repair};
pub use archive_files::ArchiveFiles;
pub use verification::{Finding, LastFragment, Verification, VerifyOptions};
