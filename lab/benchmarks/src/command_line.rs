//! The command line of every benchmark: options and output.

pub mod choice;
pub mod output;
pub mod run_options;
