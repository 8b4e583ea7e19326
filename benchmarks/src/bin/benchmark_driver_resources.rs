//! Compares what media drivers in Rust and in Java take of the machine.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::driver_resources::{self, ResourceOptions};

fn main() -> ExitCode {
    failure::exit_code(driver_resources::run(&ResourceOptions::parse()))
}
