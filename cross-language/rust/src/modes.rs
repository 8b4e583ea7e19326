//! The modes of a caller's program that are equal over all transports: checking, measuring, connecting.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::{Body, CallError, Encoding, Operation, allocations};

/// The greatest argument that a program's callback accepts.
const CALLBACK_LIMIT: i64 = 12;
/// Longer results are printed as their length and hash.
const RESULT_LIMIT: usize = 120;

/// The error of a program: a text for its user.
pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// Settings of measuring.
#[derive(Debug, Clone, Args)]
pub struct Measuring {
    /// Calls that `--measure` times, in each concurrent caller
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,

    /// Longest time of the calls before the timed ones, which end as soon as they become no faster, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 6_000)]
    warmup_ms: u64,

    /// Time of calls after the timed ones, during which allocations are counted, in milliseconds; 0 for none
    #[arg(long, value_name = "MS", default_value_t = 0)]
    counted_ms: u64,

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

/// Calls in the first block of the warm-up.
const FIRST_BLOCK: u32 = 100;
/// Blocks in a row that are no faster before the warm-up ends.
const STEADY_BLOCKS: u32 = 3;
/// Shortest warm-up.
const LEAST_WARMUP: Duration = Duration::from_millis(500);
/// A faster block takes less than this share of an earlier block's time for a call.
const FASTER: f64 = 0.95;

/// The stage that a concurrent caller has finished.
enum Stage {
    WarmedUp { calls: u64, is_steady: bool },
    Timed(Vec<u64>),
    Counted(u64),
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
                        // Closed after all stages: closing is not measured.
                        let mut connection = None;
                        let last = connect().and_then(|call| {
                            self.run_caller(payload, connection.insert(call), |stage| {
                                // Both fail only after another caller has failed.
                                events.send(Ok(stage))?;
                                Ok(begins.recv()?)
                            })
                        });
                        let _ = events.send(last);
                    });
                    begin
                })
                .collect();
            let await_stage = || -> Result<Vec<Stage>, ProgramError> {
                begin_senders.iter().map(|_| received.recv()?).collect()
            };
            let begin_stage = || begin_senders.iter().try_for_each(|begin| begin.send(()));

            let (mut warmup_calls, mut is_steady) = (0, true);
            for stage in await_stage()? {
                if let Stage::WarmedUp { calls, is_steady: is_caller_steady } = stage {
                    warmup_calls += calls;
                    is_steady &= is_caller_steady;
                }
            }
            let start = Instant::now();
            begin_stage()?;
            let stages = await_stage()?;
            let elapsed = start.elapsed();
            let times = stages.into_iter().flat_map(|stage| match stage {
                Stage::Timed(times) => times,
                _ => Vec::new(),
            });
            let times: Vec<u64> = times.collect();

            if self.counted_ms > 0 {
                println!("counting");
            }
            allocations::start();
            let start = Instant::now();
            begin_stage()?;
            let counted = await_stage()?.into_iter().map(|stage| match stage {
                Stage::Counted(calls) => calls,
                _ => 0,
            });
            let counted: u64 = counted.sum();
            let counted_elapsed = start.elapsed();
            let (allocations, bytes) = allocations::stop();
            let per_call = |count: usize| match counted {
                0 => "null".to_owned(),
                _ => format!("{:.2}", count as f64 / counted as f64),
            };
            println!(
                r#"{{"elapsed_ns":{},"calls":{},"warmup_calls":{warmup_calls},"is_steady":{is_steady},"counted_ns":{},"counted_calls":{counted},"allocations_per_call":{},"allocated_bytes_per_call":{}}}"#,
                elapsed.as_nanos(),
                times.len(),
                counted_elapsed.as_nanos(),
                per_call(allocations),
                per_call(bytes),
            );
            Ok(self.write_samples(&times)?)
        })
    }

    /// Runs a caller's stages. `finish` hands a stage over, and awaits the common beginning of the next.
    fn run_caller(
        &self,
        payload: usize,
        mut call: impl FnMut(Operation, &Body) -> Result<Body, CallError>,
        finish: impl Fn(Stage) -> Result<(), ProgramError>,
    ) -> Result<Stage, ProgramError> {
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
        let mut call = || call(operation, &argument);
        finish(self.warm_up(&mut call)?)?;
        let mut times = Vec::with_capacity(self.calls as usize);
        for _ in 0..self.calls {
            let start = Instant::now();
            call()?;
            times.push(start.elapsed().as_nanos() as u64);
        }
        finish(Stage::Timed(times))?;
        let deadline = Instant::now() + Duration::from_millis(self.counted_ms);
        let mut counted = 0;
        while Instant::now() < deadline {
            call()?;
            counted += 1;
        }
        Ok(Stage::Counted(counted))
    }

    /// Calls in blocks, each twice as long as the block before, until some in a row are no faster than the fastest.
    fn warm_up<R>(
        &self,
        mut call: impl FnMut() -> Result<R, CallError>,
    ) -> Result<Stage, ProgramError> {
        let begin = Instant::now();
        let deadline = begin + Duration::from_millis(self.warmup_ms);
        let (mut calls, mut block, mut steady_blocks) = (0_u64, FIRST_BLOCK, 0);
        let mut fastest = f64::INFINITY;
        while steady_blocks < STEADY_BLOCKS || begin.elapsed() < LEAST_WARMUP {
            let start = Instant::now();
            for _ in 0..block {
                if Instant::now() >= deadline {
                    return Ok(Stage::WarmedUp { calls, is_steady: false });
                }
                call()?;
                calls += 1;
            }
            let time = start.elapsed().as_secs_f64() / f64::from(block);
            steady_blocks = if time < FASTER * fastest { 0 } else { steady_blocks + 1 };
            fastest = fastest.min(time);
            block = block.saturating_mul(2);
        }
        Ok(Stage::WarmedUp { calls, is_steady: true })
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
        println!(r#"{{"elapsed_ns":{elapsed},"calls":{cycles}}}"#);
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
