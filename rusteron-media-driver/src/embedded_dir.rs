//! Directories of embedded drivers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rusteron_core::Result;

use crate::DriverContext;

/// Memory that is a file system, where the operating system has one.
const SHARED_MEMORY: &str = "/dev/shm";

/// Sets a directory that no other driver has. The directory is deleted with the driver.
pub(crate) fn choose(context: &mut DriverContext) -> Result<()> {
    context.set_dir(unique())?.set_dir_warn_if_exists(false)?.set_dir_delete_on_shutdown(true)?;
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

/// Returns a directory that no other driver has: `rusteron-<pid>-<number>-<time>`.
fn unique() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // A killed process leaves its directory behind, and another process can get the same pid later.
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    base(Path::new(SHARED_MEMORY)).join(format!("rusteron-{}-{number}-{nanos:x}", process::id()))
}

/// Returns shared memory if there is such a directory, or else the directory for temporary files.
fn base(shared_memory: &Path) -> PathBuf {
    if shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirs_are_distinct() {
        let (first, second) = (unique(), unique());
        assert_ne!(first, second);
        let name = first.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name.starts_with(&format!("rusteron-{}-", process::id())), "{name}");
    }

    #[test]
    fn fallback_to_temp_dir() {
        assert_eq!(base(Path::new("/no/such/shm")), std::env::temp_dir());
        let here = tempfile::tempdir().expect("a directory");
        assert_eq!(base(here.path()), here.path());
    }
}
