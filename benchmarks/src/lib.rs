//! The library of the benchmarks. The fault campaign in `survival/` shares its command line.
//!
//! Each folder uses only the folders above it:
//!
//! - [`command_line`]: options, output, signals, exit codes;
//! - [`measuring`]: a stream within this process, its publisher, its subscriber and its samples;
//! - [`processes`]: programs in Java, drivers and archives, each a process of its own;
//! - [`contenders`]: the contenders of each comparison, and the ways that messages go;
//! - [`reports`]: comparisons, tables, charts, JSON files;
//! - [`programs`]: one program in each file. `src/bin` has a `main` of a few lines for each.

pub mod command_line;
pub mod contenders;
pub mod measuring;
pub mod processes;
pub mod programs;
pub mod reports;
