//! Compares recording with, and replaying from, an archive of Rust and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::recording::{self, RecordingOptions};

fn main() -> ExitCode {
    failure::exit_code(recording::run(&RecordingOptions::parse()))
}
