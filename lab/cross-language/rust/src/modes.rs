//! The modes of a caller's program, equal over all transports: checking, measuring, connecting.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use prost::Message;

use crate::protocol::{Operation, Outcome, Request, Response, Void};

/// The greatest argument that a program's callback accepts.
const CALLBACK_LIMIT: i64 = 12;

/// The error of a program: a text for its user.
pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// The mode of a caller's program, and its settings.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Modes {
    /// Call with the request of each line of a file, and print the responses
    #[arg(long, value_name = "FILE", group = "mode")]
    check: Option<PathBuf>,

    /// Time calls with a text of so many bytes, 0 for no argument
    #[arg(long, value_name = "BYTES", group = "mode")]
    measure: Option<usize>,

    /// Connect, call `ping` and close so many times, and time each cycle
    #[arg(long, value_name = "N", group = "mode")]
    connect_cycles: Option<usize>,

    /// Longest time of a call, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    timeout_ms: u64,

    /// Calls that `--measure` times, in each concurrent caller
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    calls: usize,

    /// Time of the calls before the timed ones, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    warmup_ms: u64,

    /// Concurrent callers of `--measure`, each a thread with a connection of its own
    #[arg(long, value_name = "K", default_value_t = 1)]
    callers: usize,
}

/// Answers a callback of a caller's program: with the square of a small integer.
///
/// # Errors
/// The argument is out of range.
pub fn square(argument: i64) -> Result<i64, String> {
    match argument {
        0..=CALLBACK_LIMIT => Ok(argument * argument),
        _ => Err(format!("{argument} is not in 0 to {CALLBACK_LIMIT}")),
    }
}

impl Modes {
    /// Returns the longest time of a call.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Runs the chosen mode. `connect` connects a caller in the caller's thread.
    ///
    /// # Errors
    /// A call fails or has a wrong result, or a file cannot be read or written.
    pub fn run<C>(
        &self,
        connect: impl Fn() -> Result<C, ProgramError> + Sync,
    ) -> Result<(), ProgramError>
    where
        C: FnMut(&mut Request) -> Result<Response, ProgramError>,
    {
        if let Some(path) = &self.check {
            check(path, connect()?)
        } else if let Some(payload) = self.measure {
            self.measure(payload, connect)
        } else if let Some(cycles) = self.connect_cycles {
            let begin = Instant::now();
            let mut times = Vec::with_capacity(cycles);
            let mut request = Operation::Ping(Void {}).into();
            for _ in 0..cycles {
                let start = Instant::now();
                checked_call(&mut connect()?, &mut request)?;
                times.push(start.elapsed());
            }
            report(begin.elapsed(), times)
        } else {
            Err("one of --check, --measure and --connect-cycles is required".into())
        }
    }

    /// Times calls of concurrent callers. `payload` is the length of the text that is sent and returned, or 0 for
    /// `ping`.
    fn measure<C>(
        &self,
        payload: usize,
        connect: impl Fn() -> Result<C, ProgramError> + Sync,
    ) -> Result<(), ProgramError>
    where
        C: FnMut(&mut Request) -> Result<Response, ProgramError>,
    {
        let barrier = Barrier::new(self.callers + 1);
        let run_caller = || -> Result<_, ProgramError> {
            let mut call = connect()?;
            let text: String = ('a'..='z').cycle().take(payload).collect();
            let (expected, operation) = match payload {
                0 => (Outcome::Ping(Void {}), Operation::Ping(Void {})),
                _ => (Outcome::Reverse(text.chars().rev().collect()), Operation::Reverse(text)),
            };
            let mut request = Request::from(operation);
            if checked_call(&mut call, &mut request)?.outcome != Some(expected) {
                return Err("wrong result".into());
            }
            let warm = Instant::now() + Duration::from_millis(self.warmup_ms);
            while Instant::now() < warm {
                checked_call(&mut call, &mut request)?;
            }
            let mut times = Vec::with_capacity(self.calls);
            // All are ready, and begin.
            barrier.wait();
            barrier.wait();
            for _ in 0..self.calls {
                let start = Instant::now();
                checked_call(&mut call, &mut request)?;
                times.push(start.elapsed());
            }
            Ok((times, Instant::now()))
        };
        let (start, callers) = thread::scope(|scope| {
            // The others wait for a caller that has failed. Therefore it ends the program.
            let run = || run_caller().unwrap_or_else(|error| fail(&error));
            let callers: Vec<_> = (0..self.callers).map(|_| scope.spawn(run)).collect();
            barrier.wait();
            println!("measuring");
            // Before the callers begin: afterwards, this thread may have to wait for a core.
            let start = Instant::now();
            barrier.wait();
            let callers = callers.into_iter().map(|caller| caller.join().expect("no panic"));
            (start, callers.collect::<Vec<_>>())
        });
        let end = callers.iter().map(|(_, end)| *end).max().unwrap_or(start);
        report(end - start, callers.into_iter().flat_map(|(times, _)| times))
    }
}

/// Calls, and fails unless the response has the outcome of the operation.
fn checked_call(
    call: &mut impl FnMut(&mut Request) -> Result<Response, ProgramError>,
    request: &mut Request,
) -> Result<Response, ProgramError> {
    let response = call(request)?;
    match (&request.operation, &response.outcome) {
        (Some(Operation::Ping(_)), Some(Outcome::Ping(_)))
        | (Some(Operation::Reverse(_)), Some(Outcome::Reverse(_))) => Ok(response),
        (_, Some(Outcome::Failure(failure))) => {
            Err(format!("{}: {}", failure.status().as_str_name(), failure.text).into())
        }
        _ => Err("the outcome of another operation".into()),
    }
}

/// Prints the time of all calls, and of each, in nanoseconds. Flushes the first line at once,
/// because the program `measure` samples this process when that line arrives.
fn report(
    elapsed: Duration,
    times: impl IntoIterator<Item = Duration>,
) -> Result<(), ProgramError> {
    let mut output = BufWriter::new(std::io::stdout().lock());
    writeln!(output, "{}", elapsed.as_nanos())?;
    output.flush()?;
    for time in times {
        writeln!(output, "{}", time.as_nanos())?;
    }
    output.flush()?;
    Ok(())
}

/// Prints an error, and ends the program.
pub fn fail(error: &ProgramError) -> ! {
    eprintln!("error: {error}");
    exit(1)
}

/// Calls with the request of each line of a file, and prints the responses, in hexadecimal digits.
fn check(
    cases: &Path,
    mut call: impl FnMut(&mut Request) -> Result<Response, ProgramError>,
) -> Result<(), ProgramError> {
    for line in fs::read_to_string(cases)?.lines() {
        let mut request = Request::decode(bytes(line)?.as_slice())?;
        println!("{}", digits(&call(&mut request)?.encode_to_vec()));
    }
    Ok(())
}

/// Returns bytes as hexadecimal digits.
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of hexadecimal digits.
///
/// # Errors
/// The text has other characters, or an odd number of digits.
pub fn bytes(digits: &str) -> Result<Vec<u8>, std::num::ParseIntError> {
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2).unwrap_or(""), 16);
    (0..digits.len()).step_by(2).map(byte).collect()
}
