//! Reports: printed once, or again and again.

use std::io::{self, IsTerminal, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use serde::Serialize;

use crate::failure::Failure;
use crate::hangup;
use crate::options::WatchOptions;
use crate::screen::Screen;

/// The findings of a command, for people and, by its serialisation, for programs.
pub(crate) trait Report: Serialize {
    /// The lines that stay in place when the rest is scrolled.
    fn header(&self) -> Vec<String>;

    /// The rest.
    fn body(&self) -> Vec<String>;
}

/// Prints a report to standard output.
pub(crate) fn print(report: &impl Report, json: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if json {
        out.write_all(&to_json(report)?)?;
        writeln!(out)?;
    } else {
        let lines = [report.header(), report.body()].concat();
        out.write_all((lines.join("\n") + "\n").as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Makes a report and prints it, or goes on doing so if the options say so.
pub(crate) fn watch<R: Report>(
    options: &WatchOptions,
    mut sample: impl FnMut() -> Result<R, Failure>,
) -> Result<(), Failure> {
    let json = options.format.json;
    if !options.watch {
        return print(&sample()?, json);
    }
    let interrupted = on_interrupt()?;
    if !json && io::stdout().is_terminal() {
        return Screen::enter()?.show(&interrupted, options.interval, sample);
    }
    loop {
        print(&sample()?, json)?;
        match interrupted.recv_timeout(options.interval) {
            Err(RecvTimeoutError::Timeout) if json => {}
            Err(RecvTimeoutError::Timeout) => writeln!(io::stdout())?,
            _ => return Ok(()),
        }
    }
}

/// The bytes of a value in JSON, on one line.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value).map_err(|error| Failure::run("cannot write JSON", error))
}

/// Where a message arrives at Ctrl-C, and where there are such signals at SIGTERM and, unless it is
/// ignored, SIGHUP.
///
/// The second of them ends the process at once, should it be stuck.
fn on_interrupt() -> Result<Receiver<()>, Failure> {
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
    hangup::stay_ignored(|| ctrlc::set_handler(interrupt))
        .map_err(|error| Failure::run("cannot handle signals", error))?;
    Ok(receiver)
}
