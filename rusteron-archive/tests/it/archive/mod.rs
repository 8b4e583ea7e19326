//! Sessions, and their requests by subject.

mod connect;
mod listing;
mod recording;
mod replay;
mod replication;
mod segments;
