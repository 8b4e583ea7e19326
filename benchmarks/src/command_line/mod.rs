//! The command line of every program: options, output, signals, exit codes.

pub mod byte_size;
pub mod driver_options;
pub mod duration;
pub mod failure;
pub mod interrupt;
pub mod json_file;
pub mod number;
pub mod output;
pub mod run_options;
