//! Measures the throughput over IPC, with all settings, statistics and a report.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::ipc_throughput;
use rusteron_benchmarks::programs::ipc_throughput_options::IpcThroughputOptions;

fn main() -> ExitCode {
    failure::exit_code(ipc_throughput::run(&IpcThroughputOptions::parse()))
}
