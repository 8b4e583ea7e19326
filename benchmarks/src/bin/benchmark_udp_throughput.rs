//! Compares messages a second over UDP by media driver.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::udp_throughput::{self, UdpThroughputOptions};

fn main() -> ExitCode {
    failure::exit_code(udp_throughput::run(&UdpThroughputOptions::parse()))
}
