//! The time of single calls.

use std::time::Instant;

use clap::Args;
use rusteron_core::program::Failure;

use super::comparison::{Comparison, cases};
use crate::command_line::choice::{Contender, option_name};
use crate::command_line::run_options::RunOptions;

/// Compares the time of single calls of the message path in Rust and in C, by one thread that
/// publishes 8,000 messages of 32 bytes and then receives them.
///
/// The messages are in this core's caches, which they are not between two threads: compare calls
/// with each other, not with rates of throughput.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("runs", |arg| arg.default_value("20")))]
pub struct CallsOptions {
    #[command(flatten)]
    run: RunOptions,
}

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
    let contenders = [Contender::Rust, Contender::C];
    let comparison = Comparison::start("calls", &options.run, &contenders)?;
    let mut cases = cases(CALLS, |call| (*call).to_owned(), &contenders);
    // Batches are ours.
    cases
        .iter_mut()
        .filter(|it| it.name.ends_with("batch"))
        .for_each(|it| it.contenders.truncate(1));
    let mut times = Vec::new();
    comparison.compare(&cases, |call, contender, _| {
        let name = format!("{}_{call}", option_name(&contender));
        // All loops run together: one pass is one run of each.
        if times.iter().all(|(measured, _)| *measured != name) {
            benchmark_calls::run(|measured, function| {
                let start = Instant::now();
                function();
                times.push((measured, start.elapsed().as_nanos() as f64));
            })?;
        }
        let index = times.iter().position(|(measured, _)| *measured == name);
        let index = index.ok_or_else(|| Failure::Run(format!("there is no loop {name}")))?;
        let (_, nanos) = times.swap_remove(index);
        Ok(vec![("ns", nanos / benchmark_calls::MESSAGES as f64)])
    })
}
