//! What the example programs are made of.
//!
//! The programs that show one thing each are whole in their files in `src/bin`; they share [`sample`],
//! and those with an archive, [`archive`].
//! Of those that measure, the files in `src/bin` are a `main` of a few lines, and the logic is here,
//! one noun per module:
//!
//! - options: [`options`], [`duration`], [`byte_size`], [`channel`];
//! - the streams to measure: [`connection`], and the way through them, [`message_path`];
//! - measuring: [`publisher`] and [`subscriber`] run in threads of their own, share a [`run`] with a
//!   [`cache_line`] for each, and [`measurement`] samples them;
//! - results: [`statistics`], [`number`], [`output`], [`json_file`], [`host`];
//! - the end: [`interrupt`], [`failure`];
//! - the program: [`throughput`].
//!
//! The programs of the package `rusteron-benchmarks` are made of the same parts.

pub mod archive;
pub mod byte_size;
pub mod cache_line;
pub mod channel;
pub mod connection;
pub mod duration;
pub mod failure;
pub mod host;
pub mod interrupt;
pub mod json_file;
pub mod measurement;
pub mod message_path;
pub mod number;
pub mod options;
pub mod output;
pub mod publisher;
pub mod run;
pub mod sample;
pub mod statistics;
pub mod subscriber;
pub mod throughput;

/// Compiles and runs the program in the project's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
