//! The file that a result is written to.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::command_line::failure::Failure;

/// A file that a result will be written to.
///
/// The file is opened before the measurement, so that a name that cannot be written to is noticed
/// then. An existing file keeps its content until there is a result. A file that was made in vain
/// is removed.
#[derive(Debug)]
pub struct JsonFile {
    file: File,
    path: PathBuf,
    is_in_vain: bool,
}

impl JsonFile {
    /// Opens the file, and creates it if necessary.
    ///
    /// # Errors
    /// [`Failure::Usage`] if it cannot be written to.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.write(true);
        let (opened, is_new) = match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Not new, or a link to a missing file.
                (options.create(true).truncate(false).open(path), false)
            }
            opened => (opened, true),
        };
        let file = opened.map_err(|error| {
            let reason = format!("expected a file that can be written to: {error}");
            Failure::usage("--results", path.display(), reason)
        })?;
        Ok(Self { file, path: path.to_owned(), is_in_vain: is_new })
    }

    /// Replaces the file's content.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(mut self, value: &impl Display) -> Result<(), Failure> {
        self.is_in_vain = false;
        self.replace(value).map_err(|error| {
            Failure::run(format_args!("cannot write {}", self.path.display()), error)
        })
    }

    fn replace(&mut self, value: &impl Display) -> io::Result<()> {
        // Pipes and devices have no length.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        writeln!(self.file, "{value:#}")
    }
}

impl Drop for JsonFile {
    fn drop(&mut self) {
        if self.is_in_vain {
            // It is empty; should it stay, no harm is done.
            let _ = fs::remove_file(&self.path);
        }
    }
}
