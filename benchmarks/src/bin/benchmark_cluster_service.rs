//! Compares rates and memory of a replicated service in Rust and Java.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::measuring::allocations::CountingAllocator;
use rusteron_benchmarks::programs::cluster_service::{self, ServiceOptions};

/// The service runs in this program, too.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    failure::exit_code(cluster_service::run(&ServiceOptions::parse()))
}
