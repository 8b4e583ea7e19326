//! Reports that are printed once, or again and again until a signal ends the program.

use std::io::{self, IsTerminal, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use rusteron_core::hangup::keep_hangup_ignored;

use crate::failure::Failure;
use crate::options::WatchOptions;
use crate::report::{self, Report};
use crate::screen::Screen;

/// Takes a report and prints the report. Repeats this at each interval if the options ask for that.
pub(crate) fn run<R: Report>(
    options: &WatchOptions,
    mut sample: impl FnMut() -> Result<R, Failure>,
) -> Result<(), Failure> {
    let json = options.format.json;
    if !options.watch {
        return report::print(&sample()?, json);
    }
    let interrupted = on_signals()?;
    if !json && io::stdout().is_terminal() {
        return Screen::enter()?.show(&interrupted, options.interval, sample);
    }
    loop {
        report::print(&sample()?, json)?;
        match interrupted.recv_timeout(options.interval) {
            Err(RecvTimeoutError::Timeout) if json => {}
            Err(RecvTimeoutError::Timeout) => writeln!(io::stdout())?,
            _ => return Ok(()),
        }
    }
}

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
