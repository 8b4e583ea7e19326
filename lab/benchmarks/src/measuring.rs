//! Measuring a stream within this process: loops and samples.

pub mod archive_streams;
pub mod connection;
pub mod measurement;
pub mod message_path;
pub mod numbered;
pub mod publisher;
pub mod run;
pub mod subscriber;
