//! The file that a result is written to.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rusteron_core::program::Failure;

/// A file that a result will be written to. It keeps its earlier content until then, and goes if it
/// stays empty.
#[derive(Debug)]
pub struct ResultsFile {
    file: File,
    path: PathBuf,
}

impl ResultsFile {
    /// Opens a file of the directory that `--results` names, so that one that cannot be written to
    /// is noticed before the work. Makes both if necessary.
    pub fn open(dir: &Path, name: &str) -> Result<Self, Failure> {
        let unusable = |error| {
            let reason = format!("expected a directory that can be written to: {error}");
            Failure::usage("--results <DIR>", dir.display(), reason)
        };
        fs::create_dir_all(dir).map_err(unusable)?;
        let path = dir.join(name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        Ok(Self { file: file.map_err(unusable)?, path })
    }

    /// Replaces the content. Returns the path.
    pub fn write(mut self, value: &impl Display) -> Result<PathBuf, Failure> {
        let path = self.path.clone();
        let written = self.replace(value).map(|()| path);
        written.map_err(|error| {
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

impl Drop for ResultsFile {
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|about| about.is_file() && about.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
