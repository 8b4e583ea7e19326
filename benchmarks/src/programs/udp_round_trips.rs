//! Round trips over UDP between two processes of one busy thread each.

use std::path::Path;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_media_driver::Preset;

use super::comparison::{Case, Comparison, percentiles};
use crate::command_line::byte_size;
use crate::command_line::failure::Failure;
use crate::command_line::run_options::{RunOptions, distinct};
use crate::contenders::round_trips::{Bench, Contender};
use crate::processes::aeron_c::AeronC;
use crate::processes::network_namespaces::{Network, NetworkNamespaces};

/// Compares round trips over UDP between two processes: each is one busy thread that runs application, client and media
/// driver in one loop. The bound is a pair of connected UDP sockets without Aeron.
///
/// The next message is sent when the last is back. Each run starts both processes anew. The program in C is compiled on
/// first use.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("warmup", |arg| arg.default_value("1s")))]
pub struct RoundTripOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,c,java,sockets"
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

    /// The preset of the driver in Rust [default: none]
    #[arg(long, value_name = "PRESET")]
    preset: Option<Preset>,

    /// Length of each message in bytes, from 8 to 1376
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    message_length: usize,

    /// Length of a term buffer: a power of two from 64k to 1g
    // The warm-up passes all three terms, whose pages are allocated on first use.
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "1m",
          value_parser = byte_size::parse_term_length)]
    term_length: usize,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used; [`Failure::Run`] for everything else.
pub fn run(options: &RoundTripOptions) -> Result<(), Failure> {
    let networks = distinct(&options.networks);
    let mut comparison = Comparison::start("udp-round-trips", &options.run)?;
    let namespaces = NetworkNamespaces::for_networks(&networks)?;
    let interrupt = comparison.interrupt();
    let mut contenders = distinct(&options.contenders);
    let java = comparison.java_for(&mut contenders, |contender| *contender == Contender::Java);
    let c = contenders.contains(&Contender::C).then(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join("round_trips.c");
        AeronC::compile()?.program("round_trips", &[source], &[])
    });
    let bench = Bench {
        namespaces: namespaces.as_ref(),
        c: c.transpose()?,
        java: java.as_ref(),
        preset: options.preset,
        term_length: options.term_length,
        message_length: options.message_length,
        options: &options.run,
        interrupt: &interrupt,
    };
    let case = |network: Network| Case {
        name: network.name().to_owned(),
        conditions: network,
        contenders: contenders.clone(),
    };
    let cases: Vec<_> = networks.into_iter().map(case).collect();
    comparison.compare(&cases, |network, contender| {
        bench.measure(contender, *network).map(|round_trips| percentiles(&round_trips))
    })?;
    comparison.finish()
}
