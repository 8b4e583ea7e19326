//! Reading the files of a node.

use std::fmt::{self, Display};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;

use crate::text;

/// No file of a node is read beyond this length in bytes. Error logs have 1 MiB by default, and an entry of the
/// recording log 64 bytes.
pub(super) const MAX_LENGTH: u64 = 64 << 20;

/// A file that cannot be read.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Problem {
    pub(super) file: String,
    pub(super) error: String,
}

/// The reason why the content of a file cannot be read.
#[derive(Debug)]
pub(super) enum FileError {
    Io(io::Error),
    NotAFile,
    TooLong(u64),
}

impl Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotAFile => f.write_str("not a regular file"),
            Self::TooLong(length) => {
                write!(f, "{length} bytes are more than the {MAX_LENGTH} bytes that are read")
            }
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Problem {
    pub(super) fn new(file: &Path, error: impl Display) -> Self {
        Self { file: file.to_string_lossy().into_owned(), error: error.to_string() }
    }

    pub(super) fn line(&self) -> String {
        format!("{}: {}", text::printable(&self.file), text::printable(&self.error))
    }
}

/// Returns the content of a file. `None` if there is no such file, or with a problem.
pub(super) fn read_if_there(path: &Path, problems: &mut Vec<Problem>) -> Option<Vec<u8>> {
    match read(path) {
        Ok(bytes) => Some(bytes),
        Err(FileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            problems.push(Problem::new(path, error));
            None
        }
    }
}

/// Returns the content of a file. Reads, because another process may cut off a mapped file.
fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(FileError::NotAFile);
    }
    if about.len() > MAX_LENGTH {
        return Err(FileError::TooLong(about.len()));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_LENGTH).read_to_end(&mut bytes)?;
    Ok(bytes)
}
