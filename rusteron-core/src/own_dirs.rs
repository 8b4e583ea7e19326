//! Directories that embedded drivers and archives make for themselves, and those that killed
//! processes have left.

use std::fs;
use std::io;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a name that no other directory has: the prefix, and `<pid>-<number>-<time>`.
pub fn unique_name(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // A killed process leaves its directory behind, and another process can get the same pid later.
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    format!("{prefix}{}-{number}-{nanos:x}", process::id())
}

/// Removes the directories in `base` with [unique names](unique_name) of the prefix that belong to
/// this process's user, and that `prove_unowned` returns a proof for. The proof is dropped after
/// the removal. A name proves nothing, and a process id means nothing in another container. Links
/// are not followed. Failures are logged, and a base that cannot be read has nothing to remove.
pub fn remove_leftovers<P>(base: &Path, prefix: &str, prove_unowned: impl Fn(&Path) -> Option<P>) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_unique = name.to_str().and_then(|name| name.strip_prefix(prefix)).is_some_and(is_id);
        let path = entry.path();
        if !is_unique || !is_own_dir(&path) {
            continue;
        }
        let Some(_proof) = prove_unowned(&path) else { continue };
        match fs::remove_dir_all(&path) {
            Ok(()) => log::info!("{}: removed, its process has ended", path.display()),
            // Another process removes it, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => log::warn!("{}: left by an ended process: {error}", path.display()),
        }
    }
}

/// Returns whether a text is what [`unique_name`] writes after the prefix.
fn is_id(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_number = |part: Option<&str>, radix| {
        part.is_some_and(|part| part.chars().all(|digit| digit.is_digit(radix)) && !part.is_empty())
    };
    is_number(parts.next(), 10)
        && is_number(parts.next(), 10)
        && is_number(parts.next(), 16)
        && parts.next().is_none()
}

#[cfg(unix)]
fn is_own_dir(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    // SAFETY: the function has no conditions.
    let user = unsafe { libc::geteuid() };
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user)
}

/// Without an owner of files to compare, everything stays.
#[cfg(not(unix))]
fn is_own_dir(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_names_are_distinct_ids() {
        let names = [unique_name("rusteron-"), unique_name("rusteron-")];
        assert_ne!(names[0], names[1]);
        for name in names {
            let id = name.strip_prefix("rusteron-").expect("the prefix");
            assert!(id.starts_with(&format!("{}-", process::id())) && is_id(id), "{id}");
        }
        for id in ["", "1-2", "1-2-3-4", "1-2-x", "a-2-3", "1--3"] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn only_proven_dirs_of_the_name_are_removed() {
        let base = tempfile::tempdir().expect("a directory");
        let at = |name: &str| base.path().join(name);
        for name in ["rusteron-1-0-a", "rusteron-2-0-b", "rusteron-driver", "other-1-0-a"] {
            fs::create_dir(at(name)).expect("a directory");
            fs::write(at(name).join("cnc.dat"), b"x").expect("a file");
        }
        std::os::unix::fs::symlink(at("other-1-0-a"), at("rusteron-3-0-c")).expect("a link");
        let is_unowned = |path: &Path| (!path.ends_with("rusteron-2-0-b")).then_some(());
        remove_leftovers(base.path(), "rusteron-", is_unowned);
        assert!(!at("rusteron-1-0-a").exists());
        for name in ["rusteron-2-0-b", "rusteron-driver", "other-1-0-a", "rusteron-3-0-c"] {
            assert!(at(name).join("cnc.dat").is_file(), "{name}");
        }
    }
}
