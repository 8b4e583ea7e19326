//! The command line of every benchmark: options, output, signals, exit codes.

pub mod byte_size;
pub mod choice;
pub mod duration;
pub mod failure;
pub mod interrupt;
pub mod json_file;
pub mod output;
pub mod run_options;
