//! The processes that the supervisor starts.

mod client;
mod driver;
mod forger;
mod publisher;
mod subscriber;

use std::fs::File;
use std::panic;
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rusteron_core::program::Failure;
use rusteron_test_support::ForkedChild;
use serde::{Deserialize, Serialize};

use crate::party::{Notice, Orders, say};

/// The kinds of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Runs the media driver.
    Driver,
    /// Publishes on all streams.
    Publisher,
    /// Subscribes to all streams.
    Subscriber,
    /// Forges the metadata of log buffers of its own.
    Forger,
}

/// The task of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PartOptions {
    pub(super) part: Part,
    /// The driver's directory.
    pub(super) dir: PathBuf,
    /// The number of this publisher or subscriber.
    pub(super) index: u16,
    /// The address and port of the stream over UDP.
    pub(super) endpoint: String,
    pub(super) seed: u64,
    /// The number of counters that a publisher has.
    pub(super) counters: usize,
    /// The driver takes over the directory of a dead driver, instead of deleting it in any
    /// case.
    pub(super) take_over: bool,
    /// The driver loses datagrams.
    pub(super) loss: bool,
    /// The mistake to make.
    pub(super) sabotage: Option<Sabotage>,
}

/// A mistake of a subscriber's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Sabotage {
    /// Sees a message twice
    Repeat,
    /// Overlooks a message
    Skip,
    /// Changes a message
    Corrupt,
    /// Aborts
    Crash,
    /// Keeps descriptors open
    Leak,
    /// Ignores that its client is closed
    Undead,
}

/// Plays a part until the supervisor asks for its end.
pub(crate) fn play(options: &PartOptions) -> Result<(), Failure> {
    // A caught panic, such as a panic of a callback, is a crash all the same.
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        print(info);
        process::abort();
    }));
    let orders = Orders::read();
    match options.part {
        Part::Driver => driver::play(options, &orders)?,
        Part::Publisher => publisher::play(options, &orders),
        Part::Subscriber => subscriber::play(options, &orders),
        Part::Forger => forger::play(options, &orders),
    }
    Ok(())
}

/// Tells the supervisor that a condition is violated.
fn accuse(condition: &str, count: u64, text: impl Into<String>) {
    say(&Notice::Violation(condition.to_owned(), count, text.into()));
}

/// Forks a child. Returns `true` in the child, which then says nothing more, and must end with success.
fn fork() -> bool {
    /// How long a child may take to drop its handles and to end.
    const DEADLINE: Duration = Duration::from_secs(10);
    match ForkedChild::fork() {
        Ok(None) => {
            // The supervisor takes what this process says for its parent's notices.
            let null = File::options().write(true).open("/dev/null");
            if null.is_ok_and(|null| rustix::stdio::dup2_stdout(null).is_ok()) {
                return true;
            }
            process::abort();
        }
        Ok(Some(child)) => {
            thread::spawn(move || {
                if let Err(end) = child.await_success(Instant::now() + DEADLINE) {
                    accuse("crashed", 1, format!("a forked child: {end}"));
                }
            });
        }
        // A process without memory or descriptors for it. Other faults are in force as well.
        Err(_) => {}
    }
    false
}
