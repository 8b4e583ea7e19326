//! `rusteron driver`: the state of the driver, a health check, and termination.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rusteron_client::{ErrorKind, request_driver_termination};
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::driver_dir::{DriverDir, DriverState, DriverStatus};
use crate::options::DriverOptions;
use crate::report::{self, Report};
use crate::text;

/// The exit status if there is no driver, or it is not alive.
const NOT_ALIVE: u8 = 3;

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Driver(DriverStatus);

pub(crate) fn run(dir: &DriverDir, options: &DriverOptions) -> Result<(), Failure> {
    let cnc = dir.find()?;
    let status = dir.status(cnc.as_ref());
    if options.check {
        return check(&status, options.pid);
    }
    let is_alive = status.state == DriverState::Alive;
    if !options.terminate || !is_alive {
        report::print(&Driver(status), options.format.json)?;
        return if is_alive { Ok(()) } else { Err(Failure::Answer(NOT_ALIVE)) };
    }
    let status = terminate(dir, &status, options)?;
    report::print(&Driver(status), options.format.json)
}

/// Prints the status in a line. Fails unless the driver is alive and, with a process id, of that process.
fn check(status: &DriverStatus, pid: Option<i64>) -> Result<(), Failure> {
    let line = status.line();
    if status.state != DriverState::Alive {
        return Err(Failure::Run(line));
    }
    if let Some(pid) = pid.filter(|pid| status.about.as_ref().is_none_or(|about| about.pid != *pid))
    {
        return Err(Failure::Run(format!("{line}, not {pid}")));
    }
    Ok(writeln!(io::stdout(), "{}", text::printable(&line))?)
}

/// Asks the driver to end, and waits for the end.
fn terminate(
    dir: &DriverDir,
    before: &DriverStatus,
    options: &DriverOptions,
) -> Result<DriverStatus, Failure> {
    const PAUSE: Duration = Duration::from_millis(20);
    let start = Instant::now();
    let is_over = || start.elapsed() >= options.timeout;
    while let Err(error) = request_driver_termination(&dir.path, options.token.as_bytes()) {
        match error.kind() {
            // The driver has ended before the request.
            ErrorKind::DriverTimeout => break,
            ErrorKind::BufferFull if !is_over() => thread::sleep(PAUSE),
            _ => return Err(Failure::run("cannot ask the driver to end", error)),
        }
    }
    loop {
        let cnc = dir.find()?;
        let status = dir.status(cnc.as_ref());
        if status.state != DriverState::Alive {
            return Ok(status);
        }
        if !is_same(before, &status) {
            // Another driver has the directory.
            return Ok(DriverStatus { state: DriverState::Ended, ..before.clone() });
        }
        if is_over() {
            let timeout = text::duration(options.timeout);
            return Err(Failure::Run(format!(
                "the driver in {} was asked to end and is still alive after {timeout}; its \
                 termination validator may have refused: AERON_DRIVER_TERMINATION_VALIDATOR=allow \
                 permits every client",
                dir.path.display()
            )));
        }
        thread::sleep(PAUSE);
    }
}

/// Returns whether both statuses belong to the same driver.
fn is_same(one: &DriverStatus, other: &DriverStatus) -> bool {
    let identity =
        |status: &DriverStatus| status.about.as_ref().map(|about| (about.pid, about.start_time));
    identity(one) == identity(other)
}

impl Report for Driver {
    fn header(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |name: &str, value: &str| lines.push(format!("{name:<18}{value}"));
        line("directory", &text::printable(&self.0.dir));
        line("state", &self.0.state_text());
        if let Some(about) = &self.0.about {
            line("process", &about.pid.to_string());
            line("Aeron", about.aeron_version.as_deref().unwrap_or("of an unknown version"));
            line("protocol", &about.protocol_version);
            // Zero if the clock was set back.
            let age = SystemTime::now().duration_since(about.start_time).unwrap_or_default();
            let age = text::duration(Duration::from_secs(age.as_secs()));
            line("started", &format!("{}, {age} ago", text::time(about.start_time)));
            let timeout = Duration::from_millis(about.client_liveness_timeout_ms);
            line("client liveness", &text::duration(timeout).to_string());
        }
        lines
    }
}
