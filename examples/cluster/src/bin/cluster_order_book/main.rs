//! A limit order book that a cluster replicates, and its client.
//!
//! The book is one more step from the auction: traders buy and sell at limits, cancel, and give orders a lifetime. Shows
//! a state in ordered containers, timers, snapshots, and requests that have one effect although they come twice.
//!
//! - `book.rs`: the state, price first and then time. Knows nothing of clusters.
//! - `messages.rs`: requests and answers.
//! - `service.rs`: the replicated service.
//! - `client.rs`: a trader, by hand or with a load of orders that is measured.
//!
//! ```text
//! just run-cluster-rust --service 'cluster_order_book service'
//! cargo run --bin cluster_order_book -- sell 100 5
//! cargo run --bin cluster_order_book -- buy 101 3 --trader 2
//! cargo run --release --bin cluster_order_book -- load
//! ```

mod book;
mod client;
mod messages;
mod service;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use rusteron_client::IdleStrategyKind;
use rusteron_client::agent::ShutdownSignal;
use rusteron_cluster::{IngressEndpoints, ServiceContainer, ServiceContext, TerminationCause};

use service::OrderBookService;

/// A limit order book that a cluster replicates, and its client
#[derive(Debug, Parser)]
#[command(name = "cluster_order_book", version)]
struct Options {
    /// Directory of a running media driver: the node's for the service, any for a client instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR", global = true)]
    aeron_dir: Option<PathBuf>,

    /// Idle strategy: spin, yield, sleep-ns, backoff or noop
    #[arg(long, value_name = "STRATEGY", default_value = "backoff", global = true)]
    idle: IdleStrategyKind,

    /// Ingress endpoints of the cluster's members, for clients
    #[arg(
        long,
        value_name = "ID=HOST:PORT,...",
        default_value = "0=localhost:9002",
        global = true
    )]
    ingress_endpoints: IngressEndpoints,

    /// Channel for answers to a client; all members have to reach its endpoint
    #[arg(
        long,
        value_name = "URI",
        default_value = "aeron:udp?endpoint=localhost:0",
        global = true
    )]
    egress_channel: String,

    /// The trader that a client is
    #[arg(long, value_name = "ID", default_value_t = 1, global = true)]
    trader: i64,

    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run the service of a node, until the node ends
    Service {
        /// Directory of the node's consensus module, for the mark file that tools read
        #[arg(long, value_name = "DIR", env = "AERON_CLUSTER_DIR")]
        cluster_dir: PathBuf,
    },
    #[command(flatten)]
    Client(client::Task),
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match &options.task {
        Task::Service { cluster_dir } => serve(&options, cluster_dir),
        Task::Client(task) => client::run(&options, task),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the service until its node ends. The supervisor of the node then starts all parts of the node again.
fn serve(options: &Options, cluster_dir: &Path) -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::new();
    let signal = shutdown.clone();
    ctrlc::set_handler(move || signal.signal())?;

    let mut context = ServiceContext::from_env()?;
    context.set_cluster_dir(cluster_dir).set_idle_strategy(options.idle);
    if let Some(dir) = &options.aeron_dir {
        context.set_aeron_dir(dir);
    }
    let container = ServiceContainer::launch(context, OrderBookService::new())?;
    while container.is_running() {
        if shutdown.wait_timeout(Duration::from_millis(100)) {
            container.stop();
            break;
        }
    }
    match container.join() {
        cause @ (TerminationCause::Stopped
        | TerminationCause::ConsensusModuleTerminated { is_expected: true, .. }) => {
            println!("End: {cause}");
            Ok(())
        }
        cause => Err(cause.into()),
    }
}
