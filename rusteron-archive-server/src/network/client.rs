//! The connection to the media driver.

use std::sync::mpsc::Sender;

use rusteron_client::{Aeron, CncFile, Context};

use crate::context::ArchiveServerContext;
use crate::counters::ArchiveCounters;
use crate::error::{Result, ServerError, ServerErrorKind};

/// The archive id that stands for a number of the media driver.
const NO_ID: i64 = -1;

/// Returns the archive's id: the one of the settings, or a number of the media driver.
pub(crate) fn archive_id(settings: &ArchiveServerContext) -> Result<i64> {
    match settings.archive_id() {
        // The client that stays tells the driver of the id when it connects.
        NO_ID => Ok(Aeron::connect(context(settings)?)?.next_correlation_id()),
        id => Ok(id),
    }
}

/// Connects the client of a server, which has no thread of its own.
///
/// # Errors
/// [`ActiveArchive`](ServerErrorKind::ActiveArchive) if the media driver has an archive of this id, and errors of the
/// client.
pub(crate) fn connect(
    settings: &ArchiveServerContext,
    layouts: ArchiveCounters,
    errors: Sender<String>,
) -> Result<Aeron> {
    let archive_id = layouts.archive_id;
    let mut context = context(settings)?;
    context
        .set_client_name(&format!("archive archiveId={archive_id}"))?
        // Without a receiver, the server is ending.
        .set_error_handler(move |error| _ = errors.send(error.to_string()))?;
    let aeron = Aeron::connect(context)?;
    if layouts.find_errors(&aeron.counters_reader()).is_some() {
        let dir = aeron.context().dir().display();
        let text = format!(
            "found existing archive for archiveId={archive_id} on the media driver in {dir}: \
             give each an id of its own (AERON_ARCHIVE_ID)"
        );
        return Err(ServerError::new(ServerErrorKind::ActiveArchive, text));
    }
    Ok(aeron)
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
