//! `rusteron archive`: the recordings of an archive.
//!
//! Unlike the other commands, `archive` is a client: of the media driver, and of the archive.

mod recordings;
mod session;
mod tail;
mod verify;

use crate::driver_dir::DriverDir;
use crate::failure::Failure;
use crate::options::{ArchiveCommand, ArchiveOptions};

/// Stream id of the replays. Session ids distinguish them from other streams.
const REPLAY_STREAM_ID: i32 = 1001;

pub(crate) fn run(dir: &DriverDir, options: &ArchiveOptions) -> Result<(), Failure> {
    session::with_archive(dir, &options.connection, |archive| match &options.command {
        ArchiveCommand::List(options) => recordings::list(archive, options),
        ArchiveCommand::Count(options) => recordings::count(archive, options),
        ArchiveCommand::Describe(options) => recordings::describe(archive, options),
        ArchiveCommand::Verify(options) => verify::run(archive, options),
        ArchiveCommand::Tail(options) => tail::run(archive, options),
    })
}
