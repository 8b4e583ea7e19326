//! Compares the round trips of Rust, C and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::latency::{self, LatencyOptions};

fn main() -> ExitCode {
    failure::exit_code(latency::run(&LatencyOptions::parse()))
}
