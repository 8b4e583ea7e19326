//! Round trips through a cluster of one member.

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rusteron_client::IdleStrategyKind;

use super::comparison::{Case, Comparison, percentiles};
use crate::command_line::choice::{Language, Transport, display_in_words, idle_strategy};
use crate::command_line::failure::Failure;
use crate::command_line::run_options::{RunOptions, distinct};
use crate::contenders::cluster::{Bench, Plan};
use crate::measuring::connection::Connection;
use crate::processes::cluster_node::ClusterNode;
use crate::processes::cores::Cores;
use crate::processes::process_usage;

/// A client or a service, which alone differs from the others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Contender {
    /// A client in Rust; the service is a thread of the member
    RustClient,
    /// Aeron's client; the service is a thread of the member
    JavaClient,
    /// A service in Rust, in a process of its own; the client is in Rust
    RustService,
    /// Aeron's service, in a process of its own; the client is in Rust
    JavaService,
}
display_in_words!(Contender);

impl Contender {
    fn client(self) -> Language {
        if self == Self::JavaClient { Language::Java } else { Language::Rust }
    }

    fn service(self) -> Option<Language> {
        match self {
            Self::RustClient | Self::JavaClient => None,
            Self::RustService => Some(Language::Rust),
            Self::JavaService => Some(Language::Java),
        }
    }
}

/// Compares round trips through a cluster of one Java member with an echo service, and their rate: clients in Rust and
/// Java, and services in Rust and Java.
///
/// Each run starts a member anew, with driver, archive and consensus module in one process, and warms it up. A message
/// is answered when the member has recorded it and its service has processed it. With a window of 1, a client sends the
/// next message after the answer. With a larger window, the rate is that of the whole way. Needs Java.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("warmup", |arg| arg.default_value("1s")),
    mut_arg("measure", |arg| arg.default_value("3s"))
)]
pub struct ClusterOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust-client,java-client,rust-service,java-service"
    )]
    contenders: Vec<Contender>,

    /// Transports of ingress and egress, separated by commas
    #[arg(
        long,
        value_name = "TRANSPORTS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "udp,ipc"
    )]
    transports: Vec<Transport>,

    /// How many messages wait for their answers at the most, separated by commas
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_delimiter = ',', num_args = 1,
          default_value = "1,256", value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000))]
    windows: Vec<u64>,

    /// Length of each message in bytes, from 8 to 1024
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1024))]
    message_length: usize,

    /// Idle strategy of the client's loop
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    idle: IdleStrategyKind,

    /// Idle strategy of all threads of the member, and of a service in a process of its own
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    node_idle: IdleStrategyKind,

    /// Cores of the member's process, and of all else
    #[arg(long, value_name = "CORES", default_value = "shared")]
    cores: Cores,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before anything is started; [`Failure::Run`] for everything
/// else.
pub fn run(options: &ClusterOptions) -> Result<(), Failure> {
    let mut comparison = Comparison::start("cluster", &options.run)?;
    let interrupt = comparison.interrupt();
    let java = comparison.require_java()?;
    let mut cases = Vec::new();
    for transport in distinct(&options.transports) {
        for window in distinct(&options.windows) {
            cases.push(Case {
                name: format!("{}, window {window}", transport.name()),
                conditions: (transport, window),
                contenders: distinct(&options.contenders),
            });
        }
    }
    comparison.compare(&cases, |&(transport, window), contender| {
        let idle = options.node_idle.name();
        let mut node =
            ClusterNode::start(&java, idle, options.cores, contender.service(), &interrupt)?;
        let (aeron_dir, ingress_endpoints) = (node.aeron_dir(), node.ingress_endpoints());
        let connection = Connection::to_driver(&aeron_dir)?;
        let bench = Bench {
            aeron: connection.aeron(),
            aeron_dir: &aeron_dir,
            ingress_endpoints: &ingress_endpoints,
            java: &java,
            interrupt: &interrupt,
        };
        let plan = Plan {
            transport,
            message_length: options.message_length,
            window,
            idle: options.idle,
            warmup: options.run.warmup_with(contender.client() == Language::Java),
            measure: options.run.measure,
        };
        // The Java machines of member and service get ready.
        let warm_up = Plan { measure: options.run.java_warmup, ..plan };
        let measured = bench
            .measure(Language::Rust, &warm_up)
            .and_then(|_| bench.measure(contender.client(), &plan));
        // If a process has ended, its own words say more.
        node.check()?;
        let outcome = measured.map_err(|failure| connection.explain(failure))?;
        let mut figures = vec![("answers/s", outcome.rate)];
        figures.extend(percentiles(&outcome.round_trips));
        // Where the system has no /proc, the memory is left out.
        if let Some((resident, shared)) =
            node.service().and_then(|service| process_usage::resident(service.pid()).ok())
        {
            figures.push(("private MiB", (resident - shared) as f64 / f64::from(1 << 20)));
        }
        Ok(figures)
    })?;
    comparison.finish()
}
