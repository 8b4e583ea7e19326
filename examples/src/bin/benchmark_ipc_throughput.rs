//! Compares the Rust message path with the C functions.

use std::process::ExitCode;

use clap::Parser;
use rusteron_examples::options::BenchmarkOptions;
use rusteron_examples::{benchmark, failure};

fn main() -> ExitCode {
    failure::exit_code(benchmark::run(&BenchmarkOptions::parse()))
}
