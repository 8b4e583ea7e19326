//! Compares the round trips of Rust, C and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::latency::{self, LatencyOptions};
use rusteron_examples::failure;

fn main() -> ExitCode {
    failure::exit_code(latency::run(&LatencyOptions::parse()))
}
