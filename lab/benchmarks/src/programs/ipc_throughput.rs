//! Messages a second over IPC.

use std::fmt;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rusteron_client::IdleStrategyKind;
use rusteron_core::program::Failure;
use rusteron_core::scan;
use rusteron_media_driver::{DriverContext, ThreadingMode};

use super::comparison::{Case, Comparison};
use crate::command_line::choice::idle_strategy;
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::contenders::throughput::{Bench, Publishers, Way};
use crate::measuring::connection::Connection;
use crate::measuring::measurement::Plan;

/// The stream of the first run; each further one has the next.
const FIRST_STREAM_ID: i32 = 2001;

/// The default term length over IPC.
const TERM_LENGTH: usize = 64 << 20;

/// Kinds of publications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// One publisher on an exclusive publication, for each of the message lengths
    Exclusive,
    /// Several publishers on one publication, with messages of the first of the lengths
    Concurrent,
}

/// Compares messages a second over IPC: with the Rust API, with C's functions called from Rust, with loops in C, and
/// with Java.
///
/// All but Aeron's own Java sample use the same embedded media driver with one thread. Each run has a stream of its own,
/// and its rate is the median of slices of 100 ms (1 s for the sample). Messages longer than a fragment are counted in
/// fragments, without assembly.
#[derive(Debug, Clone, Args)]
pub struct ThroughputOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,rust-batches,c-functions,c-program,java,java-sample"
    )]
    contenders: Vec<Way>,

    /// The kinds of publications, separated by commas
    #[arg(
        long,
        value_name = "KINDS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "exclusive,concurrent"
    )]
    publications: Vec<Kind>,

    /// Lengths of messages in bytes, separated by commas, from 1 to 16m
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "32,128,512,1408,4096", value_parser = run_options::parse_message_length)]
    message_lengths: Vec<usize>,

    /// Numbers of threads on a concurrent publication, separated by commas
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_delimiter = ',', num_args = 1,
          default_value = "2,4", value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    publishers: Vec<usize>,

    /// Term lengths, separated by commas: powers of two from 64k to 1g
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "64m", value_parser = run_options::parse_term_length)]
    term_lengths: Vec<usize>,

    /// Idle strategies of publishers and subscriber, separated by commas; the Java sample spins all the same
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',', num_args = 1, default_value = "yield",
          value_parser = idle_strategy())]
    idle: Vec<IdleStrategyKind>,

    /// How many fragments a poll receives at the most
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=i32::MAX as u64))]
    fragment_limit: usize,

    #[command(flatten)]
    run: RunOptions,
}

/// A way, and the idle strategy of its loops.
#[derive(Debug, Clone, Copy)]
struct Contender {
    way: Way,
    idle: IdleStrategyKind,
    /// `true` if there are several idle strategies, to be told apart.
    names_idle: bool,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.way.fmt(f)?;
        if self.names_idle { write!(f, ", {}", self.idle.name()) } else { Ok(()) }
    }
}

/// The conditions of a case.
#[derive(Debug, Clone, Copy)]
struct Load {
    publishers: Publishers,
    message_length: usize,
    term_length: usize,
}

impl Load {
    /// Names what the options vary.
    fn name(&self, options: &ThroughputOptions) -> String {
        let mut name = match self.publishers {
            Publishers::Exclusive => format!("exclusive, {} B", self.message_length),
            Publishers::Concurrent(count) => {
                format!("{count} concurrent, {} B", self.message_length)
            }
        };
        if options.term_lengths != [TERM_LENGTH] {
            name += &format!(", terms of {}", scan::format_size(self.term_length as u64));
        }
        name
    }
}

impl ThroughputOptions {
    fn loads(&self) -> Vec<Load> {
        let first = self.message_lengths.first().copied();
        let exclusive = distinct(&self.message_lengths)
            .into_iter()
            .map(|length| (Publishers::Exclusive, length));
        let concurrent = distinct(&self.publishers)
            .into_iter()
            .filter_map(|count| Some((Publishers::Concurrent(count), first?)));
        let wanted = |kind| self.publications.contains(&kind);
        let publishers: Vec<_> = exclusive
            .filter(|_| wanted(Kind::Exclusive))
            .chain(concurrent.filter(|_| wanted(Kind::Concurrent)))
            .collect();
        let mut loads = Vec::new();
        for term_length in distinct(&self.term_lengths) {
            loads.extend(publishers.iter().map(|&(publishers, message_length)| Load {
                publishers,
                message_length,
                term_length,
            }));
        }
        loads
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &ThroughputOptions) -> Result<(), Failure> {
    let loads = options.loads();
    for load in &loads {
        run_options::check_message_length(
            "--message-lengths <BYTES>",
            load.message_length,
            load.term_length,
        )?;
    }
    let mut comparison = Comparison::start("ipc-throughput", &options.run)?;
    let interrupt = comparison.interrupt();
    let mut ways = distinct(&options.contenders);
    let java = comparison.java_for(&mut ways, |way| way.is_java());
    let mut context = DriverContext::new()?;
    context.set_threading_mode(ThreadingMode::Shared)?;
    let connection = Connection::embedded(context)?;
    let bench = Bench { connection: &connection, java: java.as_ref(), interrupt: &interrupt };
    let idles = distinct(&options.idle);
    let names_idle = idles.len() > 1;
    let contenders: Vec<_> = ways
        .iter()
        .flat_map(|&way| idles.iter().map(move |&idle| Contender { way, idle, names_idle }))
        .collect();
    let case = |load: &Load| Case {
        name: load.name(options),
        conditions: *load,
        contenders: contenders.iter().copied().filter(|it| load.publishers.have(it.way)).collect(),
    };
    let cases: Vec<_> = loads.iter().map(case).collect();
    let mut stream_ids = FIRST_STREAM_ID..;
    comparison.compare(&cases, |load, Contender { way, idle, .. }| {
        let plan = Plan {
            message_length: load.message_length,
            fragment_limit: options.fragment_limit,
            idle,
            interval: RunOptions::SLICE,
            warmup: options.run.warmup_with(way.is_java()),
            measured: options.run.measure,
            timeout: connection.timeout(),
        };
        let channel = format!("aeron:ipc?term-length={}", load.term_length);
        let stream_id = stream_ids.next().unwrap_or(FIRST_STREAM_ID);
        let rate = bench.measure(way, load.publishers, &plan, &channel, stream_id);
        Ok(vec![("msgs/s", rate.map_err(|failure| connection.explain(failure))?)])
    })?;
    connection.warn();
    comparison.finish()
}
