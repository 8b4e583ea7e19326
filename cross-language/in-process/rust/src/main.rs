//! Calls the cross-language service in the caller's own process.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, ValueEnum};
use cross_language::modes::{Measuring, ProgramError, check, square};
use cross_language::{
    Body, CallError, CountingAllocator, Encoding, InProcess, Kind, Operation, Status,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Calls the cross-language service in this process
#[derive(Debug, Parser)]
#[command(name = "in_process_caller")]
struct Options {
    /// Encoding of arguments and results; `none` passes Rust's own values
    #[arg(long, value_name = "ENCODING", default_value = "binary")]
    encoding: Bodies,

    #[command(flatten)]
    measuring: Measuring,

    #[command(flatten)]
    mode: Mode,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Bodies {
    Binary,
    Json,
    None,
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

    /// Create a session, call `ping` and drop the session so many times, and time each cycle
    #[arg(long, value_name = "N")]
    connect_cycles: Option<u32>,
}

fn main() -> ExitCode {
    let Options { encoding, measuring, mode } = Options::parse();
    let done = match encoding {
        Bodies::Binary => run(&mode, &measuring, || Ok(encoded(Encoding::Binary))),
        Bodies::Json => run(&mode, &measuring, || Ok(encoded(Encoding::Json))),
        Bodies::None => run(&mode, &measuring, || Ok(direct())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run<C>(
    mode: &Mode,
    measuring: &Measuring,
    connect: impl Fn() -> Result<C, ProgramError> + Sync,
) -> Result<(), ProgramError>
where
    C: FnMut(Operation, &Body) -> Result<Body, CallError>,
{
    if let Some(path) = &mode.check {
        check(path, connect()?)
    } else if let Some(payload) = mode.measure {
        measuring.measure(payload, connect)
    } else {
        measuring.connect_cycles(mode.connect_cycles.unwrap_or(0), connect)
    }
}

/// A session that gets and returns the bytes of bodies.
fn encoded(encoding: Encoding) -> impl FnMut(Operation, &Body) -> Result<Body, CallError> {
    let mut session = InProcess::default();
    let (mut bytes, mut result) = (Vec::new(), Vec::new());
    move |operation, argument| {
        bytes.clear();
        argument.write(encoding, &mut bytes).map_err(CallError::Invalid)?;
        let status = session.call(operation as u8, encoding as u8, &bytes, square, &mut result);
        let read = |kind| Body::read(kind, encoding, &result).map_err(CallError::Malformed);
        match (status, read(if status == Status::Ok { operation.result() } else { Kind::Text })?) {
            (Status::Ok, body) => Ok(body),
            (status, Body::Text(text)) => Err(CallError::Failed(status, text)),
            (_, other) => unreachable!("{other:?} of the kind that was read"),
        }
    }
}

/// A session without encodings.
fn direct() -> impl FnMut(Operation, &Body) -> Result<Body, CallError> {
    let mut session = InProcess::default();
    move |operation, argument| {
        let called = session.execute_body(operation, argument.clone(), square);
        called.map_err(|failure| CallError::Failed(failure.status, failure.text))
    }
}
