//! The command line of every benchmark: options, output, signals, exit codes.

pub mod choice;
pub mod failure;
pub mod interrupt;
pub mod json_file;
pub mod output;
pub mod run_options;
