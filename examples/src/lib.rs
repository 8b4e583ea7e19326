//! The parts of the example programs.
//!
//! The programs that show one thing each are whole in their files in `src/bin`. They share [`sample`].
//! The programs with an archive also share [`archive`].
//! The programs that measure have a `main` of a few lines in `src/bin`. Their logic is here, one noun
//! per module:
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
