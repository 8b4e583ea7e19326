//! Reports that are printed once, or again and again.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::RecvTimeoutError;

use crate::failure::Failure;
use crate::interrupt;
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
    let interrupted = interrupt::on_signals()?;
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
