//! Work that one process of this machine does at a time.

use std::fs::File;

/// A lock that one process has at a time. Dropping it lets the next process begin.
#[derive(Debug)]
pub(super) struct Turn {
    _file: File,
}

impl Turn {
    /// Waits for the turn, without a deadline: a queue of tests may be before this one.
    pub(super) fn take(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rusteron-{name}.lock"));
        let file = File::options().create(true).append(true).open(&path).expect("a lock file");
        #[cfg(unix)]
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        Self { _file: file }
    }
}
