//! Kills, pauses and starves publishers, subscribers and their driver, and checks every message.

use std::process::ExitCode;

use clap::Parser;
use rusteron_benchmarks::command_line::failure;
use rusteron_survival::SurvivalOptions;

fn main() -> ExitCode {
    failure::exit_code(rusteron_survival::run(SurvivalOptions::parse()))
}
