//! The programs `archive` and `archiving_media_driver`.
//!
//! Settings come from the `AERON_ARCHIVE_*` environment variables, from `-D name=value` and files of properties as Java's
//! programs take them, and from the options. Each source overrides the sources before it. On standard output, one line
//! says when the archive is ready, and one when it is closed. Standard error has only errors.
//!
//! A setting that is unknown is a line of standard output, or with `--strict` an error. A setting of the archive whose
//! value cannot be read is always an error.

mod driver_classes;
mod exit_status;
mod options;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusteron_client::IdleStrategy;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::files::ignore_file_size_signal;
use rusteron_core::program::exit_status::WRONG_SETTING;
use rusteron_core::program::{self, print};
use rusteron_media_driver::program::{
    KnownSettings, Problem, context_without_event_log, driver_configuration, new_context,
    print_configuration, refuse_fatal_settings, setting_line,
};
use rusteron_media_driver::{DriverContext, MediaDriver, ThreadingMode};

use self::options::{Archive, ArchivingMediaDriver, Options};
use crate::context::{ArchiveServerContext, ArchiveThreadingMode};
use crate::error::{Result, ServerError};
use crate::server::ArchiveServer;

/// Beginnings of the names that Aeron's cluster, Java, and Java's programs read.
const FOREIGN_PREFIXES: &[&str] = &[
    "AERON_ARCHIVE_CLIENT_",
    "AERON_CLUSTER_",
    "AERON_EVENT_ARCHIVE_",
    "AERON_EVENT_CLUSTER_",
    "AGRONA_",
    "JAVA_",
    "JDK_",
    "SUN_",
];

/// Runs the program `archive`, with the command line of this process.
///
/// # Safety
/// There is no other thread.
pub unsafe fn archive() -> ExitCode {
    let Archive { options } = Archive::parse();
    let program = Program { name: "archive", options, has_driver: false };
    // SAFETY: the caller guarantees that there is no other thread.
    unsafe { program.main() }
}

/// Runs the program `archiving_media_driver`, with the command line of this process.
///
/// # Safety
/// There is no other thread.
pub unsafe fn archiving_media_driver() -> ExitCode {
    let ArchivingMediaDriver { options } = ArchivingMediaDriver::parse();
    let program = Program { name: "archiving_media_driver", options, has_driver: true };
    // SAFETY: the caller guarantees that there is no other thread.
    unsafe { program.main() }
}

struct Program {
    name: &'static str,
    options: Options,
    /// The media driver runs in this process.
    has_driver: bool,
}

impl Program {
    /// # Safety
    /// There is no other thread.
    unsafe fn main(&self) -> ExitCode {
        program::log_to_standard_error(self.name);
        ignore_file_size_signal();
        // SAFETY: the caller guarantees that there is no other thread.
        let (origins, errors) = unsafe { self.options.apply_to_environment() };
        let mut errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        if self.has_driver {
            // SAFETY: as above.
            errors.extend(unsafe { driver_classes::translate(&origins) });
        }
        let problems = Problem::all(&origins, &self.known_settings());
        let options = &self.options.common;
        let accepted = options.accept(self.name, &errors, problems, is_of_archive);
        let Some(problems) = accepted else { return WRONG_SETTING.into() };
        let outcome = if options.check_config || options.print_config {
            // SAFETY: there is still no other thread.
            unsafe { self.show_configuration(&problems) }.map(|()| ExitCode::SUCCESS)
        } else {
            self.run(&problems)
        };
        outcome.unwrap_or_else(|error| {
            program::print_error(self.name, &error);
            exit_status::of(error.kind()).into()
        })
    }

    fn known_settings(&self) -> KnownSettings {
        let mut known = KnownSettings::new(FOREIGN_PREFIXES);
        if self.has_driver {
            known.add_driver();
        } else {
            // Of the process that runs the driver, which shares the environment or the file of properties.
            DriverContext::settings().for_each(|setting| known.add(setting.variable(), |_| Ok(())));
        }
        for setting in ArchiveServerContext::settings() {
            known.add(setting.variable(), move |text| setting.check(text));
        }
        known
    }

