//! The caller.

use std::error::Error;
use std::fs;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Parser};
use cross_language::{
    Body, CallError, Caller, CallerOptions, Encoding, Operation, REQUEST_CHANNEL, RESPONSE_CHANNEL,
    Status,
};
use rusteron_client::IdleStrategyKind;

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

    /// Calls that `--measure` times, after as many for warming up
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = calls)]
    calls: usize,

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

    /// Time calls with a text of so many bytes, 0 for no argument, and print nanoseconds
    #[arg(long, value_name = "BYTES")]
    measure: Option<usize>,

    /// Call until a call fails, and print that failure
    #[arg(long)]
    endless: bool,
}

fn calls(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be 1 or more".to_owned()),
        result => result.map_err(|error: ParseIntError| error.to_string()),
    }
}

/// The greatest argument that this program's callback accepts.
const CALLBACK_LIMIT: i64 = 12;
/// Longer results are printed as their length and hash.
const RESULT_LIMIT: usize = 120;

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let caller_options = CallerOptions {
        aeron_dir: options.aeron_dir,
        request_channel: options.request_channel,
        response_channel: options.response_channel,
        timeout: Duration::from_millis(options.timeout_ms),
        idle: options.idle,
    };
    let mut caller = Caller::connect(&caller_options, |value| match value {
        0..=CALLBACK_LIMIT => Ok(value * value),
        _ => Err(format!("{value} is not in 0 to {CALLBACK_LIMIT}")),
    })?;
    if let Some(path) = options.mode.check {
        check(&mut caller, options.encoding, &fs::read_to_string(path)?)
    } else if let Some(path) = options.mode.wrong_input {
        wrong_input(&mut caller, &fs::read_to_string(path)?)
    } else if let Some(payload) = options.mode.measure {
        measure(&mut caller, options.encoding, options.calls, payload)
    } else {
        endless(&mut caller, options.encoding)
    }
}

/// Calls `OPERATION ARGUMENT`, the argument in JSON, for each line.
fn check(caller: &mut Caller, encoding: Encoding, cases: &str) -> Result<(), Box<dyn Error>> {
    for (number, line) in cases.lines().enumerate() {
        let (operation, argument) = line.split_once(' ').ok_or("a line without argument")?;
        let operation: Operation = operation.parse()?;
        let argument = Body::read(operation.argument(), Encoding::Json, argument.as_bytes())?;
        let result = match caller.call(operation, encoding, &argument) {
            Ok(result) => shortened(&result.to_string()),
            Err(CallError::Failed(status, _)) => status.to_string(),
            Err(error) => return Err(error.into()),
        };
        println!("{} {operation} {result}", number + 1);
    }
    Ok(())
}

/// Sends the message in `LABEL HEX` for each line.
fn wrong_input(caller: &mut Caller, cases: &str) -> Result<(), Box<dyn Error>> {
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

/// Prints mean, median, 95th and 99th percentile and maximum of the calls' times.
fn measure(
    caller: &mut Caller,
    encoding: Encoding,
    calls: usize,
    payload: usize,
) -> Result<(), Box<dyn Error>> {
    let (operation, argument) = match payload {
        0 => (Operation::Ping, Body::Void),
        _ => (Operation::Reverse, Body::Text("a".repeat(payload))),
    };
    let mut times = Vec::with_capacity(calls);
    for call in 0..2 * calls {
        let start = Instant::now();
        caller.call(operation, encoding, &argument)?;
        if call >= calls {
            times.push(start.elapsed().as_nanos());
        }
    }
    times.sort_unstable();
    let mean = times.iter().sum::<u128>() / calls as u128;
    let at = |percent: usize| times[(calls - 1) * percent / 100];
    println!("{mean} {} {} {} {}", at(50), at(95), at(99), at(100));
    Ok(())
}

fn endless(caller: &mut Caller, encoding: Encoding) -> Result<(), Box<dyn Error>> {
    let argument = Body::Integers((0..10_000).collect());
    for call in 0_u64.. {
        caller.call(Operation::Total, encoding, &argument)?;
        if call == 0 {
            println!("calling");
        }
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    if text.len() <= RESULT_LIMIT {
        return text.to_owned();
    }
    // FNV-1a
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{} bytes {hash:016x}", text.len())
}
