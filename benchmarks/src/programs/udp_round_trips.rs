//! The program `benchmark_udp_round_trips`.

use std::path::Path;

use clap::builder::RangedU64ValueParser;
use clap::{Parser, Subcommand};
use hdrhistogram::Histogram;
use rusteron_media_driver::Preset;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, JavaOptions, RunOptions};
use crate::contenders::round_trips::{Bench, Contender, Side};
use crate::measuring::statistics::Statistics;
use crate::processes::aeron_c::AeronC;
use crate::processes::java::Java;
use crate::processes::network_namespaces::{Network, NetworkNamespaces};
use crate::reports::comparison;
use crate::reports::host;
use crate::reports::latencies::micros;
use crate::reports::results::Results;

/// The percentiles of tables and reports; the last is the maximum.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];

/// Measures round trips over UDP between two processes: each is one busy thread that runs application, client
/// and media driver in one loop. The bound is a pair of connected UDP sockets without Aeron.
///
/// The next message is sent when the last is back. Each run starts both processes anew, and the contenders take turns.
/// The program in C is compiled on first use. Without Java its contender is left out.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "benchmark_udp_round_trips",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    mut_arg("warmup", |arg| arg.default_value("1s"))
)]
pub struct RoundTripOptions {
    /// The contenders, separated by commas; ratios are of the others to the first
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "sockets,rust,c,java"
    )]
    pub contenders: Vec<Contender>,

    /// The networks, separated by commas
    #[arg(
        long,
        value_name = "NETWORKS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "loopback,namespaces"
    )]
    pub networks: Vec<Network>,

    /// The preset of the driver in Rust [default: none]
    #[arg(long, value_name = "PRESET")]
    pub preset: Option<Preset>,

    /// Length of each message in bytes, from 8 to 1376
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    pub message_length: usize,

    /// Length of a term buffer: a power of two from 64k to 1g
    // The warm-up passes all three terms, whose pages are allocated on first use.
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "1m",
          value_parser = byte_size::parse_term_length)]
    pub term_length: usize,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,

    /// Java.
    #[command(flatten)]
    pub java: JavaOptions,

    /// One of the two processes.
    #[command(subcommand)]
    pub process: Option<Process>,
}

/// The processes that the program starts.
#[derive(Debug, Clone, Subcommand)]
pub enum Process {
    /// One side of the round trips
    #[command(hide = true)]
    Side(Side),
}

/// One contender on one network.
#[derive(Debug)]
struct Cell {
    network: Network,
    contender: Contender,
    runs: Vec<Histogram<u64>>,
}

impl Cell {
    /// The statistics of a percentile over the runs, in microseconds; `None` without runs.
    fn percentile(&self, quantile: f64) -> Option<Statistics> {
        Statistics::new(self.runs.iter().map(|run| micros(run.value_at_quantile(quantile))))
    }

    /// The median over the runs divided by another contender's.
    fn ratio(&self, first: &Self, quantile: f64) -> Option<f64> {
        Some(self.percentile(quantile)?.median() / first.percentile(quantile)?.median())
    }

    fn to_json(&self, first: &Self) -> Value {
        let percentiles = PERCENTILES.map(|(name, quantile)| {
            let statistics = self.percentile(quantile).map(|statistics| statistics.to_json());
            let runs = self.runs.iter().map(|run| micros(run.value_at_quantile(quantile)));
            let value = json!({
                "micros": statistics,
                "runs": runs.collect::<Vec<_>>(),
                "ratio_to_first": self.ratio(first, quantile),
            });
            (name.to_owned(), value)
        });
        json!({
            "network": self.network.name(),
            "contender": self.contender.name(),
            "round_trips": self.runs.iter().map(Histogram::len).collect::<Vec<_>>(),
            "percentiles": Value::Object(percentiles.into_iter().collect()),
        })
    }
}

/// Runs the program, or one of its processes.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used; [`Failure::Run`] for everything else.
pub fn run(options: &RoundTripOptions) -> Result<(), Failure> {
    if let Some(Process::Side(side)) = &options.process {
        return side.run();
    }
    options.run.check()?;
    let interrupt = Interrupt::on_signals()?;
    let networks = run_options::distinct(&options.networks);
    let namespaces = NetworkNamespaces::for_networks(&networks)?;
    let results = Results::open(&options.run.results, "udp-round-trips")?;
    let mut output = Output::new(&interrupt);

    let mut contenders = run_options::distinct(&options.contenders);
    let is_java = |contender: &Contender| *contender == Contender::Java;
    let java = Java::find_for(&mut contenders, is_java, &options.java, &interrupt);
    let c = contenders.contains(&Contender::C).then(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join("round_trips.c");
        let aeron = AeronC::compile()?;
        aeron.program("round_trips", &[source], &[])
    });
    let bench = Bench {
        namespaces: namespaces.as_ref(),
        c: c.transpose()?,
        java: java.as_ref(),
        preset: options.preset,
        term_length: options.term_length,
        message_length: options.message_length,
        warmup: options.run.warmup,
        java_warmup: options.java.java_warmup,
        measure: options.run.measure,
        interrupt: &interrupt,
    };
    let cells = compare(options.run.runs, &bench, &networks, &contenders, &mut output)?;
    for network in networks {
        for line in table(network, &cells) {
            output.line(line)?;
        }
    }
    output.line(results.write(&report(options, &cells, java.as_ref()))?)
}

