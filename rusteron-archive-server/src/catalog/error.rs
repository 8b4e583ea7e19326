//! Why the catalog cannot be opened, or an edit was not made.

use std::{fmt, io};

use rusteron_core::error::is_full;

use crate::catalog::descriptor::WrongChecksum;
use crate::catalog::file::CATALOG_NAME;
use crate::catalog::header::{self, VERSION};
use crate::error::{ServerError, ServerErrorKind};
use crate::ids::RecordingId;

/// Why the catalog cannot be opened, or an edit was not made. After a failed edit, the catalog is as it was before.
#[derive(Debug)]
pub(crate) enum CatalogError {
    /// The file has a format that this server does not have, or is no catalog.
    Version { found: i32 },
    /// The file has the version of this server, but entries of another alignment.
    Alignment { found: i32 },
    /// The file does not hold what its format says.
    Corrupt { offset: usize, reason: String },
    /// The catalog has reached its greatest length, or has no recording id left.
    Full(String),
    /// The entry is not the one that its checksum was made of.
    Checksum { recording: RecordingId, wrong: WrongChecksum },
    /// No valid entry has this id.
    UnknownRecording(RecordingId),
    /// The end of a recording that was active when the archive ended cannot be found.
    Recovery { recording: RecordingId, reason: String },
    /// A recording that was active has lost what was not synced when the operating system failed.
    Gap { recording: RecordingId, reason: String },
    /// The storage failed.
    Io { action: &'static str, source: io::Error },
}

impl CatalogError {
    pub(super) fn io(action: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }

    /// Returns the recording whose files do not tell its end, if the error says that.
    pub(crate) fn endless_recording(&self) -> Option<RecordingId> {
        match self {
            Self::Recovery { recording, .. }
            | Self::Gap { recording, .. }
            | Self::Checksum { recording, .. } => Some(*recording),
            _ => None,
        }
    }

    /// Returns whether the storage or the catalog has no space left.
    pub(crate) fn is_storage_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_full(source)) || matches!(self, Self::Full(_))
    }
}

/// Begins as Java's text where there is one.
impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { found } => {
                let advice = if header::major(*found) > header::major(VERSION) {
                    "use a server of that version"
                } else {
                    "Java's ArchiveTool has the command `migrate` for versions 0 to 2"
                };
                write!(
                    f,
                    "{CATALOG_NAME}: incompatible catalog file version {}, archive software is {}: {advice}",
                    header::version_text(*found),
                    header::version_text(VERSION)
                )
            }
            Self::Alignment { found: 0 } => write!(
                f,
                "{CATALOG_NAME}: alignment 0: entries of 1024 bytes, as before version 3, where version {} has \
                 alignment {}: Java's ArchiveTool has the command `migrate`",
                header::version_text(VERSION),
                header::ALIGNMENT
            ),
            Self::Alignment { found } => {
                write!(f, "{CATALOG_NAME}: alignment {found}: must be {}", header::ALIGNMENT)
            }
            Self::Corrupt { offset, reason } => write!(
                f,
                "{CATALOG_NAME}: corrupt at byte {offset}: {reason}: `rusteron archive` shows the entries by `list \
                 --archive-dir`, and excludes one by `mark-invalid`"
            ),
            Self::Checksum { recording, wrong } => write!(
                f,
                "{CATALOG_NAME}: recording {recording} is not served: {wrong}: `rusteron archive verify {recording} \
                 --repair` finds its end in its segments, and `mark-valid {recording}` believes the entry as it is"
            ),
            Self::Full(reason) => write!(f, "{CATALOG_NAME}: {reason}"),
            Self::UnknownRecording(id) => write!(f, "unknown recording id: {id}"),
            Self::Recovery { recording, reason } => {
                write!(f, "{CATALOG_NAME}: the end of recording {recording} is unknown: {reason}")
            }
            Self::Gap { recording, reason } => write!(
                f,
                "recording {recording} lacks data that was not synced when the operating system failed: {reason}: \
                 `rusteron archive verify {recording} --repair` serves it with the gap, file sync level 1 prevents this"
            ),
            Self::Io { action, source } => {
                write!(f, "{CATALOG_NAME}: cannot {action}: {source}")
            }
        }
    }
}

impl std::error::Error for CatalogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<CatalogError> for ServerError {
    fn from(error: CatalogError) -> Self {
        let kind = match &error {
            error if error.is_storage_full() => ServerErrorKind::StorageSpace,
            CatalogError::Io { source, .. } => ServerErrorKind::Io(source.kind()),
            CatalogError::Recovery { .. } | CatalogError::Gap { .. } => {
                ServerErrorKind::InvalidRecording
            }
            _ => ServerErrorKind::InvalidCatalog,
        };
        Self::new(kind, error.to_string())
    }
}
