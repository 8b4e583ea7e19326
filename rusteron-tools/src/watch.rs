//! Reports that are printed once, or again and again until a signal ends the program.

use std::io::{self, IsTerminal, Write};

use rusteron_core::agent::ShutdownSignal;

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
    let shutdown = on_interrupt()?;
    if !json && io::stdout().is_terminal() {
        return Screen::enter()?.show(&shutdown, options.interval, sample);
    }
    loop {
        report::print(&sample()?, json)?;
        if shutdown.wait_timeout(options.interval) {
            return Ok(());
        }
        if !json {
            writeln!(io::stdout())?;
        }
    }
}

/// Returns the signal that the user's wish to end the program gives.
pub(crate) fn on_interrupt() -> Result<ShutdownSignal, Failure> {
    ShutdownSignal::on_interrupt().map_err(|error| Failure::run("cannot handle signals", error))
}
