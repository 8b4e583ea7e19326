//! Prints the quotes of `market_data_publisher`, and survives restarts of its media driver and of the publisher.

use std::env;
use std::error::Error;

use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy, Reconnect};

const STREAM_ID: i32 = 1001;

fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "localhost:40456".to_owned());
    // Quotes arrive at any free port.
    let channel = format!("aeron:udp?endpoint=0.0.0.0:0|control={address}");
    let open = move |aeron: &Aeron| aeron.add_subscription(&channel, STREAM_ID);
    let mut quotes = Reconnect::new(Context::new, open).on_change(|change| match change {
        Ok(_) => println!("Connected"),
        Err(cause) => println!("Disconnected: {cause}"),
    });
    let mut last = (0, 0);
    let mut print = |quote: &[u8], _: &Header<'_>| {
        let words = quote.chunks_exact(8).flat_map(|word| word.try_into().map(u64::from_le_bytes));
        let [run, number, price] = words.collect::<Vec<_>>()[..] else { return };
        if (run, number) <= last {
            return; // the image of an earlier publication may still deliver older quotes
        } else if run != last.0 {
            println!("New publisher: from quote {number} on");
        } else if number > last.1 + 1 {
            println!("Lost: {} quotes", number - last.1 - 1);
        }
        last = (run, number);
        println!("Quote {number}: {price}");
    };
    let (shutdown, mut idle) = (ShutdownSignal::on_interrupt()?, Backoff::default());
    while !shutdown.is_signalled() {
        idle.idle(quotes.work(|subscription| Ok(subscription.poll(&mut print, 10)?))?);
    }
    Ok(())
}
