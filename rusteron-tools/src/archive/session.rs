//! The session with an archive.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ArchiveError};
use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Backoff, Context, IdleStrategy};
use rusteron_core::program::{Failure, on_interrupt};

use crate::driver_dir::DriverDir;
use crate::options::ArchiveConnectionOptions;

/// Connects to an archive, and runs a command with the session.
///
/// If a fatal error has closed the client meanwhile, such as a dead media driver, adds this error to
/// the failure of the command.
pub(super) fn with_archive(
    dir: &DriverDir,
    options: &ArchiveConnectionOptions,
    command: impl FnOnce(&Archive) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (sender, background) = mpsc::channel();
    let mut context = Context::new()?;
    context.set_dir(&dir.path)?.set_driver_timeout(dir.driver_timeout)?;
    context.set_error_handler(move |error| {
        // The receiver is gone only when the program is ending anyway.
        let _ = sender.send(error.clone());
    })?;
    let aeron = Aeron::connect(context)?;
    let (sender, reports) = mpsc::channel();
    let outcome = connect(&aeron, options, sender).and_then(|archive| command(&archive));
    // Waits for the client's thread, which may be about to report the cause.
    drop(aeron);
    let report = reports.try_recv().ok().map(|error| error.message().to_owned());
    let fatal = background.try_recv().ok().map(|error| error.to_string());
    outcome.map_err(|failure| match failure {
        Failure::Run(text) => {
            let causes = [report, fatal].into_iter().flatten();
            Failure::Run(causes.fold(text, |text, cause| format!("{text}: {cause}")))
        }
        failure => failure,
    })
}

/// Returns the failure of a replay that has ended early, with the archive's reason, which can come
/// after its end.
pub(super) fn replay_ended(archive: &Archive, text: String) -> Failure {
    let deadline = Instant::now() + REASON_DEADLINE;
    while Instant::now() < deadline {
        if let Ok(Some(reason)) = archive.poll_for_error_response() {
            return Failure::run(text, reason);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Failure::Run(text)
}

/// `reports` gets what the archive reports beside its answers.
fn connect(
    aeron: &Aeron,
    options: &ArchiveConnectionOptions,
    reports: mpsc::Sender<ArchiveError>,
) -> Result<Archive, Failure> {
    let control_channel = options.control_channel.to_string();
    let mut context = rusteron_archive::ArchiveContext::new()?;
    context
        .set_control_request_channel(&control_channel)?
        .set_control_response_channel(&options.response_channel.to_string())?
        // The receiver is gone only when the program is ending anyway.
        .set_error_handler(move |error| _ = reports.send(error.clone()))?;
    Archive::connect(aeron, context).map_err(|error| {
        Failure::run(format_args!("cannot connect to the archive at {control_channel}"), error)
    })
}

/// Longest time for the reason of a replay's end.
const REASON_DEADLINE: Duration = Duration::from_secs(1);
/// Longest time without any work, for a loop that has to end.
const DEADLINE: Duration = Duration::from_secs(60);

/// The idle strategy of a loop that the user can end.
#[derive(Debug)]
pub(super) struct IdleLoop {
    shutdown: ShutdownSignal,
    idle: Backoff,
    /// `None` if only the user ends the loop.
    deadline: Option<Instant>,
}

impl IdleLoop {
    /// For a loop that fails after a minute without work.
    pub(super) fn with_deadline() -> Result<Self, Failure> {
        Ok(Self { deadline: Some(Instant::now() + DEADLINE), ..Self::until_interrupted()? })
    }

    /// For a loop that may wait for any time.
    pub(super) fn until_interrupted() -> Result<Self, Failure> {
        let shutdown = on_interrupt()?;
        Ok(Self { shutdown, idle: Backoff::default(), deadline: None })
    }

    /// Idles if the last pass of the loop had no work. Fails after the deadline, or if the user wants
    /// the end.
    pub(super) fn idle(&mut self, work_count: usize) -> Result<(), Failure> {
        if self.shutdown.is_signalled() {
            return Err(Failure::Interrupted);
        }
        if let Some(deadline) = &mut self.deadline {
            if work_count > 0 {
                *deadline = Instant::now() + DEADLINE;
            } else if Instant::now() >= *deadline {
                let seconds = DEADLINE.as_secs();
                return Err(Failure::Run(format!("no data of the replay for {seconds} s")));
            }
        }
        self.idle.idle(work_count);
        Ok(())
    }
}
