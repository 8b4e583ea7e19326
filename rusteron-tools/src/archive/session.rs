//! The session with an archive.

use std::sync::mpsc;

use rusteron_archive::Archive;
use rusteron_client::{Aeron, Context};

use crate::driver_dir::DriverDir;
use crate::failure::Failure;
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
    context.set_dir(dir.path())?.set_driver_timeout(dir.driver_timeout())?;
    context.set_error_handler(move |error| {
        // The receiver is gone only when the program is ending anyway.
        let _ = sender.send(error.clone());
    })?;
    let aeron = Aeron::connect(context)?;
    let outcome = connect(&aeron, options).and_then(|archive| command(&archive));
    // Waits for the client's thread, which may be about to report the cause.
    drop(aeron);
    match (outcome, background.try_recv()) {
        (Err(Failure::Run(text)), Ok(error)) => Err(Failure::run(text, error)),
        (outcome, _) => outcome,
    }
}

fn connect(aeron: &Aeron, options: &ArchiveConnectionOptions) -> Result<Archive, Failure> {
    let control_channel = options.control_channel.to_string();
    let mut context = rusteron_archive::Context::new()?;
    context
        .set_control_request_channel(&control_channel)?
        .set_control_response_channel(&options.response_channel.to_string())?;
    Archive::connect(aeron, context).map_err(|error| {
        Failure::run(format_args!("cannot connect to the archive at {control_channel}"), error)
    })
}
