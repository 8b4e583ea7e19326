//! The archive client, mostly with an archive. Modules mirror `src/`.
//!
//! The archive is Java's or, without Java, `rusteron-archive-server`'s; with it, tests of requests that it refuses do
//! nothing, and say so. `RUSTERON_REQUIRE_JAVA=1` makes both a failure.

/// Sessions, and their requests by subject.
mod archive {
    mod connect;
    mod listing;
    mod recording;
    mod replay;
    mod replication;
    mod segments;
}
mod async_archive;
mod coverage;
mod faults;
mod integrity;
mod malformed_messages;
mod persistent_subscription;
mod reentry;
mod replay_merge;
