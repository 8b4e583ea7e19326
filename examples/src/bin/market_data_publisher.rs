//! Publishes quotes to any number of subscribers over UDP, and survives restarts of its media driver and of subscribers.
//!
//! Start it and `market_data_subscriber` before or after a media driver, such as `cargo run --bin media_driver`. For
//! subscribers on other machines, the argument is an address of this one, such as `10.0.0.1:40456`.

use std::env;
use std::error::Error;
use std::time::{Duration, SystemTime};

use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Context, Reconnect};

const STREAM_ID: i32 = 1001;
const INTERVAL: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "localhost:40456".to_owned());
    // Subscribers announce themselves at the address. A slow subscriber loses quotes, and the publisher goes on.
    let channel = format!("aeron:udp?control-mode=dynamic|control={address}");
    let open = move |aeron: &Aeron| aeron.add_exclusive_publication(&channel, STREAM_ID);
    let mut quotes = Reconnect::new(Context::new, open).on_change(|change| match change {
        Ok(publication) => println!("Connected: session {}", publication.session_id()),
        Err(cause) => println!("Disconnected: {cause}"),
    });
    // The time of the start tells this run from others. The numbers go on after a reconnection.
    let (run, mut number) = (SystemTime::UNIX_EPOCH.elapsed()?.as_nanos() as u64, 0);
    let shutdown = ShutdownSignal::on_interrupt()?;
    while !shutdown.wait_timeout(INTERVAL) {
        number += 1;
        let quote = [run, number, 100 + number % 10].map(u64::to_le_bytes).concat();
        // Gives up a quote that cannot be sent now, because the next one supersedes it.
        quotes.work(|publication| Ok(publication.offer(&quote)?))?;
    }
    println!("Done: {number} quotes");
    Ok(())
}
