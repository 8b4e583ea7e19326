//! Measures what bounds the throughput over IPC.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::bounds::{self, BoundsOptions};
use rusteron_examples::failure;

fn main() -> ExitCode {
    failure::exit_code(bounds::run(&BoundsOptions::parse()))
}
