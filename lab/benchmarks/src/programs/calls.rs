//! The time of single calls.

use std::time::Instant;

use clap::Args;
use rusteron_core::program::Failure;

use super::comparison::{Case, Comparison};
use crate::command_line::choice::display_in_words;
use crate::command_line::run_options::RunOptions;

/// Compares the time of single calls of the message path in Rust and in C, by one thread that publishes 8,000 messages
/// of 32 bytes and then receives them.
///
/// The messages are in this core's caches, which they are not between two threads: compare calls with each other, not
/// with rates of throughput.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("runs", |arg| arg.default_value("20")))]
pub struct CallsOptions {
    #[command(flatten)]
    run: RunOptions,
}

/// The functions whose calls are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Contender {
    Rust,
    C,
}
display_in_words!(Contender);

const CALLS: [&str; 10] = [
    "offer",
    "claim",
    "offer_batch",
    "shared_offer",
    "shared_claim",
    "shared_offer_batch",
    "poll_fragments",
    "poll",
    "controlled_poll",
    "poll_batch",
];

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used; [`Failure::Run`] for everything else.
pub fn run(options: &CallsOptions) -> Result<(), Failure> {
    let mut comparison = Comparison::start("calls", &options.run)?;
    let cases = CALLS.map(|call| Case {
        name: call.to_owned(),
        conditions: call,
        // Batches are ours.
        contenders: match call.ends_with("batch") {
            true => vec![Contender::Rust],
            false => vec![Contender::Rust, Contender::C],
        },
    });
    let mut times = Vec::new();
    comparison.compare(&cases, |call, contender| {
        let name = format!("{}_{call}", contender.to_string().to_lowercase());
        // All loops run together: one pass is one run of each.
        let index = match times.iter().position(|(measured, _)| *measured == name) {
            Some(index) => index,
            None => {
                benchmark_calls::run(|measured, function| {
                    let start = Instant::now();
                    function();
                    times.push((measured, start.elapsed().as_nanos() as f64));
                })?;
                let found = times.iter().position(|(measured, _)| *measured == name);
                found.ok_or_else(|| Failure::Run(format!("there is no loop {name}")))?
            }
        };
        let (_, nanos) = times.swap_remove(index);
        Ok(vec![("ns", nanos / benchmark_calls::MESSAGES as f64)])
    })?;
    comparison.finish()
}
