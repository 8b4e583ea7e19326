//! Measures calls of the cross-language service over Aeron, gRPC and in one process, and renders the results.
//!
//! `measure run` appends rounds to the results, within which the transports take turns, and writes tables and charts of
//! all rounds. `measure render` only writes those.

mod machine;
mod plan;
mod processes;
mod render;
mod run;

use std::error::Error;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use plan::Transport;
use rusteron_client::IdleStrategyKind;

/// Measures the cross-language service
#[derive(Debug, Parser)]
#[command(name = "measure")]
struct Options {
    /// Directory of results, tables and charts
    #[arg(
        long,
        value_name = "DIR",
        default_value = "target/benchmarks/cross-language",
        global = true
    )]
    results: PathBuf,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure, append to the results, and write tables and charts
    Run(RunOptions),
    /// Write tables (tables.md) and charts (SVG) of the results
    Render,
    /// Run a media driver until standard input has a line: for `run`
    #[command(hide = true)]
    Driver {
        /// Action of the driver's thread without work
        #[arg(long, value_name = "IDLE")]
        idle: IdleStrategyKind,
    },
}

#[derive(Debug, Args)]
struct RunOptions {
    /// Rounds in which the transports take turns
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,

    /// A hundredth of the calls, for a look
    #[arg(long)]
    quick: bool,

    /// The runs that the goals name alone
    #[arg(long)]
    core: bool,

    /// Callers' languages
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',')]
    caller: Vec<String>,

    /// Servers' languages
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',')]
    server: Vec<String>,

    /// Transports
    #[arg(long, value_name = "TRANSPORT", value_delimiter = ',')]
    transport: Vec<Transport>,

    /// Lengths of texts, 0 for `ping`
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    payload: Vec<u32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    match options.command {
        Command::Run(run_options) => {
            std::fs::create_dir_all(&options.results)?;
            let result = run::run(&options.results, &run_options);
            render::render(&options.results)?;
            result
        }
        Command::Render => render::render(&options.results),
        Command::Driver { idle } => processes::drive(idle),
    }
}
