//! Errors of an archive server.

use std::fmt;
use std::io;
use std::path::Path;

use rusteron_client::{Error, ErrorKind};
use rusteron_core::error::{exhausted, is_full};
use rusteron_core::printable::Printable;

/// The result of every operation of a server.
pub type Result<T, E = ServerError> = std::result::Result<T, E>;

/// A failed operation of an archive server: its kind, and a sentence that names what was wrong.
///
/// It is one machine word, so that a `Result` stays small.
///
/// ```
/// use rusteron_archive_server::{ArchiveServerContext, ServerErrorKind};
///
/// let mut context = ArchiveServerContext::new();
/// let error = context.set_segment_file_length(100).unwrap_err();
/// assert_eq!(error.kind(), ServerErrorKind::InvalidArgument);
/// assert_eq!(error.message(), "segment_file_length=100: must be a power of two from 64k to 1g");
/// ```
#[doc(alias("ArchiveException", "ConfigurationException"))]
#[derive(Clone)]
pub struct ServerError(Box<Content>);

#[derive(Clone)]
struct Content {
    kind: ServerErrorKind,
    message: Box<str>,
}

/// The kinds of [`ServerError`], independent of the wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerErrorKind {
    /// A setting is missing, is out of its range, or does not fit another setting. The text names it.
    InvalidArgument,
    /// Another archive uses the directory, or has the same archive id on the media driver.
    ActiveArchive,
    /// The mark file is damaged, or belongs to another component or another version.
    InvalidMarkFile,
    /// The catalog is damaged, or belongs to a version that this server does not read.
    InvalidCatalog,
    /// A recording's segment files do not fit the catalog, and only an operator can decide what to do.
    InvalidRecording,
    /// The file system has no space left for the archive's files.
    StorageSpace,
    /// A thread of the server has ended with an error or a panic, and the server with it.
    ThreadFailed,
    /// A file or a directory of the archive cannot be written or read. The text names it.
    Io(io::ErrorKind),
    /// The Aeron client failed: no media driver, a media driver that has gone, an address in use.
    Client(ErrorKind),
}

impl ServerError {
    pub(crate) fn new(kind: ServerErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Content { kind, message: message.into().into() }))
    }

    /// Makes the error of a wrong setting.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ServerErrorKind::InvalidArgument, message)
    }

    /// Makes the error of a file or a directory, whose name the operating system's error does not have.
    pub(crate) fn io(file: impl fmt::Display, error: &io::Error) -> Self {
        if is_full(error) {
            // The advice depends on the path, so `with_advice` adds it.
            return Self::new(ServerErrorKind::StorageSpace, format!("{file}: {error}"));
        }
        let advice = error.raw_os_error().filter(|_| cfg!(unix)).and_then(exhausted);
        let advice = advice.map(|advice| format!(": {advice}")).unwrap_or_default();
        Self::new(ServerErrorKind::Io(error.kind()), format!("{file}: {error}{advice}"))
    }

    /// Makes the error of a file or a directory, and says what helps.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::io(path.display(), error).with_advice(path)
    }

    /// Puts a directory before a text that begins with the name of a file in it, and says what
    /// helps.
    pub(crate) fn in_dir(self, dir: &Path) -> Self {
        let name = self.message().split(':').next().unwrap_or_default();
        let file = dir.join(name);
        Self::new(self.kind(), dir.join(self.message()).display().to_string()).with_advice(&file)
    }

    /// Adds what helps if the operating system has refused access to a file or a directory, or
    /// space for it.
    pub(crate) fn with_advice(self, path: &Path) -> Self {
        let advice = match self.kind() {
            ServerErrorKind::Io(io::ErrorKind::PermissionDenied) => denied(path),
            ServerErrorKind::Io(io::ErrorKind::ReadOnlyFilesystem) => {
                Some("an archive writes to its directories".to_owned())
            }
            ServerErrorKind::StorageSpace => {
                Some("free space on its file system, or choose another directory".to_owned())
            }
            _ => None,
        };
        match advice {
            Some(advice) => Self::new(self.kind(), format!("{}: {advice}", self.message())),
            None => self,
        }
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ServerErrorKind {
        self.0.kind
    }

    /// Returns the sentence that names what was wrong.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

/// Says who wants access, and to whom the path belongs or, if it cannot be seen, the directory above it.
#[cfg(unix)]
fn denied(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;

    let found = path.ancestors().find_map(|path| Some((path, path.metadata().ok()?)));
    let (path, metadata) = found?;
    let (owner, group, mode) = (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777);
    let (user, path) = (rustix::process::geteuid().as_raw(), path.display());
    Some(format!(
        "this is user {user}, and {path} is of user {owner}, group {group}, mode {mode:04o}: run the archive as \
         that user, or choose another directory"
    ))
}

#[cfg(not(unix))]
fn denied(_: &Path) -> Option<String> {
    None
}

/// Writes one line: the kind, then the sentence. `Debug` writes the same.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind() {
            ServerErrorKind::InvalidArgument => "invalid argument",
            ServerErrorKind::ActiveArchive => "active archive",
            ServerErrorKind::InvalidMarkFile => "invalid mark file",
            ServerErrorKind::InvalidCatalog => "invalid catalog",
            ServerErrorKind::InvalidRecording => "invalid recording",
            ServerErrorKind::StorageSpace => "insufficient storage space",
            ServerErrorKind::ThreadFailed => "thread failed",
            ServerErrorKind::Io(_) => "file",
            // The text of the client's error begins with its kind.
            ServerErrorKind::Client(_) => return Printable(self.message()).fmt(f),
        };
        match self.message() {
            "" => f.write_str(kind),
            message => write!(f, "{kind}: {}", Printable(message)),
        }
    }
}

