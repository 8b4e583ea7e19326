//! Measures what bounds the throughput over IPC.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::bounds::{self, BoundsOptions};

fn main() -> ExitCode {
    failure::exit_code(bounds::run(&BoundsOptions::parse()))
}
