//! Compares the throughput over IPC of Rust, C and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::throughput::{self, ThroughputOptions};

fn main() -> ExitCode {
    failure::exit_code(throughput::run(&ThroughputOptions::parse()))
}
