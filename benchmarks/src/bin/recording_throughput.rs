//! Compares recording with, and replaying from, an archive of Rust and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::recording::{self, RecordingOptions};
use rusteron_examples::failure;

fn main() -> ExitCode {
    failure::exit_code(recording::run(&RecordingOptions::parse()))
}
