//! Reports what callgrind has counted of `benchmark_instructions`, and checks the bounds.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::instructions::{self, ReportOptions};

fn main() -> ExitCode {
    failure::exit_code(instructions::report(&ReportOptions::parse()))
}
