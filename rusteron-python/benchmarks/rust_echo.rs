//! Rust's ends of the round trips that `benchmark.py` measures: `rust_echo echo DIR` sends every message back, and
//! `rust_echo ping DIR COUNT WARMUP` prints each round trip in nanoseconds.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, Header};

const REQUESTS: i32 = 1001;
const RESPONSES: i32 = 1002;
const TIMEOUT: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["echo", dir] => echo(&connect(dir)?),
        ["ping", dir, count, warmup] => ping(&connect(dir)?, count.parse()?, warmup.parse()?),
        _ => Err("usage: rust_echo echo DIR | ping DIR COUNT WARMUP".into()),
    }
}

fn connect(dir: &str) -> Result<Aeron, Box<dyn Error>> {
    let mut context = Context::new()?;
    context.set_dir(dir)?;
    Ok(Aeron::connect(context)?)
}

/// Runs until the requests end.
fn echo(aeron: &Aeron) -> Result<(), Box<dyn Error>> {
    let mut requests = aeron.add_subscription("aeron:ipc", REQUESTS)?;
    let mut responses = aeron.add_exclusive_publication("aeron:ipc", RESPONSES)?;
    let deadline = Instant::now() + TIMEOUT;
    requests.await_connected(deadline, &mut Backoff::default())?;
    while requests.is_connected() {
        for _ in 0..1000 {
            let handler =
                |message: &[u8], _: &Header<'_>| while responses.offer(message).is_err() {};
            requests.poll(handler, 10)?;
        }
    }
    Ok(())
}

fn ping(aeron: &Aeron, count: usize, warmup: usize) -> Result<(), Box<dyn Error>> {
    let mut responses = aeron.add_subscription("aeron:ipc", RESPONSES)?;
    let mut requests = aeron.add_exclusive_publication("aeron:ipc", REQUESTS)?;
    let deadline = Instant::now() + TIMEOUT;
    requests.await_connected(deadline, &mut Backoff::default())?;
    responses.await_connected(deadline, &mut Backoff::default())?;
    let message = [7_u8; 32];
    let mut times = Vec::with_capacity(count);
    for round in 0..warmup + count {
        let start = Instant::now();
        while requests.offer(&message).is_err() {}
        while responses.poll(|_: &[u8], _: &Header<'_>| {}, 1)? == 0 {}
        if round >= warmup {
            times.push(start.elapsed().as_nanos());
        }
    }
    let mut output = std::io::stdout().lock();
    for time in times {
        writeln!(output, "{time}")?;
    }
    Ok(())
}
