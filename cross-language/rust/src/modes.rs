//! The modes of a caller's program that are equal over all transports: checking, measuring, connecting.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use clap::Args;

use crate::{Body, CallError, Encoding, Operation};

/// The greatest argument that a program's callback accepts.
const CALLBACK_LIMIT: i64 = 12;
/// Longer results are printed as their length and hash.
const RESULT_LIMIT: usize = 120;

/// The error of a program: a text for its user.
pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// Returns the number of allocations of this process so far, and of the bytes they had.
pub type AllocationCounts = fn() -> (usize, usize);

/// Settings of measuring.
#[derive(Debug, Clone, Args)]
pub struct Measuring {
    /// Calls that `--measure` times, in each concurrent caller
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,

    /// Calls before the timed ones, in each concurrent caller
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    warmup: u32,

    /// Concurrent callers of `--measure`, each a thread with a connection of its own
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    callers: u32,

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

/// Calls `OPERATION ARGUMENT`, the argument in JSON, for each line of a file, and prints the results.
///
/// # Errors
/// The file cannot be read, or a call ends without an answer.
pub fn check(
    cases: &Path,
    mut call: impl FnMut(Operation, &Body) -> Result<Body, CallError>,
) -> Result<(), ProgramError> {
    for (number, line) in fs::read_to_string(cases)?.lines().enumerate() {
        let (operation, argument) = line.split_once(' ').ok_or("a line without argument")?;
        let operation: Operation = operation.parse()?;
        let argument = Body::read(operation.argument(), Encoding::Json, argument.as_bytes())?;
        let result = match call(operation, &argument) {
            Ok(result) => shortened(&result.to_string()),
            Err(CallError::Failed(status, _)) => status.to_string(),
            Err(error) => return Err(error.into()),
        };
        println!("{} {operation} {result}", number + 1);
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

impl Measuring {
    /// Times calls of concurrent callers, and prints a line of JSON. `payload` is the length of the text that is sent
    /// and returned, or 0 for `ping`. `connect` connects a caller in the caller's thread.
    ///
    /// # Errors
    /// A call fails or has a wrong result, or the file cannot be written.
    pub fn measure<C>(
        &self,
        payload: usize,
        connect: impl Fn() -> Result<C, ProgramError> + Sync,
        allocations: AllocationCounts,
    ) -> Result<(), ProgramError>
    where
        C: FnMut(Operation, &Body) -> Result<Body, CallError>,
    {
        let (events, received) = mpsc::channel();
        thread::scope(|scope| {
            let begin_senders: Vec<_> = (0..self.callers)
                .map(|_| {
                    let (begin, begins) = mpsc::channel();
                    let (events, connect) = (events.clone(), &connect);
                    scope.spawn(move || {
                        // Closed after the times are sent: closing is not measured.
                        let mut connection = None;
                        let times = connect().and_then(|call| {
                            self.run_caller(payload, connection.insert(call), || {
                                // Both fail only after another caller has failed.
                                events.send(Ok(Vec::new()))?;
                                Ok(begins.recv()?)
                            })
                        });
                        let _ = events.send(times);
                    });
                    begin
                })
                .collect();
            for _ in &begin_senders {
                received.recv()??;
            }
            let allocated_before = allocations();
            let start = Instant::now();
            for begin in &begin_senders {
                begin.send(())?;
            }
            let times: Vec<Vec<u64>> = begin_senders
                .iter()
                .map(|_| received.recv()?)
                .collect::<Result<_, ProgramError>>()?;
            let elapsed = start.elapsed();
            let allocated = allocations();
            let calls = f64::from(self.calls) * f64::from(self.callers);
            self.write_samples(&times.concat())?;
            println!(
                r#"{{"elapsed_ns":{},"calls":{calls},"allocations_per_call":{:.2},"allocated_bytes_per_call":{:.1}}}"#,
                elapsed.as_nanos(),
                (allocated.0 - allocated_before.0) as f64 / calls,
                (allocated.1 - allocated_before.1) as f64 / calls,
            );
            Ok(())
        })
    }

    /// Warms up, awaits the common beginning, and returns the times of the calls.
    fn run_caller(
        &self,
        payload: usize,
        mut call: impl FnMut(Operation, &Body) -> Result<Body, CallError>,
        await_begin: impl FnOnce() -> Result<(), ProgramError>,
    ) -> Result<Vec<u64>, ProgramError> {
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
        for _ in 0..self.warmup {
            call(operation, &argument)?;
        }
        let mut times = Vec::with_capacity(self.calls as usize);
        await_begin()?;
        for _ in 0..self.calls {
            let start = Instant::now();
            call(operation, &argument)?;
            times.push(start.elapsed().as_nanos() as u64);
        }
        Ok(times)
    }

    /// Connects, calls `ping` and closes, again and again. Prints a line of JSON. A sample is one cycle.
    ///
    /// # Errors
    /// A connection or a call fails, or the file cannot be written.
    pub fn connect_cycles<C>(
        &self,
        cycles: u32,
        connect: impl Fn() -> Result<C, ProgramError>,
    ) -> Result<(), ProgramError>
    where
        C: FnMut(Operation, &Body) -> Result<Body, CallError>,
    {
        let mut times = Vec::with_capacity(cycles as usize);
        let begin = Instant::now();
        for _ in 0..cycles {
            let start = Instant::now();
            let mut call = connect()?;
            call(Operation::Ping, &Body::Void)?;
            drop(call);
            times.push(start.elapsed().as_nanos() as u64);
        }
        let elapsed = begin.elapsed().as_nanos();
        self.write_samples(&times)?;
        println!(
            r#"{{"elapsed_ns":{elapsed},"calls":{cycles},"allocations_per_call":null,"allocated_bytes_per_call":null}}"#
        );
        Ok(())
    }

    fn write_samples(&self, times: &[u64]) -> io::Result<()> {
        let Some(path) = &self.samples else { return Ok(()) };
        let mut lines = String::with_capacity(8 * times.len());
        for time in times {
            let _ = writeln!(lines, "{time}");
        }
        fs::File::create(path)?.write_all(lines.as_bytes())
    }
}
