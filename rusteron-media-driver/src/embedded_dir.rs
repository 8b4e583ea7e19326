//! Directories of embedded drivers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusteron_core::cnc::gone_driver;
use rusteron_core::own_dirs::{remove_leftovers, unique_name};
use rusteron_core::{Result, ffi};

use crate::DriverContext;

/// Memory that is a file system, where the operating system has one.
const SHARED_MEMORY: &str = "/dev/shm";

/// The beginning of the names of embedded drivers' directories.
const PREFIX: &str = "rusteron-";

/// Sets a directory that no other driver has. The directory is deleted with the driver. What killed
/// processes of this user have left beside it is deleted now.
pub(crate) fn choose(context: &mut DriverContext) -> Result<()> {
    let base = base(Path::new(SHARED_MEMORY));
    // A driver that is starting has no version in its file, and one that runs has mapped its loss
    // report.
    remove_leftovers(&base, PREFIX, |dir| gone_driver(&ffi::c_path("dir", dir).ok()?));
    let dir = base.join(unique_name(PREFIX));
    context.set_dir(dir)?.set_dir_warn_if_exists(false)?.set_dir_delete_on_shutdown(true)?;
    Ok(())
}

/// Deletes the remains of a directory, if there are any.
pub(crate) fn remove(dir: &Path) {
    match fs::remove_dir_all(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => log::warn!("{}: not deleted: {error}", dir.display()),
    }
}

/// Returns shared memory if there is such a directory, or else the directory for temporary files.
fn base(shared_memory: &Path) -> PathBuf {
    if shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallback_to_temp_dir() {
        assert_eq!(base(Path::new("/no/such/shm")), std::env::temp_dir());
        let here = tempfile::tempdir().expect("a directory");
        assert_eq!(base(here.path()), here.path());
    }
}
