//! The server.

use clap::Parser;
use cross_language::modes::{ProgramError, fail};
use cross_language::{Server, ServerOptions};
use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{IdleStrategy, IdleStrategyKind};

/// Serves the cross-language service until Ctrl-C
#[derive(Debug, Parser)]
#[command(name = "server")]
struct Options {
    #[command(flatten)]
    server: ServerOptions,

    /// Action without work: spin, yield or backoff
    #[arg(long, value_name = "IDLE", default_value = "backoff")]
    idle: IdleStrategyKind,
}

fn main() {
    if let Err(error) = run(&Options::parse()) {
        fail(&error);
    }
}

fn run(options: &Options) -> Result<(), ProgramError> {
    let shutdown = ShutdownSignal::on_interrupt()?;
    let mut idle = options.idle.new_strategy();
    let mut server = Server::start(&options.server)?;
    println!("serving");
    while !shutdown.is_signalled() {
        idle.idle(server.do_work()?);
    }
    Ok(())
}
