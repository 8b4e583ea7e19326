//! Compares the throughput over IPC of Rust, C and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::throughput::{self, ThroughputOptions};
use rusteron_examples::failure;

fn main() -> ExitCode {
    failure::exit_code(throughput::run(&ThroughputOptions::parse()))
}
