//! The caller.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser};
use cross_language::modes::{Measuring, ProgramError, check, square};
use cross_language::{
    Body, Caller, CallerOptions, CountingAllocator, Encoding, Operation, REQUEST_CHANNEL,
    RESPONSE_CHANNEL, Status,
};
use rusteron_client::IdleStrategyKind;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Calls the cross-language service
#[derive(Debug, Parser)]
#[command(name = "caller")]
struct Options {
    /// Directory of a running media driver
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Channel of requests
    #[arg(long, value_name = "URI", default_value = REQUEST_CHANNEL)]
    request_channel: String,

    /// Channel of responses
    #[arg(long, value_name = "URI", default_value = RESPONSE_CHANNEL)]
    response_channel: String,

    /// Encoding of arguments and results: binary or json
    #[arg(long, value_name = "ENCODING", default_value = "binary")]
    encoding: Encoding,

    /// Longest time of a call, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    timeout_ms: u64,

    /// Action while waiting: spin, yield, sleep-ns, backoff or noop
    #[arg(long, value_name = "IDLE", default_value = "backoff")]
    idle: IdleStrategyKind,

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

    /// Send the bytes of each line of a file, and print the status of each response
    #[arg(long, value_name = "FILE")]
    wrong_input: Option<PathBuf>,

    /// Time calls with a text of so many bytes, 0 for no argument
    #[arg(long, value_name = "BYTES")]
    measure: Option<usize>,

    /// Connect, call `ping` and close so many times, and time each cycle
    #[arg(long, value_name = "N")]
    connect_cycles: Option<u32>,

    /// Call until a call fails, and print that failure
    #[arg(long)]
    endless: bool,
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
    let caller_options = CallerOptions {
        aeron_dir: options.aeron_dir,
        request_channel: options.request_channel,
        response_channel: options.response_channel,
        timeout: Duration::from_millis(options.timeout_ms),
        idle: options.idle,
    };
    let encoding = options.encoding;
    let connect = || Caller::connect(&caller_options, square);
    let connect_call = || {
        let mut caller = connect()?;
        Ok(move |operation, argument: &Body| caller.call(operation, encoding, argument))
    };
    let (mode, measuring) = (options.mode, options.measuring);
    if let Some(path) = mode.check {
        check(&path, connect_call()?)
    } else if let Some(path) = mode.wrong_input {
        wrong_input(&mut connect()?, &fs::read_to_string(path)?)
    } else if let Some(payload) = mode.measure {
        measuring.measure(payload, connect_call)
    } else if let Some(cycles) = mode.connect_cycles {
        measuring.connect_cycles(cycles, connect_call)
    } else {
        endless(&mut connect()?, encoding)
    }
}

/// Sends the message in `LABEL HEX` for each line.
fn wrong_input(caller: &mut Caller, cases: &str) -> Result<(), ProgramError> {
    for line in cases.lines() {
        let (label, hex) = line.split_once(' ').ok_or("a line without bytes")?;
        let message = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(hex.get(at..at + 2).unwrap_or(hex), 16))
            .collect::<Result<Vec<u8>, _>>()?;
        let (envelope, body) = caller.call_raw(&message)?;
        let id = envelope.correlation_id;
        match Status::from_number(envelope.code) {
            Some(Status::Ok) => {
                let hex: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
                println!("{label} {id} OK {hex}");
            }
            Some(status) => println!("{label} {id} {status}"),
            None => println!("{label} {id} status {}", envelope.code),
        }
    }
    Ok(())
}

fn endless(caller: &mut Caller, encoding: Encoding) -> Result<(), ProgramError> {
    let argument = Body::Integers((0..10_000).collect());
    for call in 0_u64.. {
        caller.call(Operation::Total, encoding, &argument)?;
        if call == 0 {
            println!("calling");
        }
    }
    Ok(())
}
