//! Measures what each setting of the media driver's presets does by itself.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    use clap::Parser;
    use rusteron_benchmarks::command_line::failure;
    use rusteron_benchmarks::programs::preset_settings::{self, PresetSettingsOptions};

    failure::exit_code(preset_settings::run(&PresetSettingsOptions::parse()))
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("benchmark_preset_settings looks at files and processes as Unix has them");
    ExitCode::FAILURE
}
