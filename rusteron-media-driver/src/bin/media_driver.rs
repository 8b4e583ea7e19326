//! A media driver as a process of its own.
//!
//! Settings come from the `AERON_*` environment variables, as for Aeron's own drivers, and from the
//! options below, which win. One line on standard output says when the driver is ready, another when
//! it is closed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;

use clap::{Parser, ValueEnum};
use rusteron_media_driver::{Context, MediaDriver, ThreadingMode};

/// Runs Aeron's media driver until it is interrupted or terminated.
#[derive(Parser)]
#[command(version = concat!(env!("CARGO_PKG_VERSION"), " (Aeron ", env!("RUSTERON_AERON_VERSION"), ")"))]
struct Options {
    /// The driver's directory [env: AERON_DIR]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// How the driver's work is spread over threads [env: AERON_THREADING_MODE]
    #[arg(long, value_name = "MODE")]
    threading_mode: Option<Threads>,

    /// Delete the directory, whatever is in it, before starting
    #[arg(long)]
    delete_on_start: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Threads {
    /// Conductor, sender and receiver each on a thread
    Dedicated,
    /// Sender and receiver share a thread
    SharedNetwork,
    /// One thread for everything
    Shared,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("media_driver: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || {
        // The receiver is gone only when the program is ending anyway.
        let _ = stop.send(());
    })?;

    let driver = MediaDriver::launch(context(options)?)?;
    let dir = driver.aeron_dir().display().to_string();
    println!("media driver ready: {dir}");
    stopped.recv()?;
    drop(driver);
    println!("media driver closed: {dir}");
    Ok(())
}

fn context(options: &Options) -> rusteron_media_driver::Result<Context> {
    let mut context = Context::new()?;
    if let Some(dir) = &options.dir {
        context.set_dir(dir)?;
    }
    if let Some(threads) = options.threading_mode {
        context.set_threading_mode(match threads {
            Threads::Dedicated => ThreadingMode::Dedicated,
            Threads::SharedNetwork => ThreadingMode::SharedNetwork,
            Threads::Shared => ThreadingMode::Shared,
        })?;
    }
    if options.delete_on_start {
        context.set_dir_delete_on_start(true)?;
    }
    Ok(context)
}
