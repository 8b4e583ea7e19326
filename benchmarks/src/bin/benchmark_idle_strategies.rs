//! Measures throughput by term length, idle strategy and threading mode.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::idle_strategies::{self, IdleStrategiesOptions};
use rusteron_examples::failure;

fn main() -> ExitCode {
    failure::exit_code(idle_strategies::run(&IdleStrategiesOptions::parse()))
}
