//! A small file system, to fill up.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A small file system of its own. Only the superuser can mount one.
///
/// Tests that count on freed space need a binary without tests that start processes. A child
/// process inherits open files, and with them their space.
pub struct SmallFileSystem(tempfile::TempDir);

impl SmallFileSystem {
    /// `None`, with the reason on the standard error output, where it is not permitted;
    /// `RUSTERON_REQUIRE_MOUNT=1` makes that a failure.
    pub fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path())
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            let required = std::env::var_os("RUSTERON_REQUIRE_MOUNT");
            let is_required = required.is_some_and(|value| value == "1");
            assert!(!is_required, "RUSTERON_REQUIRE_MOUNT=1, but a file system cannot be mounted");
            // Not what the test harness keeps to itself when a test succeeds.
            let _ = writeln!(std::io::stderr(), "skipped: a file system cannot be mounted");
        }
        mounted.then_some(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        // Lazily: a child process of another test can have inherited open files, as C opens files
        // without `O_CLOEXEC`.
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        if !unmounted.as_ref().is_ok_and(|status| status.success()) {
            let path = self.0.path().display();
            let _ = writeln!(std::io::stderr(), "{path} cannot be unmounted: {unmounted:?}");
        }
    }
}
