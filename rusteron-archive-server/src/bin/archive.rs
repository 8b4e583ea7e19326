//! An archive as a process of its own, on the media driver of another process, in place of Java's `Archive`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: no other thread has been started yet.
    unsafe { rusteron_archive_server::program::archive() }
}
