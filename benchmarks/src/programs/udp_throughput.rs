//! The program `benchmark_udp_throughput`.

use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::IdleStrategyKind;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::driver_options::{Threading, idle_strategy};
use crate::command_line::failure::{self, Failure};
use crate::command_line::interrupt::Interrupt;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, JavaOptions, RunOptions};
use crate::contenders::udp_throughput::{Bench, Buffers, Conditions, Contender, MessageLength};
use crate::processes::driver_process::{self, Launcher};
use crate::processes::java::Java;
use crate::processes::network_namespaces::{Network, NetworkNamespaces};
use crate::processes::system_calls::SystemCalls;
use crate::reports::chart::settings_note;
use crate::reports::comparison;
use crate::reports::host;
use crate::reports::results::{self, Results};
use crate::reports::udp_comparison::Comparison;

/// Compares how many messages a second media drivers pass over UDP: the program media_driver with segmentation
/// offload, the same without it (Aeron's C driver), and Aeron's Java driver.
///
/// An exclusive publication and a subscription of this process pass as many messages as go, on one driver
/// (loopback) or on two in network namespaces of their own. Every message has its number, and a lost, repeated or
/// changed one is a failure. Each round starts the drivers anew for all conditions, and the contenders take turns.
/// Processor time is that of the drivers. Datagrams per system call are counted with perf for 300 ms after each
/// measurement; without perf, tracefs or root they are a dash. Without Java its contender is left out. Linux only.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths are bytes.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "benchmark_udp_throughput",
    version,
    mut_arg("runs", |arg| arg.default_value("3")),
    mut_arg("measure", |arg| arg.default_value("600ms")),
    mut_arg("warmup", |arg| arg.default_value("300ms")),
    mut_arg("java_warmup", |arg| arg.default_value("2s"))
)]
pub struct UdpThroughputOptions {
    /// The drivers, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,c,java"
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

    /// Threading modes of the drivers, separated by commas
    #[arg(
        long,
        value_name = "MODES",
        value_delimiter = ',',
        num_args = 1,
        default_value = "shared,dedicated"
    )]
    pub threading: Vec<Threading>,

    /// Vectors, socket buffers and receiver window of the drivers, separated by commas
    #[arg(
        long,
        value_name = "BUFFERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "default,throughput"
    )]
    pub buffers: Vec<Buffers>,

    /// Lengths of messages in bytes, from 8 to 1376, or mix, separated by commas; mix is random lengths from 32 to
    /// 1344, evenly spread, the same in each run
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "LENGTHS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "32,288,1344,mix"
    )]
    pub lengths: Vec<MessageLength>,

    /// Idle strategy of publisher and subscriber when they cannot go on
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub idle: IdleStrategyKind,

    /// Idle strategy of the drivers' threads
    #[arg(long, value_name = "STRATEGY", default_value = "backoff", value_parser = idle_strategy())]
    pub driver_idle: IdleStrategyKind,

    /// Length of a term buffer: a power of two from 64k to 1g [default: the drivers', 16m]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = byte_size::parse_term_length)]
    pub term_length: Option<usize>,

    /// The program media_driver [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    pub media_driver: Option<PathBuf>,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,

    /// Java.
    #[command(flatten)]
    pub java: JavaOptions,
}

impl UdpThroughputOptions {
    fn conditions(&self) -> Vec<Conditions> {
        let mut conditions = Vec::new();
        for network in run_options::distinct(&self.networks) {
            for threading in run_options::distinct(&self.threading) {
                for buffers in run_options::distinct(&self.buffers) {
                    conditions.push(Conditions { network, threading, buffers });
                }
            }
        }
        conditions
    }
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &UdpThroughputOptions) -> Result<(), Failure> {
    options.run.check()?;
    if !cfg!(target_os = "linux") {
        let text = "this program reads /proc, which Linux alone has; the other benchmarks run here";
        return Err(Failure::Run(text.to_owned()));
    }
    let (media_driver, version) = driver_process::media_driver(options.media_driver.as_deref())?;
    let interrupt = Interrupt::on_signals()?;
    let namespaces = NetworkNamespaces::for_networks(&options.networks)?;
    let results = Results::open(&options.run.results, "udp-throughput")?;
    let mut output = Output::new(&interrupt);

    let mut contenders = run_options::distinct(&options.contenders);
    let is_java = |contender: &Contender| *contender == Contender::Java;
    let java = Java::find_for(&mut contenders, is_java, &options.java, &interrupt);
    let bench = Bench {
        launcher: Launcher {
            media_driver: &media_driver,
            aeronmd: None,
            java: java.as_ref(),
            term_length: options.term_length,
        },
        namespaces: namespaces.as_ref(),
        idle: options.idle,
        driver_idle: options.driver_idle,
        slice: RunOptions::SLICE,
        warmup: options.run.warmup,
        java_warmup: options.java.java_warmup,
        measure: options.run.measure,
        counts_calls: can_count_calls(),
        interrupt: &interrupt,
    };
    let lengths = run_options::distinct(&options.lengths);
    let mut comparison = Comparison::new(options.conditions(), lengths, contenders);
    compare(options.run.runs, &bench, &mut comparison, &mut output)?;

    for line in comparison.tables() {
        output.line(line)?;
    }
    comparison.write_charts(&notes(options, java.as_ref()), &results)?;
    output.line(results.write(&report(options, &comparison, &version, java.as_ref()))?)
}

