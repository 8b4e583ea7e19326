//! The caller.

use clap::Parser;
use cross_language::modes::{Modes, fail, square};
use cross_language::protocol::Request;
use cross_language::{AeronTransport, Caller, ConnectOptions, InProcess};

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
            Ok(move |request: &mut Request| Ok(caller.call(request)?))
        })
    } else {
        modes.run(|| {
            let transport = AeronTransport::connect(&connect, timeout)?;
            let mut caller = Caller::new(transport, timeout, square);
            Ok(move |request: &mut Request| Ok(caller.call(request)?))
        })
    };
    if let Err(error) = result {
        fail(&error);
    }
}
