//! The modules of the benchmarks, beside those that they share with the example programs.
//!
//! The files in `src/bin` are a `main` of a few lines each; the logic is here, one noun per module:
//!
//! - the programs: [`throughput`], [`latency`], [`idle_strategies`], [`driver_resources`], `preset_settings`,
//!   [`recording`], [`registrations`], [`bounds`], and [`instructions`], which reports what callgrind has
//!   counted;
//! - the contenders: [`throughput_side`], [`latency_side`], [`recording_side`] and
//!   [`registration_side`] each list the ways to compare, and run one of them once;
//! - the ways themselves: [`message_path`] (C's functions called from Rust), [`c_loops`] (loops written
//!   in C), [`ping_pong`] (round trips), [`java`] (programs in Java), [`driver_process`] (drivers),
//!   [`archive_process`] (an archive), all of them processes of their own ([`program`]);
//! - the bounds of the results: [`handover`] of a cache line, [`yields`], each a [`repetition`], and
//!   [`counted_stream`];
//! - results: [`comparison`], [`process_usage`], [`resource_comparison`], [`chart`], [`results`];
//! - [`options`].

pub mod archive_process;
pub mod batches;
pub mod bounds;
pub mod c_loops;
pub mod chart;
pub mod comparison;
pub mod counted_stream;
pub mod driver_process;
pub mod driver_resources;
pub mod handover;
pub mod idle_strategies;
pub mod instructions;
pub mod java;
pub mod latency;
pub mod latency_side;
pub mod message_path;
pub mod options;
pub mod ping_pong;
#[cfg(unix)]
pub mod preset_settings;
pub mod process_usage;
pub mod program;
pub mod recording;
pub mod recording_side;
pub mod registration_side;
pub mod registrations;
pub mod repetition;
pub mod resource_comparison;
pub mod results;
pub mod throughput;
pub mod throughput_side;
pub mod yields;
