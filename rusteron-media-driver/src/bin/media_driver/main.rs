//! A media driver as a process of its own, in place of Aeron's program `aeronmd`.
//!
//! Settings come from a preset, from the `AERON_*` environment variables, from `-D name=value`,
//! from files of properties and from the options. Each source overrides the sources before it. On
//! standard output, one line says when the driver is ready, and one when it is closed. Standard
//! error has only warnings and errors.
//!
//! The conductor, or the one agent of the shared modes, runs on the main thread, as in Aeron's program.

mod configuration;
mod exit_status;
mod logger;
mod options;
mod statistics;

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use rusteron_client::__private::keep_hangup_ignored;
use rusteron_client::{Error, ErrorKind, Result};
use rusteron_media_driver::{Context, DriverInvoker, ThreadNaming};

use crate::options::Options;
use crate::statistics::Statistics;

fn main() -> ExitCode {
    logger::install();
    let options = Options::parse();
    // SAFETY: no other thread has been started yet.
    if let Err(error) = unsafe { options.apply_to_environment() } {
        print_error(&error);
        return exit_status::WRONG_SETTING.into();
    }
    match run(&options) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error);
            exit_status::of(&error).into()
        }
    }
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

/// Launches the driver and runs its idle loop. Errors are of the launch.
fn run(options: &Options) -> Result<ExitCode> {
    let mut context = Context::new()?;
    if options.print_config {
        return print_config(&context).map(|()| ExitCode::SUCCESS);
    }
    let is_running = Arc::new(AtomicBool::new(true));
    stop_on_signals(&is_running)?;
    stop_on_request(&is_running, &mut context)?;
    name_main_thread(&mut context)?;

    let mut driver = DriverInvoker::launch(context)?;
    let dir = driver.aeron_dir().display().to_string();
    print(format_args!("media driver ready: {dir}\n"));
    let statistics = options.stats.map(|interval| Statistics::start(&driver, interval));
    let statistics = statistics.transpose()?;
    while is_running.load(Ordering::Acquire) {
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

fn print_config(context: &Context) -> Result<()> {
    match io::stdout().write_all(configuration::describe(context).as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Other, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn stop_on_signals(is_running: &Arc<AtomicBool>) -> Result<()> {
    let is_running = Arc::clone(is_running);
    let stop = move || is_running.store(false, Ordering::Release);
    keep_hangup_ignored(|| ctrlc::set_handler(stop))
        .map_err(|error| Error::new(ErrorKind::Other, format!("signal handler: {error}")))
}

/// Ends the driver when a client asks for it, if the validator that the environment names agrees.
fn stop_on_request(is_running: &Arc<AtomicBool>, context: &mut Context) -> Result<()> {
    let is_running = Arc::clone(is_running);
    context.set_termination_hook(move || is_running.store(false, Ordering::Release))?;
    Ok(())
}

/// Gives the main thread the name that its agent's own thread would have, if the operating system
/// shows such names and the extended names are enabled.
fn name_main_thread(context: &mut Context) -> Result<()> {
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
