//! The server.

use clap::Parser;
use cross_language::modes::{ProgramError, fail};
use cross_language::{Server, ServerOptions};
use rusteron_client::IdleStrategy;
use rusteron_client::agent::ShutdownSignal;

fn main() {
    if let Err(error) = run(&ServerOptions::parse()) {
        fail(&error);
    }
}

fn run(options: &ServerOptions) -> Result<(), ProgramError> {
    let shutdown = ShutdownSignal::on_interrupt()?;
    let mut idle = options.connect.idle.new_strategy();
    let mut server = Server::start(options)?;
    println!("serving");
    while !shutdown.is_signalled() {
        idle.idle(server.do_work()?);
    }
    Ok(())
}
