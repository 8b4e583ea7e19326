//! Reads what a media driver publishes about itself and its streams.
//!
//! `CncFile` reads a driver's files without being its client. The driver, in Rust, C or Java, does not notice, and may
//! even have ended. The program `rusteron` of `rusteron-tools` prints much more.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use rusteron_client::{CncFile, Context, SystemCounter};

/// How long to wait for a driver that is just starting.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Clients take a driver for dead after a silence of this length.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let dir = env::var_os("AERON_DIR").map_or_else(Context::default_dir, PathBuf::from);
    let cnc = CncFile::open(dir, TIMEOUT)?;
    let state = if cnc.is_active(DRIVER_TIMEOUT) { "active" } else { "silent" };
    println!("Driver: {state}, process {}, protocol {}", cnc.pid(), cnc.version());

    // A counter is a number that its owner writes and every process can read. Drivers have some, so have clients.
    let counters = cnc.counters();
    let bytes_sent = SystemCounter::BytesSent.read(&counters).unwrap_or(0);
    println!("Bytes sent: {bytes_sent}");
    println!("Counters:");
    for counter in counters.iter() {
        println!(
            "  {:3} type {:3} {:20} {}",
            counter.id, counter.type_id, counter.value, counter.label
        );
    }

    // The positions of a stream are counters, too: of its publisher, sender, receiver and subscribers.
    println!("Streams:");
    for stream in counters.stream_positions() {
        let backlog = stream.subscriber_backlog().unwrap_or(0);
        println!("  {stream}; the slowest subscriber is {backlog} bytes behind");
    }

    println!("Errors:");
    for error in cnc.errors() {
        println!("  {} times: {}", error.observation_count, error.text);
    }
    println!("Losses:");
    for loss in cnc.loss_report()? {
        println!("  {} bytes of {} from {}", loss.total_bytes_lost, loss.channel, loss.source);
    }
    Ok(())
}
