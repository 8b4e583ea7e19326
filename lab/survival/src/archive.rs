//! A campaign of kills: an archive server is killed at random moments and started again at once, sometimes with its media
//! driver, while it records several streams and replays them.
//!
//! The supervisor is the client. It publishes streams over IPC and UDP, asks the archive to record
//! them, and notes every position that the archive announces: by a counter, a recording event or a
//! signal. After each kill, another server opens the directory, and the streams go on where their
//! recordings end (`life`). What a message holds follows from its numbers, so a replay shows
//! whether the recorded bytes are those that were sent (`stream`).
//!
//! These conditions must hold:
//! - A server starts whenever another one was killed, without a wait.
//! - No recording and no position that was announced is missing, and nothing is recorded that was not sent.
//! - Each recording has an end, and can be extended there.
//! - Replays have all messages in order, also those that follow a recording in progress.
//! - In the end, Java's `ArchiveTool verify` accepts the directory. This is skipped without Java.
//!
//! Moments vary: while a server starts, while it takes requests, and while it records and replays. So do sync levels,
//! checksums, and threads. Segments are short, so that many kills meet the change from one file to the next.
//!
//! `just survival archive --duration 10m` runs it, and prints the times from starts of processes to servers that are ready.
//! `--seed` chooses the same plan again; the machine decides what the server does at that moment.

mod campaign;
mod life;
mod server;
mod stream;

pub(crate) use campaign::{ArchiveOptions, NAME, run};
pub(crate) use server::play;