/// Lets all contenders take turns on all networks, again and again, and prints each run.
fn compare(
    rounds: u32,
    bench: &Bench<'_>,
    networks: &[Network],
    contenders: &[Contender],
    output: &mut Output<'_>,
) -> Result<Vec<Cell>, Failure> {
    let cell = |network| {
        move |contender: &Contender| Cell { network, contender: *contender, runs: Vec::new() }
    };
    let mut cells: Vec<Vec<Cell>> =
        networks.iter().map(|network| contenders.iter().map(cell(*network)).collect()).collect();
    'rounds: for round in 1..=rounds {
        for cells in &mut cells {
            for cell in comparison::in_turn(cells.iter_mut(), round) {
                let measured = bench.measure(cell.contender, cell.network);
                if bench.interrupt.has_ended(&measured) {
                    break 'rounds;
                }
                let run = measured?;
                let values = PERCENTILES.map(|(name, quantile)| {
                    format!("{name} {:.2}", micros(run.value_at_quantile(quantile)))
                });
                let (network, contender) = (cell.network.name(), cell.contender.name());
                let values = values.join(", ");
                output.line(format_args!("Run {round}, {network}, {contender}: {values} us"))?;
                cell.runs.push(run);
            }
        }
    }
    Ok(cells.into_iter().flatten().collect())
}

fn table(network: Network, cells: &[Cell]) -> Vec<String> {
    let cells: Vec<_> = cells.iter().filter(|cell| cell.network == network).collect();
    let names = PERCENTILES.map(|(name, _)| format!("{name:>21} {:>7}", "ratio")).concat();
    let mut lines = vec![
        format!(
            "{}, microseconds: lowest, median and highest of the runs' percentiles",
            network.name()
        ),
        format!("  {:<10}{names}", "contender"),
    ];
    for cell in &cells {
        let values = PERCENTILES.map(|(_, quantile)| {
            let Some(statistics) = cell.percentile(quantile) else { return String::new() };
            let (min, median, max) = (statistics.min(), statistics.median(), statistics.max());
            let values = format!("{min:.1} {median:.1} {max:.1}");
            let ratio = cell.ratio(cells[0], quantile).unwrap_or(f64::NAN);
            format!("{values:>21} {ratio:>7.2}")
        });
        lines.push(format!("  {:<10}{}", cell.contender.name(), values.concat()));
    }
    lines
}

fn report(options: &RoundTripOptions, cells: &[Cell], java: Option<&Java>) -> Value {
    let mut versions = host::versions();
    versions["java"] = json!(java.map(Java::versions));
    let mut settings = options.run.to_json();
    settings["java_warmup_seconds"] = json!(options.java.java_warmup.as_secs_f64());
    settings["java_options"] = json!(options.java.java_option);
    settings["message_length"] = json!(options.message_length);
    settings["term_length"] = json!(options.term_length);
    settings["preset"] = json!(options.preset.map(Preset::name));
    let cells = cells.iter().map(|cell| {
        let first = cells.iter().find(|first| first.network == cell.network).unwrap_or(cell);
        cell.to_json(first)
    });
    json!({
        "program": "benchmark_udp_round_trips",
        "versions": versions,
        "host": host::describe(),
        "settings": settings,
        "cells": cells.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        RoundTripOptions::command().debug_assert();
    }

    #[test]
    fn table_has_ratios_to_first_contender() {
        let cell = |contender, nanos: &[u64]| {
            let run = |nanos: &u64| {
                let mut run = crate::contenders::ping_pong::histogram().expect("a histogram");
                run.saturating_record_n(*nanos, 10);
                run
            };
            Cell { network: Network::Loopback, contender, runs: nanos.iter().map(run).collect() }
        };
        let cells = [
            cell(Contender::Sockets, &[1000]),
            cell(Contender::Rust, &[2000, 3000, 1500]),
            cell(Contender::C, &[]),
        ];
        let lines = table(Network::Loopback, &cells);
        let row = lines[3].split_whitespace().take(5).collect::<Vec<_>>();
        assert_eq!(row, ["rust", "1.5", "2.0", "3.0", "2.00"]);
        assert_eq!(lines[4].trim(), "c");
    }
}
