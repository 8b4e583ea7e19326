//! The user's request to end the program.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};

use rusteron_client::__private::keep_hangup_ignored;

use crate::failure::Failure;

/// Receives a message at Ctrl-C. On Unix also at SIGTERM and, unless the signal is ignored, SIGHUP.
///
/// The second such signal ends the process at once, in case the program is stuck.
pub(crate) fn on_signals() -> Result<Receiver<()>, Failure> {
    const INTERRUPTED: i32 = 130;
    let (sender, receiver) = mpsc::channel();
    let is_second = AtomicBool::new(false);
    let interrupt = move || {
        if is_second.swap(true, Ordering::Relaxed) {
            process::exit(INTERRUPTED);
        }
        // The receiver is gone only when the program is ending anyway.
        let _ = sender.send(());
    };
    keep_hangup_ignored(|| ctrlc::set_handler(interrupt))
        .map_err(|error| Failure::run("cannot handle signals", error))?;
    Ok(receiver)
}
