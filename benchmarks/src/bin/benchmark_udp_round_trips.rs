//! Compares round trips over UDP between two processes of one busy thread each.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::udp_round_trips::{self, RoundTripOptions};

fn main() -> ExitCode {
    failure::exit_code(udp_round_trips::run(&RoundTripOptions::parse()))
}
