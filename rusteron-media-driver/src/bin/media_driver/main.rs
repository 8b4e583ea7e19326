//! A media driver as a process of its own, in place of Aeron's program `aeronmd`.
//!
//! Settings come from a preset, from the `AERON_*` environment variables, from `-D name=value`,
//! from files of properties and from the options. Each source overrides the sources before it. On
//! standard output, one line says when the driver is ready, and one when it is closed. Standard
//! error has only errors.
//!
//! A setting that is unknown or cannot be read is a line of standard output, or with `--strict` an
//! error. Supervisors of Aeron's program take any text on standard error for a failure.
//! `--check-config` checks the settings and starts nothing.
//!
//! The conductor, or the one agent of the shared modes, runs on the main thread, as in Aeron's program.

mod exit_status;
mod options;
mod problems;
mod statistics;

use std::env;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use log::{LevelFilter, Log, Metadata, Record};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_media_driver::{DriverContext, DriverInvoker, Setting, ThreadNaming};

use crate::options::Options;
use crate::problems::Problem;
use crate::statistics::Statistics;

fn main() -> ExitCode {
    // There is no other logger yet.
    if log::set_logger(&StandardError).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
    let options = Options::parse();
    // SAFETY: no other thread has been started yet.
    let (origins, errors) = unsafe { options.apply_to_environment() };
    let problems = Problem::all(&origins);
    errors.iter().for_each(print_error);
    let are_refused = options.strict || options.check_config;
    if are_refused {
        problems.iter().for_each(print_error);
    }
    if !errors.is_empty() || are_refused && !problems.is_empty() {
        return exit_status::WRONG_SETTING.into();
    }
    let outcome = if options.check_config {
        // SAFETY: there is still no other thread.
        unsafe { check_config(&options) }
    } else {
        run(&options, &problems)
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            print_error(&error);
            exit_status::of(&error).into()
        }
    }
}

/// Checks what depends on several settings.
///
/// # Safety
/// There is no other thread.
unsafe fn check_config(options: &Options) -> Result<ExitCode> {
    // Making a context would open the file of the event log, and start a thread that writes it.
    const EVENT_LOG: &str = "AERON_EVENT_LOG";
    let events = env::var_os(EVENT_LOG);
    // SAFETY: the caller guarantees that there is no other thread.
    unsafe { env::remove_var(EVENT_LOG) };
    let context = DriverContext::new();
    if let Some(events) = events {
        // SAFETY: making a context has started no thread, without an event log.
        unsafe { env::set_var(EVENT_LOG, events) };
    }
    let context = context?;
    context.check()?;
    if options.print_config {
        print_config(&context)?;
    } else {
        print("the configuration is valid\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes the settings that the driver does not know or cannot read, a line each.
fn warnings(problems: &[Problem], context: &DriverContext) -> Vec<String> {
    let warning = |problem: &Problem| match problem.value_instead(context) {
        None => format!("warning: {problem}\n"),
        Some(instead) => format!("warning: {problem}; the driver takes {instead}\n"),
    };
    problems.iter().map(warning).collect()
}

/// Prints text to standard output. A closed pipe is no reason to end a driver.
fn print(text: impl Display) {
    let mut out = io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line to standard error. A closed pipe is ignored as well.
fn print_error(what: impl Display) {
    let _ = writeln!(io::stderr(), "media_driver: {what}");
}

/// Prints the library's warnings and errors to standard error.
struct StandardError;

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            print_error(record.args());
        }
    }

    fn flush(&self) {}
}

/// Launches the driver and runs its idle loop. Errors are of the launch.
fn run(options: &Options, problems: &[Problem]) -> Result<ExitCode> {
    let mut context = match DriverContext::new() {
        Err(error) if !problems.is_empty() => {
            problems.iter().for_each(print_error);
            // For some values, C fails without a text.
            if error.code() != 0 {
                print_error(error);
            }
            return Ok(exit_status::WRONG_SETTING.into());
        }
        context => context?,
    };
    let warnings = warnings(problems, &context);
    if options.print_config {
        print_config(&context)?;
        // Comments, because the output is a file of properties.
        warnings.iter().for_each(|warning| print(format_args!("# {warning}")));
        return Ok(ExitCode::SUCCESS);
    }
    let mut refused = problems.iter().filter(|problem| problem.is_fatal(&context)).peekable();
    if refused.peek().is_some() {
        refused.for_each(print_error);
        return Ok(exit_status::WRONG_SETTING.into());
    }
    let shutdown = ShutdownSignal::on_interrupt()
        .map_err(|error| Error::new(ErrorKind::Other, format!("signal handler: {error}")))?;
    // Also when a client asks for the end, if the validator that the environment names agrees.
    let on_request = shutdown.clone();
    context.set_termination_hook(move || on_request.signal())?;
    name_main_thread(&mut context)?;

    let mut driver = DriverInvoker::launch(context)?;
    let dir = driver.aeron_dir().display().to_string();
    print(format_args!("media driver ready: {dir}\n"));
    warnings.iter().for_each(print);
    let statistics = options.stats.map(|interval| Statistics::start(&driver, interval));
    let statistics = statistics.transpose()?;
    while !shutdown.is_signalled() {
        // As in Aeron's program, a failed invocation counts as one without work: the agents have
        // written the error to the driver's error log.
        let work_count = driver.do_work().unwrap_or(0);
        driver.idle(work_count);
    }
    drop(statistics);
    // An error of closing does not predict a refusal of the next start.
    if let Err(error) = driver.close() {
        print_error(format_args!("{dir}: {error}"));
        return Ok(ExitCode::FAILURE);
    }
    print(format_args!("media driver closed: {dir}\n"));
    Ok(ExitCode::SUCCESS)
}

/// Prints all settings as a file of properties, which gives a driver the same settings again. A setting that is not set
/// and has no default is a comment.
fn print_config(context: &DriverContext) -> Result<()> {
    let line = |setting: &Setting| {
        let name = setting.variable();
        match setting.value(context) {
            _ if !setting.is_read() => format!("# {name} is read by no part of the driver\n"),
            Some(value) => format!("{name}={value}\n"),
            None => format!("# {name} is not set\n"),
        }
    };
    let text: String = Setting::all().iter().map(line).collect();
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Other, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Gives the main thread the name that its agent's own thread would have, if the operating system
/// shows such names and the extended names are enabled.
fn name_main_thread(context: &mut DriverContext) -> Result<()> {
    if context.thread_naming() == ThreadNaming::New {
        let main_thread = std::thread::current().id();
        context.set_agent_on_start(move |role| {
            if std::thread::current().id() == main_thread {
                // A failure is ignored: it is only a name.
                let _ = std::fs::write("/proc/thread-self/comm", role);
            }
        })?;
    }
    Ok(())
}
