//! Compares how long Rust, C and Java take to connect, to add a stream's ends, and to close.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_benchmarks::programs::registrations::{self, RegistrationsOptions};

fn main() -> ExitCode {
    failure::exit_code(registrations::run(&RegistrationsOptions::parse()))
}
