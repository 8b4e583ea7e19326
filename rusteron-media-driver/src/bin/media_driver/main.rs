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

mod options;
mod statistics;

use std::fmt::Display;
use std::process::ExitCode;

use clap::Parser;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::files::ignore_file_size_signal;
use rusteron_core::program::exit_status::{WRONG_SETTING, of};
use rusteron_core::program::{self, print};
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_media_driver::program::{
    KnownSettings, Problem, context_without_event_log, driver_configuration, new_context,
    print_configuration, refuse_fatal_settings,
};
use rusteron_media_driver::{DriverContext, DriverInvoker, ThreadNaming};

use crate::options::Options;
use crate::statistics::Statistics;

/// Beginnings of the names that Aeron's archive, its cluster and its Java programs read.
const FOREIGN_PREFIXES: &[&str] = &["AERON_ARCHIVE_", "AERON_CLUSTER_", "AGRONA_"];

fn main() -> ExitCode {
    program::log_to_standard_error("media_driver");
    ignore_file_size_signal();
    let options = Options::parse();
    // SAFETY: no other thread has been started yet.
    let (origins, errors) = unsafe { options.apply_to_environment() };
    let mut known = KnownSettings::new(FOREIGN_PREFIXES);
    known.add_driver();
    let problems = Problem::all(&origins, &known);
    let accepted = options.common.accept("media_driver", &errors, problems, |_| false);
    let Some(problems) = accepted else { return WRONG_SETTING.into() };
    let outcome = if options.common.check_config {
        // SAFETY: there is still no other thread.
        unsafe { check_config(&options) }
    } else {
        run(&options, &problems)
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            print_error(&error);
            of(error.kind()).into()
        }
    }
}

/// Checks what depends on several settings.
///
/// # Safety
/// There is no other thread.
unsafe fn check_config(options: &Options) -> Result<ExitCode> {
    // SAFETY: the caller guarantees that there is no other thread.
    let context = unsafe { context_without_event_log() }?;
    context.check()?;
    if options.common.print_config {
        print_configuration(&driver_configuration(&context))?;
    } else {
        print("the configuration is valid\n");
    }
    Ok(ExitCode::SUCCESS)
}

fn print_error(what: impl Display) {
    program::print_error("media_driver", what);
}

/// Launches the driver and runs its idle loop. Errors are of the launch.
fn run(options: &Options, problems: &[Problem]) -> Result<ExitCode> {
    let mut context = new_context(problems)?;
    let warnings: Vec<_> = problems.iter().map(|problem| problem.warning(&context)).collect();
    if options.common.print_config {
        print_configuration(&driver_configuration(&context))?;
        // Comments, because the output is a file of properties.
        warnings.iter().for_each(|warning| print(format_args!("# {warning}")));
        return Ok(ExitCode::SUCCESS);
    }
    refuse_fatal_settings(problems, &context)?;
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
