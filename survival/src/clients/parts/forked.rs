//! A child that a part forks with all its handles.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_test_support::ForkedChild;

use super::accuse;

/// How long a child may take to drop its handles and to end.
const DEADLINE: Duration = Duration::from_secs(10);

/// Forks a child. Returns `true` in the child, which then says nothing more, and must end with success.
pub(super) fn fork() -> bool {
    match ForkedChild::fork() {
        Ok(None) => {
            // The supervisor takes what this process says for its parent's notices.
            let null = File::options().write(true).open("/dev/null");
            if null.is_ok_and(|null| rustix::stdio::dup2_stdout(null).is_ok()) {
                return true;
            }
            std::process::abort();
        }
        Ok(Some(child)) => {
            thread::spawn(move || {
                if let Err(end) = child.await_success(Instant::now() + DEADLINE) {
                    accuse("crashed", 1, format_args!("a forked child: {end}"));
                }
            });
        }
        // A process without memory or descriptors for it. Other faults are in force as well.
        Err(_) => {}
    }
    false
}
