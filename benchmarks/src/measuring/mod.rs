//! Measuring a stream within this process: loops and samples.

pub mod cache_line;
pub mod connection;
pub mod endpoints;
pub mod measurement;
pub mod median;
pub mod message_path;
pub mod numbered;
pub mod publisher;
pub mod run;
pub mod subscriber;
