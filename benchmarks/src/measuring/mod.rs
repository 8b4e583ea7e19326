//! Measuring a stream within this process: loops, samples, statistics, bounds.

pub mod allocations;
pub mod cache_line;
pub mod channel;
pub mod connection;
pub mod counted_stream;
pub mod endpoints;
pub mod handover;
pub mod measurement;
pub mod message_path;
pub mod numbered;
pub mod publisher;
pub mod repetition;
pub mod run;
pub mod statistics;
pub mod subscriber;
pub mod yields;
