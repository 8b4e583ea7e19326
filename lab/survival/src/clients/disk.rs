//! Where the driver's directory is: a small file system that can be filled up, or any.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use rusteron_core::program::Failure;
use tempfile::TempDir;

use crate::clients::settings::DISK_SIZE;
use crate::process::temporary_dir;

/// The end of the names of saved error logs.
const SAVED_ERRORS: &str = "-error.log";
const FILLING: &str = "filling";

/// A directory that goes with this.
#[derive(Debug)]
pub(crate) struct Disk {
    dir: Option<TempDir>,
    is_small: bool,
}

impl Disk {
    /// A small file system of its own if it is to be filled up, and if this user may mount one.
    pub(crate) fn new(is_small_wanted: bool) -> Result<Self, Failure> {
        let dir = temporary_dir()?;
        let is_small = is_small_wanted && mount(dir.path());
        Ok(Self { dir: Some(dir), is_small })
    }

    pub(crate) fn is_small(&self) -> bool {
        self.is_small
    }

    /// The driver's directory, which the driver makes.
    pub(crate) fn aeron_dir(&self) -> PathBuf {
        self.path().join("aeron")
    }

    /// Removes the driver's directory, whether or not a driver uses it.
    pub(crate) fn remove_aeron_dir(&self) -> Result<(), Failure> {
        let dir = self.aeron_dir();
        match fs::remove_dir_all(&dir) {
            // Somebody was faster, which the next checkpoint notices.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| Failure::run(dir.display(), error)),
        }
    }

    fn path(&self) -> &Path {
        self.dir.as_ref().map_or(Path::new("/nonexistent"), TempDir::path)
    }

    /// Leaves no space on the small file system.
    pub(crate) fn fill(&self) -> Result<(), Failure> {
        let cannot = |error| Failure::run("cannot fill the file system", error);
        let mut file = File::create(self.path().join(FILLING)).map_err(cannot)?;
        let page = [0x55_u8; 4096];
        while file.write_all(&page).is_ok() {}
        Ok(())
    }

    pub(crate) fn empty(&self) {
        // It is not there if it could not be made.
        let _ = fs::remove_file(self.path().join(FILLING));
    }

    /// Returns the files on the disk, directories aside. A driver that takes over a directory saves the error log of
    /// its predecessor beside it, as Aeron's does; that is not counted.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut dirs = vec![self.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    dirs.push(entry.path());
                } else if !entry.file_name().to_string_lossy().ends_with(SAVED_ERRORS) {
                    files.push(entry.path());
                }
            }
        }
        files
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_small {
            let _ = Command::new("umount").arg("-l").arg(self.path()).output();
        }
        drop(self.dir.take());
    }
}

fn mount(dir: &Path) -> bool {
    Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={DISK_SIZE}"), "tmpfs"])
        .arg(dir)
        .output()
        .is_ok_and(|output| output.status.success())
}