rusteron_core::debug_as_display!(ServerError);

impl std::error::Error for ServerError {}

impl From<Error> for ServerError {
    fn from(error: Error) -> Self {
        Self::new(ServerErrorKind::Client(error.kind()), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_debug_are_one_line() {
        let error = ServerError::invalid("archive_id=x: must be an integer");
        assert_eq!(error.to_string(), "invalid argument: archive_id=x: must be an integer");
        assert_eq!(format!("{error:?}"), error.to_string());
        assert_eq!(
            ServerError::new(ServerErrorKind::ActiveArchive, "").to_string(),
            "active archive"
        );
        assert_eq!(size_of::<ServerError>(), size_of::<usize>());
    }

    #[test]
    fn io_error_names_file() {
        let error = ServerError::io("archive.catalog", &io::ErrorKind::PermissionDenied.into());
        assert_eq!(error.kind(), ServerErrorKind::Io(io::ErrorKind::PermissionDenied));
        assert_eq!(error.to_string(), "file: archive.catalog: permission denied");
        for full in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let error = ServerError::file(Path::new("0-0.rec"), &full.into());
            assert_eq!(error.kind(), ServerErrorKind::StorageSpace);
            assert!(error.message().ends_with("or choose another directory"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn exhausted_descriptors_name_their_limit() {
        const EMFILE: i32 = 24;
        let error = ServerError::io("0-0.rec", &io::Error::from_raw_os_error(EMFILE));
        assert!(
            error.message().starts_with("0-0.rec: ") && error.message().contains("LimitNOFILE=")
        );
    }

    #[cfg(unix)]
    #[test]
    fn denied_access_names_owner() {
        use std::os::unix::fs::MetadataExt;

        let dir = tempfile::tempdir().expect("a directory");
        let owner = dir.path().metadata().expect("a directory").uid();
        let path = dir.path().join("archive-mark.dat");
        let error = ServerError::file(&path, &io::ErrorKind::PermissionDenied.into());
        let text = format!("{} is of user {owner}, group ", dir.path().display());
        assert!(error.message().contains(&text), "{error}");
        let error = ServerError::file(&path, &io::ErrorKind::NotFound.into());
        assert_eq!(error.to_string(), format!("file: {}: entity not found", path.display()));
    }

    #[test]
    fn client_error_keeps_kind_and_words() {
        let error = Error::new(ErrorKind::DriverTimeout, "no driver");
        let converted = ServerError::from(error.clone());
        assert_eq!(converted.kind(), ServerErrorKind::Client(ErrorKind::DriverTimeout));
        assert_eq!(converted.to_string(), error.to_string());
    }
}