/// Returns whether system calls can be counted. If not, standard error says why.
fn can_count_calls() -> bool {
    let own = process::id();
    match SystemCalls::count(own, own, Duration::ZERO) {
        Ok(_) => true,
        Err(failure) => {
            failure::warn(format_args!("datagrams per system call are not counted: {failure}"));
            false
        }
    }
}

/// Lets all contenders take turns under all conditions, again and again, and prints each run.
fn compare(
    rounds: u32,
    bench: &Bench<'_>,
    comparison: &mut Comparison,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let (contenders, lengths) = (comparison.contenders.clone(), comparison.lengths.clone());
    let mut numbers = 0..;
    for round in 1..=rounds {
        for conditions in comparison.conditions.clone() {
            for contender in comparison::in_turn(contenders.iter().copied(), round) {
                let measured = bench.measure(contender, conditions, &lengths, &mut numbers);
                // Ctrl-C in a terminal ends the drivers, too, perhaps before this process knows of it.
                let grace = if measured.is_err() { Duration::from_secs(1) } else { Duration::ZERO };
                if bench.interrupt.wait_until(Instant::now() + grace, || false) {
                    return Ok(());
                }
                let Some(runs) = measured? else { continue };
                for (length, run) in lengths.iter().zip(&runs) {
                    let (name, summary) = (contender.name(), run.summary());
                    output.line(format_args!(
                        "Run {round}, {conditions}, {length}, {name}: {summary}"
                    ))?;
                }
                comparison.add(contender, conditions, runs);
            }
        }
    }
    Ok(())
}

fn notes(options: &UdpThroughputOptions, java: Option<&Java>) -> Vec<String> {
    let mut notes = results::notes();
    notes.extend(java.map(|java| java.versions().to_owned()));
    notes.push(settings_note(&[
        ("drivers' idle", &options.driver_idle.name()),
        ("clients' idle", &options.idle.name()),
        ("runs", &options.run.runs),
    ]));
    notes
}

fn report(
    options: &UdpThroughputOptions,
    comparison: &Comparison,
    media_driver: &str,
    java: Option<&Java>,
) -> Value {
    let mut versions = host::versions();
    versions["media_driver"] = json!(media_driver);
    versions["java"] = json!(java.map(Java::versions));
    let mut settings = options.run.to_json();
    settings["slice_seconds"] = json!(RunOptions::SLICE.as_secs_f64());
    settings["java_warmup_seconds"] = json!(options.java.java_warmup.as_secs_f64());
    settings["java_options"] = json!(options.java.java_option);
    settings["term_length"] = json!(options.term_length);
    settings["idle"] = json!(options.idle.name());
    settings["driver_idle"] = json!(options.driver_idle.name());
    let (cells, presets) = comparison.to_json();
    json!({
        "program": "benchmark_udp_throughput",
        "versions": versions,
        "host": host::describe(),
        "settings": settings,
        "cells": cells,
        "presets_to_defaults": presets,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        UdpThroughputOptions::command().debug_assert();
    }

    #[test]
    fn all_conditions_are_combined_once() {
        let arguments = ["program", "--threading", "shared,dedicated,shared"];
        let options = UdpThroughputOptions::try_parse_from(arguments).expect("valid arguments");
        let conditions: Vec<_> = options.conditions().iter().map(ToString::to_string).collect();
        assert_eq!(conditions.len(), 8);
        assert_eq!(conditions[0], "loopback, shared, default buffers");
        assert_eq!(conditions[7], "namespaces, dedicated, throughput buffers");
    }
}
