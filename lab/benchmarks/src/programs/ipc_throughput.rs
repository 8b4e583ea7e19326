//! Messages a second over IPC.

use std::fmt;

use clap::{Args, ValueEnum};
use rusteron_client::IdleStrategyKind;
use rusteron_core::program::Failure;
use rusteron_core::scan;
use rusteron_media_driver::{DriverContext, ThreadingMode};

use super::comparison::{Comparison, cases, pairs};
use crate::command_line::choice::{Contender, among, idle_strategy};
use crate::command_line::run_options::{self, RunOptions};
use crate::contenders::throughput::{Bench, Publishers};
use crate::measuring::connection::Connection;

/// The stream of the first run; each further one has the next.
const FIRST_STREAM_ID: u32 = 2001;

/// The default term length over IPC.
const TERM_LENGTH: usize = 64 << 20;

/// Kinds of publications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// One publisher on an exclusive publication, for each of the message lengths
    Exclusive,
    /// Two and four publishers on one publication, with messages of the first of the lengths
    Concurrent,
}

/// Compares messages a second over IPC: with the Rust API, singly and in batches of 16, with C's
/// functions called from Rust, with loops in C, with Java, and with Aeron's sample
/// EmbeddedExclusiveIpcThroughput.
///
/// All but the sample, which spins and has a driver in Java, use the same embedded media driver
/// with one thread. Each run has a stream of its own, and its rate is the median of slices of 100
/// ms (1 s for the sample). Messages longer than a fragment are counted in fragments, without
/// assembly. Loops in C and the sample have only an exclusive publication.
#[derive(Debug, Clone, Args)]
pub struct ThroughputOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',',
          default_value = "rust,rust-batches,c-functions,c-program,java,java-sample",
          value_parser = among("rust,rust-batches,c-functions,c-program,java,java-sample"))]
    contenders: Vec<Contender>,

    /// The kinds of publications, separated by commas
    #[arg(
        long,
        value_name = "KINDS",
        value_delimiter = ',',
        default_value = "exclusive,concurrent"
    )]
    publications: Vec<Kind>,

    /// Lengths of messages in bytes, separated by commas, from 1 to 16m
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "32,128,512,1408,4096",
          value_parser = run_options::parse_message_length)]
    message_lengths: Vec<usize>,

    /// Term lengths, separated by commas: powers of two from 64k to 1g
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "64m",
          value_parser = run_options::parse_term_length)]
    term_lengths: Vec<usize>,

    /// Idle strategies of publishers and subscriber, separated by commas; the Java sample spins all
    /// the same
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',', default_value = "yield",
          value_parser = idle_strategy())]
    idle: Vec<IdleStrategyKind>,

    #[command(flatten)]
    run: RunOptions,
}

/// A contender, and the idle strategy of its loops.
#[derive(Debug, Clone, Copy)]
struct Loops {
    contender: Contender,
    idle: IdleStrategyKind,
    /// `true` if there are several idle strategies, to be told apart.
    names_idle: bool,
}

impl fmt::Display for Loops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.contender.fmt(f)?;
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

impl ThroughputOptions {
    fn loads(&self) -> Vec<Load> {
        let lengths = &self.message_lengths;
        let exclusive = pairs(&[Publishers::Exclusive], lengths);
        let concurrent = pairs(&[2, 4].map(Publishers::Concurrent), &lengths[..1]);
        let publishers: Vec<_> = [(Kind::Exclusive, exclusive), (Kind::Concurrent, concurrent)]
            .into_iter()
            .filter(|(kind, _)| self.publications.contains(kind))
            .flat_map(|(_, publishers)| publishers)
            .collect();
        pairs(&self.term_lengths, &publishers)
            .into_iter()
            .map(|(term_length, (publishers, message_length))| Load {
                publishers,
                message_length,
                term_length,
            })
            .collect()
    }

    /// Names what the options vary.
    fn name(&self, load: &Load) -> String {
        let mut name = match load.publishers {
            Publishers::Exclusive => "exclusive".to_owned(),
            Publishers::Concurrent(count) => format!("{count} concurrent"),
        };
        name += &format!(", {} B", load.message_length);
        if self.term_lengths.iter().any(|length| *length != TERM_LENGTH) {
            name += &format!(", terms of {}", scan::format_size(load.term_length as u64));
        }
        name
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
        run_options::check_message_length(load.message_length, load.term_length)?;
    }
    let comparison = Comparison::start("ipc-throughput", &options.run, &options.contenders)?;
    let environment = comparison.environment.clone();
    let mut context = DriverContext::new()?;
    context.set_threading_mode(ThreadingMode::Shared)?;
    let connection = Connection::embedded(context)?;
    let bench = Bench { connection: &connection, environment: &environment };
    let names_idle = options.idle.windows(2).any(|pair| pair[0] != pair[1]);
    let contenders: Vec<_> = pairs(&comparison.contenders, &options.idle)
        .into_iter()
        .map(|(contender, idle)| Loops { contender, idle, names_idle })
        .collect();
    let mut cases = cases(loads, |load| options.name(load), &contenders);
    for case in &mut cases {
        case.contenders.retain(|it| case.conditions.publishers.have(it.contender));
    }
    comparison.compare(&cases, |load, Loops { contender, idle, .. }, number| {
        let timeout = connection.timeout();
        let plan = environment.plan(contender, load.message_length, idle, timeout);
        let channel = format!("aeron:ipc?term-length={}", load.term_length);
        let stream_id = (FIRST_STREAM_ID + number) as i32;
        let rate = bench.measure(contender, load.publishers, &plan, &channel, stream_id);
        Ok(vec![("msgs/s", rate.map_err(|failure| connection.explain(failure))?)])
    })?;
    connection.warn();
    Ok(())
}
