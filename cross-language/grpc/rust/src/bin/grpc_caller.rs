//! The caller over gRPC.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser};
use cross_language::modes::{Measuring, ProgramError, check, square};
use cross_language::{Body, CountingAllocator};
use cross_language_grpc::Caller;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Calls the cross-language service over gRPC
#[derive(Debug, Parser)]
#[command(name = "grpc_caller")]
struct Options {
    /// The server: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    server: String,

    /// Longest time of a call, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    timeout_ms: u64,

    #[command(flatten)]
    measuring: Measuring,

    #[command(flatten)]
    mode: Mode,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Mode {
    /// Call what each line of a file says, and print the results
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,

    /// Time calls with a text of so many bytes, 0 for no argument
    #[arg(long, value_name = "BYTES")]
    measure: Option<usize>,

    /// Connect, call `ping` and close so many times, and time each cycle
    #[arg(long, value_name = "N")]
    connect_cycles: Option<u32>,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), ProgramError> {
    let timeout = Duration::from_millis(options.timeout_ms);
    let connect = || {
        let mut caller = Caller::connect(&options.server, timeout, square)?;
        Ok(move |operation, argument: &Body| caller.call(operation, argument))
    };
    let (mode, measuring) = (options.mode, options.measuring);
    match (mode.check, mode.measure, mode.connect_cycles) {
        (Some(path), ..) => check(&path, connect()?),
        (_, Some(payload), _) => measuring.measure(payload, connect),
        (.., cycles) => measuring.connect_cycles(cycles.unwrap_or(1), connect),
    }
}
