//! The helpers that the archive's tests share: a Java archive of their own.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "every test file uses a part of it")]

#[path = "../../../rusteron-client/tests/support/mod.rs"]
mod client;
mod java_archive;
mod recorded;

pub use client::{
    PATIENCE, Random, await_some, await_that, block_on, connect as client_of, connected_pair,
    free_port, launch_with, offer, receive, retry,
};
pub use java_archive::{JavaArchive, Options};
pub use recorded::{
    REPLAY_STREAM, STREAM, await_recording, drain, extend_what_was_kept, long_message,
    mapped_log_buffers, message, numbered, offer_numbered, offer_until_recorded, record,
    replay_all,
};
