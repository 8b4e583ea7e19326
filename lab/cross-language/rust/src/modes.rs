//! The modes of a caller's program, equal over all transports: checking, measuring, connecting.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::{Body, CallError, Operation};

/// The greatest argument that a program's callback accepts.
const CALLBACK_LIMIT: i64 = 12;

/// The error of a program: a text for its user.
pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// The mode of a caller's program, and its settings.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct Modes {
    /// Call what each line of a file says, and print the results
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

    /// File for the times in nanoseconds, one in a line
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
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
        C: FnMut(Operation, &Body) -> Result<Body, CallError>,
    {
        if let Some(path) = &self.check {
            check(path, connect()?)
        } else if let Some(payload) = self.measure {
            self.measure(payload, connect)
        } else if let Some(cycles) = self.connect_cycles {
            let begin = Instant::now();
            let mut times = Vec::with_capacity(cycles);
            for _ in 0..cycles {
                let start = Instant::now();
                connect()?(Operation::Ping, &Body::Void)?;
                times.push(start.elapsed());
            }
            self.report(begin.elapsed(), &times)
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
        C: FnMut(Operation, &Body) -> Result<Body, CallError>,
    {
        let barrier = Barrier::new(self.callers + 1);
        let run_caller = || -> Result<_, ProgramError> {
            let mut call = connect()?;
            let text: String = ('a'..='z').cycle().take(payload).collect();
            let (operation, argument, expected) = match payload {
                0 => (Operation::Ping, Body::Void, Body::Void),
                _ => {
                    let reversed = text.chars().rev().collect();
                    (Operation::Reverse, Body::Text(text), Body::Text(reversed))
                }
            };
            if call(operation, &argument)? != expected {
                return Err(format!("{operation}: wrong result").into());
            }
            let warm = Instant::now() + Duration::from_millis(self.warmup_ms);
            while Instant::now() < warm {
                call(operation, &argument)?;
            }
            let mut times = Vec::with_capacity(self.calls);
            // All are ready, and begin.
            barrier.wait();
            barrier.wait();
            for _ in 0..self.calls {
                let start = Instant::now();
                call(operation, &argument)?;
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
        let times: Vec<_> = callers.into_iter().flat_map(|(times, _)| times).collect();
        self.report(end - start, &times)
    }

    /// Prints a line of JSON, and writes the samples.
    fn report(&self, elapsed: Duration, times: &[Duration]) -> Result<(), ProgramError> {
        println!(r#"{{"elapsed_ns":{},"calls":{}}}"#, elapsed.as_nanos(), times.len());
        if let Some(path) = &self.samples {
            let mut lines = String::with_capacity(8 * times.len());
            for time in times {
                let _ = writeln!(lines, "{}", time.as_nanos());
            }
            fs::write(path, lines)?;
        }
        Ok(())
    }
}

/// Prints an error, and ends the program.
pub fn fail(error: &ProgramError) -> ! {
    eprintln!("error: {error}");
    exit(1)
}

/// Calls `OPERATION ARGUMENT` for each line of a file, and prints the results. Bodies are hexadecimal digits.
fn check(
    cases: &Path,
    mut call: impl FnMut(Operation, &Body) -> Result<Body, CallError>,
) -> Result<(), ProgramError> {
    for line in fs::read_to_string(cases)?.lines() {
        let (name, argument) = line.split_once(' ').ok_or("a line without argument")?;
        let operation = Operation::from_name(name).ok_or("no such operation")?;
        let argument = Body::read(operation.argument(), &bytes(argument)?)?;
        match call(operation, &argument) {
            Ok(result) => {
                let mut bytes = Vec::new();
                result.write(&mut bytes)?;
                println!("{}", digits(&bytes));
            }
            Err(CallError::Failed(status, _)) => println!("{status}"),
            Err(error) => return Err(error.into()),
        }
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
