//! Messages a second over UDP.

use std::path::PathBuf;

use clap::Args;
use rusteron_client::IdleStrategyKind;

use super::comparison::{Case, Comparison};
use crate::command_line::byte_size;
use crate::command_line::choice::{Threading, idle_strategy, in_words};
use crate::command_line::failure::Failure;
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::contenders::udp_throughput::{Bench, Buffers, Conditions, Contender, MessageLength};
use crate::processes::driver_process::{self, Launcher};
use crate::processes::network_namespaces::{Network, NetworkNamespaces};

/// Compares messages a second of media drivers over UDP: the program media_driver with segmentation offload, the same
/// without it (Aeron's C driver), and Aeron's Java driver.
///
/// An exclusive publication and a subscription of this process pass as many messages as go, on one driver (loopback) or
/// on two in network namespaces of their own. Every message has its number, and a lost, repeated or changed one is a
/// failure. Processor time is that of the drivers. Linux only.
#[derive(Debug, Clone, Args)]
pub struct UdpThroughputOptions {
    /// The drivers, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,c,java"
    )]
    contenders: Vec<Contender>,

    /// The networks, separated by commas
    #[arg(
        long,
        value_name = "NETWORKS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "loopback,namespaces"
    )]
    networks: Vec<Network>,

    /// Threading modes of the drivers, separated by commas
    #[arg(
        long,
        value_name = "MODES",
        value_delimiter = ',',
        num_args = 1,
        default_value = "shared"
    )]
    threading: Vec<Threading>,

    /// Vectors, socket buffers and receiver window of the drivers, separated by commas
    #[arg(
        long,
        value_name = "BUFFERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "default,throughput"
    )]
    buffers: Vec<Buffers>,

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
    message_lengths: Vec<MessageLength>,

    /// Idle strategy of publisher and subscriber
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    idle: IdleStrategyKind,

    /// Idle strategy of the drivers' threads
    #[arg(long, value_name = "STRATEGY", default_value = "backoff", value_parser = idle_strategy())]
    driver_idle: IdleStrategyKind,

    /// Length of a term buffer: a power of two from 64k to 1g [default: the drivers', 16m]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = byte_size::parse_term_length)]
    term_length: Option<usize>,

    /// The program media_driver [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    media_driver: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

impl UdpThroughputOptions {
    fn cases(&self, contenders: &[Contender]) -> Vec<Case<Conditions, Contender>> {
        let mut cases = Vec::new();
        for network in distinct(&self.networks) {
            for threading in distinct(&self.threading) {
                for buffers in distinct(&self.buffers) {
                    cases.extend(distinct(&self.message_lengths).into_iter().map(|length| Case {
                        name: format!(
                            "{}, {}, {}, {length}",
                            network.name(),
                            threading.name(),
                            in_words(&buffers).to_lowercase()
                        ),
                        conditions: Conditions { network, threading, buffers, length },
                        contenders: contenders.to_vec(),
                    }));
                }
            }
        }
        cases
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &UdpThroughputOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let media_driver = driver_process::media_driver(options.media_driver.as_deref())?;
    let mut comparison = Comparison::start("udp-throughput", &options.run)?;
    let namespaces = NetworkNamespaces::for_networks(&options.networks)?;
    let interrupt = comparison.interrupt();
    let mut contenders = distinct(&options.contenders);
    let java = comparison.java_for(&mut contenders, |contender| *contender == Contender::Java);
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
        options: &options.run,
        interrupt: &interrupt,
    };
    let mut numbers = 0..;
    comparison.compare(&options.cases(&contenders), |conditions, contender| {
        bench.measure(contender, conditions, &mut numbers)
    })?;
    comparison.finish()
}
