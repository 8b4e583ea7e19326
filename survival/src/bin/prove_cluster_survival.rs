//! Kills and pauses members of a cluster with services in Rust, and checks every answer and every state.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use clap::Parser;
    use rusteron_benchmarks::command_line::failure;
    use rusteron_survival::ClusterSurvivalOptions;

    failure::exit_code(rusteron_survival::run_cluster(ClusterSurvivalOptions::parse()))
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("the campaign needs Linux: signals with the end of a parent");
    ExitCode::FAILURE
}
