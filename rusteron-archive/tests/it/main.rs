//! The archive client, mostly with Aeron's Java archive. Modules mirror `src/`.
//!
//! Without Java, tests that need an archive do nothing, and say so. `RUSTERON_REQUIRE_JAVA=1` makes
//! that a failure.

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
