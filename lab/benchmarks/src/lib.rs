//! The library of the program `benchmark`. `lab/cross-language/` shares its reports.
//!
//! Each folder uses only the folders above it:
//!
//! - [`command_line`]: options and output;
//! - [`measuring`]: a stream within this process, its publisher, its subscriber and its samples;
//! - [`reports`]: results files, and tables of them;
//! - [`processes`]: programs in Java, drivers and archives, each a process of its own;
//! - [`contenders`]: the ways that messages go over shared memory;
//! - [`programs`]: one benchmark in each file, a sub-command of `benchmark`.

pub mod command_line;
pub mod contenders;
pub mod measuring;
pub mod processes;
pub mod programs;
pub mod reports;
