//! Measures rusteron, and compares it with Aeron's C client and with Java.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rusteron_benchmarks::command_line::choice::idle_strategy;
use rusteron_benchmarks::processes::echo_service;
use rusteron_benchmarks::programs::{
    archives, calls, cluster, cluster_nodes, driver_resources, drivers, headline, idling,
    instructions, ipc_latency, ipc_throughput, recording, render, udp_round_trips, udp_throughput,
};
use rusteron_client::IdleStrategyKind;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::exit_code;

/// Measures rusteron, and compares it with Aeron's C client and with Java.
///
/// Contenders take turns, in several rounds. A table of lowest, median and highest run is printed
/// at the end, and a results file is written. Ctrl-C ends a benchmark with the results so far.
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
/// Without Java its contenders are left out.
#[derive(Debug, Parser)]
#[command(name = "benchmark", version)]
struct Options {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    Headline(headline::HeadlineOptions),
    IpcThroughput(ipc_throughput::ThroughputOptions),
    IpcLatency(ipc_latency::LatencyOptions),
    Idling(idling::IdlingOptions),
    UdpThroughput(udp_throughput::UdpThroughputOptions),
    UdpRoundTrips(udp_round_trips::RoundTripOptions),
    Drivers(drivers::DriversOptions),
    DriverResources(driver_resources::ResourceOptions),
    Archives(archives::ArchivesOptions),
    Recording(recording::RecordingOptions),
    Cluster(cluster::ClusterOptions),
    ClusterNodes(cluster_nodes::ClusterNodesOptions),
    Calls(calls::CallsOptions),
    Instructions(instructions::ReportOptions),
    Render(render::RenderOptions),
    /// One of the two processes of udp-round-trips
    #[command(hide = true)]
    Side(udp_round_trips::Side),
    /// The service in Rust of cluster
    #[command(hide = true)]
    EchoService {
        #[arg(value_parser = idle_strategy())]
        idle: IdleStrategyKind,
        aeron_dir: PathBuf,
        cluster_dir: PathBuf,
    },
}

fn run(benchmark: &Benchmark) -> Result<(), Failure> {
    match benchmark {
        Benchmark::Headline(options) => headline::run(options),
        Benchmark::IpcThroughput(options) => ipc_throughput::run(options),
        Benchmark::IpcLatency(options) => ipc_latency::run(options),
        Benchmark::Idling(options) => idling::run(options),
        Benchmark::UdpThroughput(options) => udp_throughput::run(options),
        Benchmark::UdpRoundTrips(options) => udp_round_trips::run(options),
        Benchmark::Drivers(options) => drivers::run(options),
        Benchmark::DriverResources(options) => driver_resources::run(options),
        Benchmark::Archives(options) => archives::run(options),
        Benchmark::Recording(options) => recording::run(options),
        Benchmark::Cluster(options) => cluster::run(options),
        Benchmark::ClusterNodes(options) => cluster_nodes::run(options),
        Benchmark::Calls(options) => calls::run(options),
        Benchmark::Instructions(options) => instructions::report(options),
        Benchmark::Render(options) => render::run(options),
        Benchmark::Side(side) => side.run(),
        Benchmark::EchoService { idle, aeron_dir, cluster_dir } => {
            echo_service::serve(aeron_dir, cluster_dir, *idle)
        }
    }
}

fn main() -> ExitCode {
    exit_code(run(&Options::parse().benchmark))
}
