//! The server.

use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use cross_language::modes::{ProgramError, fail};
use cross_language::{Server, ServerOptions};
use rusteron_client::{IdleStrategy, IdleStrategyKind};

/// Serves the cross-language service until Ctrl-C
#[derive(Debug, Parser)]
#[command(name = "server")]
struct Options {
    #[command(flatten)]
    server: ServerOptions,

    /// Action without work: spin, yield, sleep-ns, backoff or noop
    #[arg(long, value_name = "IDLE", default_value = "backoff")]
    idle: IdleStrategyKind,
}

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() {
    if let Err(error) = run(&Options::parse()) {
        fail(&error);
    }
}

fn run(options: &Options) -> Result<(), ProgramError> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;
    let mut idle = options.idle.new_strategy();
    let mut server = Server::start(&options.server)?;
    println!("serving");
    while RUNNING.load(Ordering::Relaxed) {
        idle.idle(server.do_work()?);
    }
    Ok(())
}
