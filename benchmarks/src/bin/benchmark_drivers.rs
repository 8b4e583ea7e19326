//! Runs Aeron's sample programs on media drivers in Rust, C and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::drivers::{self, DriversOptions};

fn main() -> ExitCode {
    failure::exit_code(drivers::run(&DriversOptions::parse()))
}
