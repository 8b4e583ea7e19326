//! The connection to the media driver.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::raw_client::RawClient;
use rusteron_client::{Aeron, CncFile, Context};
use rusteron_core::cnc::ClientIdentity;

use crate::context::ArchiveServerContext;
use crate::counters::ArchiveCounters;
use crate::error::{Result, ServerError, ServerErrorKind};
use crate::ids::ArchiveId;

/// The archive id that stands for a number of the media driver.
const NO_ID: i64 = -1;

/// Returns the archive's id: the one of the settings, or a number of the media driver.
pub(crate) fn archive_id(settings: &ArchiveServerContext) -> Result<ArchiveId> {
    match settings.archive_id() {
        // The client that stays tells the driver of the id when it connects.
        NO_ID => Ok(Aeron::connect(context(settings)?)?.next_correlation_id().into()),
        id => Ok(id.into()),
    }
}

/// Connects the client of a server, which has no thread of its own, and closes that of a killed one.
///
/// If the killed server's counters have the same archive id, blocks until the media driver has freed them, at its next
/// timer: 1 s by default.
///
/// # Errors
/// [`ActiveArchive`](ServerErrorKind::ActiveArchive) if the media driver has an archive of this id, and errors of the
/// client.
pub(crate) fn connect(
    settings: &ArchiveServerContext,
    layouts: ArchiveCounters,
    errors: Sender<String>,
    killed: Option<&ClientIdentity>,
) -> Result<Aeron> {
    let archive_id = layouts.archive_id;
    let mut context = context(settings)?;
    context
        .set_client_name(&format!("archive archiveId={archive_id}"))?
        // Without a receiver, the server is ending.
        .set_error_handler(move |error| _ = errors.send(error.to_string()))?;
    let aeron = Aeron::connect(context)?;
    if let Some(killed) = killed {
        close_killed(&aeron, layouts, killed)?;
    }
    if layouts.find_owner(&aeron.counters_reader()).is_some() {
        let dir = aeron.context().dir().display();
        let text = format!(
            "found existing archive for archiveId={archive_id} on the media driver in {dir}: \
             give each an id of its own (AERON_ARCHIVE_ID)"
        );
        return Err(ServerError::new(ServerErrorKind::ActiveArchive, text));
    }
    Ok(aeron)
}

/// Closes the client of a killed server, and waits until the media driver has freed its counters if they have the same
/// archive id. Without the command, the driver does that after the client liveness timeout, which bounds the wait.
fn close_killed(aeron: &Aeron, layouts: ArchiveCounters, killed: &ClientIdentity) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(1);
    let client = RawClient::new(aeron);
    // The next run of a driver has another client of this id.
    if !killed.has_driver_of(&client.identity()) {
        return Ok(());
    }
    let mut is_sent = client.close_ended(killed);
    let is_left = || layouts.find_owner(&aeron.counters_reader()) == Some(killed.client_id);
    if !is_left() {
        return Ok(());
    }
    log::info!(
        "archive id {}: waiting until the media driver frees the counters of the killed archive",
        layouts.archive_id
    );
    let context = aeron.context();
    let cnc = CncFile::open(context.dir(), context.driver_timeout())?;
    let deadline = Instant::now() + cnc.client_liveness_timeout();
    while is_left() && Instant::now() < deadline {
        // The buffer of commands may have been full.
        is_sent = is_sent || client.close_ended(killed);
        aeron.do_work()?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

pub(crate) fn context(settings: &ArchiveServerContext) -> Result<Context> {
    let mut context = Context::new()?;
    if let Some(dir) = settings.aeron_dir() {
        context.set_dir(dir)?;
    }
    context.set_use_conductor_agent_invoker(true)?;
    Ok(context)
}

/// Returns the page size of a media driver's files, in bytes. Waits for the driver as a client does.
pub(crate) fn file_page_size(context: &Context) -> Result<usize> {
    let cnc = CncFile::open(context.dir(), context.driver_timeout())?;
    // The mark file refuses 0.
    Ok(usize::try_from(cnc.constants().file_page_size).unwrap_or(0))
}
