//! The server.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use cross_language::{REQUEST_CHANNEL, RESPONSE_CHANNEL, Server, ServerOptions};
use rusteron_client::{IdleStrategy, IdleStrategyKind};

/// Serves the cross-language service until Ctrl-C
#[derive(Debug, Parser)]
#[command(name = "server")]
struct Options {
    /// Directory of a running media driver
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Channel of requests
    #[arg(long, value_name = "URI", default_value = REQUEST_CHANNEL)]
    request_channel: String,

    /// Channel of responses
    #[arg(long, value_name = "URI", default_value = RESPONSE_CHANNEL)]
    response_channel: String,

    /// Longest time that a caller may leave responses unread, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    client_timeout_ms: u64,

    /// Longest time that a caller may take for a callback, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    callback_timeout_ms: u64,

    /// Action without work: spin, yield, sleep-ns, backoff or noop
    #[arg(long, value_name = "IDLE", default_value = "backoff")]
    idle: IdleStrategyKind,
}

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;
    let mut idle = options.idle.new_strategy();
    let mut server = Server::start(&ServerOptions {
        aeron_dir: options.aeron_dir,
        request_channel: options.request_channel,
        response_channel: options.response_channel,
        client_timeout: Duration::from_millis(options.client_timeout_ms),
        callback_timeout: Duration::from_millis(options.callback_timeout_ms),
    })?;
    println!("serving");
    while RUNNING.load(Ordering::Relaxed) {
        idle.idle(server.do_work()?);
    }
    Ok(())
}
