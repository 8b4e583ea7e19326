//! The turn of a test that needs most of the machine.

use std::fs::File;

/// A lock that one process of this machine has at a time. Dropping it lets the next one begin.
#[derive(Debug)]
pub(super) struct Turn {
    _file: File,
}

impl Turn {
    /// Waits for the turn, without a deadline: others may have a queue of tests.
    pub(super) fn take() -> Self {
        let path = std::env::temp_dir().join("rusteron-cluster-tests.lock");
        let file = File::options().create(true).append(true).open(&path).expect("a lock file");
        #[cfg(unix)]
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        Self { _file: file }
    }
}
