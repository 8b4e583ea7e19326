//! The media driver of a program: its settings, and what it takes in place of those that it cannot read.

use std::env;
use std::io::{self, Write as _};

use rusteron_core::{Error, ErrorKind, Result};

use super::{KnownSettings, Problem};
use crate::{DriverContext, Setting};

impl KnownSettings {
    /// Adds the settings of the media driver.
    pub fn add_driver(&mut self) {
        for setting in DriverContext::settings() {
            self.add(setting.variable(), move |text| match setting.is_read() {
                true => setting.check(text),
                false => Err("read by no part of the driver".into()),
            });
        }
    }
}

impl Problem {
    /// Returns the value that the driver has in place of one that it cannot read, if the driver tells.
    fn value_instead(&self, context: &DriverContext) -> Option<String> {
        DriverContext::setting(self.variable?)?.value_in_context(context)
    }

    /// Returns whether a launch would refuse the value that the driver has instead.
    fn is_fatal(&self, context: &DriverContext) -> bool {
        let known = self.variable.and_then(DriverContext::setting);
        let instead = self.value_instead(context);
        known.zip(instead).is_some_and(|(known, instead)| known.check(&instead).is_err())
    }

    /// Describes the problem on a line, with the value that the driver takes.
    pub fn warning(&self, context: &DriverContext) -> String {
        match self.value_instead(context) {
            None => format!("warning: {self}\n"),
            Some(instead) => format!("warning: {self}; the driver takes {instead}\n"),
        }
    }
}

/// Makes the driver's context of the environment.
///
/// # Errors
/// As for [`DriverContext::new`]; [`ErrorKind::InvalidArgument`] if there are problems, which are
/// the reason.
pub fn new_context(problems: &[Problem]) -> Result<DriverContext> {
    DriverContext::new().map_err(|error| match problems {
        [] => error,
        problems => {
            // For some values, C fails without a text.
            let text = (error.code() != 0).then(|| error.to_string());
            invalid(problems.iter().map(ToString::to_string).chain(text))
        }
    })
}

/// Refuses a launch with values that would fail it.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] with these problems.
pub fn refuse_fatal_settings(problems: &[Problem], context: &DriverContext) -> Result<()> {
    let fatal = problems.iter().filter(|problem| problem.is_fatal(context));
    let mut fatal = fatal.map(ToString::to_string).peekable();
    if fatal.peek().is_some() { Err(invalid(fatal)) } else { Ok(()) }
}

fn invalid(problems: impl Iterator<Item = String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, problems.collect::<Vec<_>>().join("; "))
}

/// Makes a context without opening the file of the event log, and without a thread that writes it.
///
/// # Errors
/// As for [`DriverContext::new`].
///
/// # Safety
/// There is no other thread.
pub unsafe fn context_without_event_log() -> Result<DriverContext> {
    const EVENT_LOG: &str = "AERON_EVENT_LOG";
    let events = env::var_os(EVENT_LOG);
    // SAFETY: the caller guarantees that there is no other thread.
    unsafe { env::remove_var(EVENT_LOG) };
    let context = DriverContext::new();
    if let Some(events) = events {
        // SAFETY: making a context has started no thread, without an event log.
        unsafe { env::set_var(EVENT_LOG, events) };
    }
    context
}

/// Writes all settings as a file of properties, which gives a driver the same settings again. A setting that is not set
/// and has no default is a comment.
pub fn driver_configuration(context: &DriverContext) -> String {
    let line = |setting: &Setting| match setting.is_read() {
        true => setting_line(setting.variable(), setting.value(context)),
        false => format!("# {} is read by no part of the driver\n", setting.variable()),
    };
    DriverContext::settings().map(line).collect()
}

/// Writes a line of a file of properties, or a comment if the setting is not set and has no
/// default.
pub fn setting_line(variable: &str, value: Option<String>) -> String {
    match value {
        Some(value) => format!("{variable}={value}\n"),
        None => format!("# {variable} is not set\n"),
    }
}

/// Prints a file of properties to standard output.
///
/// # Errors
/// If it cannot be written. A reader may end before.
pub fn print_configuration(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Other, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
