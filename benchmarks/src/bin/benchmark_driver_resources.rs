//! Compares what media drivers in Rust and in Java take of the machine.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::driver_resources::{self, ResourceOptions};
use rusteron_examples::failure;

fn main() -> ExitCode {
    failure::exit_code(driver_resources::run(&ResourceOptions::parse()))
}
