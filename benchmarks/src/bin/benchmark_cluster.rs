//! Compares round trips and rates of cluster clients in Rust and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::cluster::{self, ClusterOptions};

fn main() -> ExitCode {
    failure::exit_code(cluster::run(&ClusterOptions::parse()))
}
