//! Measures the throughput of an exclusive publication and a subscription over IPC.

use std::process::ExitCode;

use clap::Parser;
use rusteron_examples::options::ThroughputOptions;
use rusteron_examples::{failure, throughput};

fn main() -> ExitCode {
    failure::exit_code(throughput::run(&ThroughputOptions::parse()))
}
