//! The caller.

use clap::Parser;
use cross_language::modes::{Modes, fail, square};
use cross_language::{AeronTransport, Body, Caller, ConnectOptions, InProcess};

/// Calls the cross-language service
#[derive(Debug, Parser)]
#[command(name = "caller")]
struct Options {
    #[command(flatten)]
    connect: ConnectOptions,

    /// Call the service in this process instead
    #[arg(long)]
    in_process: bool,

    #[command(flatten)]
    modes: Modes,
}

fn main() {
    let Options { connect, in_process, modes } = Options::parse();
    let timeout = modes.timeout();
    let result = if in_process {
        modes.run(|| {
            let mut caller = Caller::new(InProcess::new(), timeout, square);
            Ok(move |operation, argument: &Body| caller.call(operation, argument))
        })
    } else {
        modes.run(|| {
            let mut caller =
                Caller::new(AeronTransport::connect(&connect, timeout)?, timeout, square);
            Ok(move |operation, argument: &Body| caller.call(operation, argument))
        })
    };
    if let Err(error) = result {
        fail(&error);
    }
}