    /// Checks the configuration, or prints it, or both.
    ///
    /// # Safety
    /// There is no other thread.
    unsafe fn show_configuration(&self, problems: &[Problem]) -> Result<()> {
        let context = ArchiveServerContext::from_env()?;
        // SAFETY: the caller guarantees that there is no other thread.
        let new_driver = || unsafe { context_without_event_log() };
        let driver = self.has_driver.then(new_driver).transpose()?;
        if self.options.common.check_config {
            context.check()?;
            driver.as_ref().map_or(Ok(()), |driver| context.check_dirs(driver.dir()))?;
            driver.as_ref().map_or(Ok(()), DriverContext::check)?;
        }
        if !self.options.common.print_config {
            print("the configuration is valid\n");
            return Ok(());
        }
        // Those that it shares with the driver come with the driver's.
        let mut text: String = ArchiveServerContext::settings()
            .filter(|it| !self.has_driver || DriverContext::setting(it.variable()).is_none())
            .map(|setting| setting_line(setting.variable(), setting.value(&context)))
            .collect();
        text.extend(driver.as_ref().map(driver_configuration));
        // Comments, because the output is a file of properties.
        text.extend(warnings(problems, driver.as_ref()).map(|warning| format!("# {warning}")));
        print_configuration(&text)?;
        Ok(())
    }

    /// Launches driver and archive, and waits for the end of the process.
    fn run(&self, problems: &[Problem]) -> Result<ExitCode> {
        let context = ArchiveServerContext::from_env()?;
        context.check()?;
        let shutdown = ShutdownSignal::on_interrupt()
            .map_err(|error| ServerError::io("the handler of signals", &error))?;
        let mode = context.threading_mode();
        let mut idle = context.idle_strategy().new_strategy();
        let (mut server, warnings) = if self.has_driver {
            let driver_context = Self::driver_context(problems, &shutdown)?;
            let warnings: Vec<_> = warnings(problems, Some(&driver_context)).collect();
            context.check_dirs(driver_context.dir())?;
            let driver = MediaDriver::launch(driver_context)?;
            (ArchiveServer::launch_with_driver(driver, context)?, warnings)
        } else {
            (ArchiveServer::launch(context)?, warnings(problems, None).collect())
        };
        let dir = server.archive_dir().display().to_string();
        print(format_args!("archive ready: {dir}\n"));
        warnings.iter().for_each(print);
        while !shutdown.is_signalled() && !server.has_ended() {
            match mode {
                ArchiveThreadingMode::Invoker => {
                    let work_count = server.do_work()?;
                    idle.idle(work_count);
                }
                _ => _ = shutdown.wait_timeout(Duration::from_millis(100)),
            }
        }
        let has_ended = server.has_ended();
        match server.close() {
            // The log has it already.
            Err(error) if has_ended => return Ok(exit_status::of(error.kind()).into()),
            closed => closed?,
        }
        print(format_args!("archive closed: {dir}\n"));
        Ok(ExitCode::SUCCESS)
    }

    /// Makes the driver's context. `shutdown` is given when a client asks for the end, if the validator that the
    /// settings name agrees.
    fn driver_context(problems: &[Problem], shutdown: &ShutdownSignal) -> Result<DriverContext> {
        let mut context = new_context(problems)?;
        refuse_fatal_settings(problems, &context)?;
        // The driver's thread works while this one launches the archive and waits.
        if context.threading_mode() == ThreadingMode::Invoker {
            context.set_threading_mode(ThreadingMode::Shared)?;
        }
        let on_request = shutdown.clone();
        context.set_termination_hook(move || on_request.signal())?;
        Ok(context)
    }
}

fn is_of_archive(problem: &Problem) -> bool {
    problem.variable.and_then(ArchiveServerContext::setting).is_some()
}

/// Describes the settings that no part of the program knows or can read, a line each.
fn warnings<'a>(
    problems: &'a [Problem],
    driver: Option<&'a DriverContext>,
) -> impl Iterator<Item = String> + 'a {
    problems.iter().map(move |problem| match driver {
        Some(driver) => problem.warning(driver),
        None => format!("warning: {problem}\n"),
    })
}
