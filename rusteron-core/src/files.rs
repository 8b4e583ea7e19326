//! Files that other processes use, too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens an existing file. A pipe in its place is an error: opening or reading one waits for a
/// writer.
///
/// # Errors
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the path names anything but a regular file;
/// otherwise as for [`OpenOptions::open`].
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        options.open(path)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Returns the content of a file.
///
/// # Errors
/// As for [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OpenOptions::new().read(true))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
