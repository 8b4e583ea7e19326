//! `rusteron archive`: the recordings of an archive.
//!
//! Unlike the other commands, `archive` is a client: of the media driver, and of the archive. With a directory, it is none,
//! and `rusteron_archive_server::offline` reads and changes the files.

mod edits;
mod recordings;
mod session;
mod tail;
mod verify;
mod verify_files;

use rusteron_archive::Archive;
use rusteron_archive_server::offline::ArchiveFiles;
use rusteron_core::program::Failure;

use crate::driver_dir::DriverDir;
use crate::options::{ArchiveCommand, ArchiveOptions};

/// Stream id of the replays. Session ids distinguish them from other streams.
const REPLAY_STREAM_ID: i32 = 1001;

pub(crate) fn run(dir: &DriverDir, options: &ArchiveOptions) -> Result<(), Failure> {
    let in_session = |command: &dyn Fn(&Archive) -> Result<(), Failure>| {
        session::with_archive(dir, &options.connection, command)
    };
    match &options.command {
        ArchiveCommand::List(options) => match &options.files.archive_dir {
            Some(path) => recordings::list(of_files(&ArchiveFiles::open(path)?), options),
            None => in_session(&|it| recordings::list(recordings::of_archive(it)?, options)),
        },
        ArchiveCommand::Count(options) => match &options.files.archive_dir {
            Some(path) => recordings::count(&of_files(&ArchiveFiles::open(path)?), options),
            None => in_session(&|it| recordings::count(&recordings::of_archive(it)?, options)),
        },
        ArchiveCommand::Describe(options) => match &options.files.archive_dir {
            Some(path) => recordings::describe_files(&ArchiveFiles::open(path)?, options),
            None => in_session(&|archive| recordings::describe(archive, options)),
        },
        ArchiveCommand::Verify(options) => match &options.files.archive_dir {
            Some(path) => verify_files::run(path, options),
            None => in_session(&|archive| verify::run(archive, options)),
        },
        ArchiveCommand::Tail(options) => in_session(&|archive| tail::run(archive, options)),
        ArchiveCommand::MarkValid(options) => edits::mark_valid(options),
        ArchiveCommand::MarkInvalid(options) => edits::mark_invalid(options),
        ArchiveCommand::Compact(options) => edits::compact(options),
        ArchiveCommand::DeleteOrphanedSegments(options) => edits::delete_orphaned_segments(options),
    }
}

fn of_files(files: &ArchiveFiles) -> Vec<recordings::Recording> {
    files.recordings().iter().map(Into::into).collect()
}
