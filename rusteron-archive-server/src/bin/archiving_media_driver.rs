//! A media driver with an archive as a process of its own, in place of Java's `ArchivingMediaDriver`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: no other thread has been started yet.
    unsafe { rusteron_archive_server::program::archiving_media_driver() }
}
