//! Measures throughput by term length, idle strategy and threading mode.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::idle_strategies::{self, IdleStrategiesOptions};

fn main() -> ExitCode {
    failure::exit_code(idle_strategies::run(&IdleStrategiesOptions::parse()))
}
