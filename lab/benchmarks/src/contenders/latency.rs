//! The pairs of threads between which messages go there and back, and one run of each.

use std::time::Duration;

use clap::ValueEnum;
use hdrhistogram::Histogram;
use rusteron_client::{ExclusivePublication, Subscription};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

use crate::command_line::choice::{Transport, display_in_words};
use crate::contenders::c_functions::{CPublication, CSubscription};
use crate::contenders::ping_pong::{self, End, Pace, Plan};
use crate::measuring::connection::{Connection, free_endpoints};
use crate::processes::java::Java;

/// The two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pair {
    /// The Rust API on both sides
    Rust,
    /// C's functions, called from the same loops in Rust
    CFunctions,
    /// Java on both sides, in another process
    Java,
}
display_in_words!(Pair);

/// Where a thread sends to and receives from through Rust.
pub type RustEnd = End<ExclusivePublication, Subscription>;

/// The channels there and back.
///
/// # Errors
/// [`Failure::Run`] if no port is free.
pub fn channels(transport: Transport) -> Result<[String; 2], Failure> {
    Ok(match transport {
        Transport::Ipc => ["aeron:ipc"; 2].map(str::to_owned),
        Transport::Udp => free_endpoints::<2>()?.map(|it| format!("aeron:udp?endpoint={it}")),
    })
}

/// Both ends of a round trip in Rust, on a stream and the next stream.
///
/// # Errors
/// [`Failure::Run`] if the driver refuses the channels, or in case of a timeout.
pub fn ends(
    connection: &Connection,
    transport: Transport,
    stream_id: i32,
    interrupt: &ShutdownSignal,
) -> Result<(RustEnd, RustEnd), Failure> {
    let [pings, pongs] = channels(transport)?;
    let aeron = connection.aeron();
    let end = |(to, to_id): (&str, i32), (from, from_id): (&str, i32)| {
        Ok::<_, Failure>(End {
            publication: aeron.add_exclusive_publication(to, to_id)?,
            subscription: aeron.add_subscription(from, from_id)?,
        })
    };
    let (ping, pong) = ((&*pings, stream_id), (&*pongs, stream_id + 1));
    let (near, far) = (end(ping, pong)?, end(pong, ping)?);
    connection.await_connected(&pings, stream_id, interrupt, || {
        [&near, &far]
            .iter()
            .all(|end| end.publication.is_connected() && end.subscription.is_connected())
    })?;
    Ok((near, far))
}

/// Runs once, on a stream and the next stream, and returns the latencies.
///
/// # Errors
/// [`Failure::Run`] if anything fails; [`Failure::Interrupted`].
pub fn measure(
    pair: Pair,
    transport: Transport,
    plan: &Plan,
    stream_id: i32,
    (connection, java): (&Connection, Option<&Java>),
    interrupt: &ShutdownSignal,
) -> Result<Histogram<u64>, Failure> {
    if pair == Pair::Java {
        let java = java.ok_or(Failure::Interrupted)?;
        return measure_java(java, connection, &channels(transport)?, plan, stream_id, interrupt);
    }
    let (mut near, mut far) = ends(connection, transport, stream_id, interrupt)?;
    if pair == Pair::Rust {
        return ping_pong::measure(&mut near, &mut far, plan, interrupt);
    }
    let [mut near, mut far] = [near, far].map(|end| End {
        publication: CPublication(end.publication),
        subscription: CSubscription(end.subscription),
    });
    ping_pong::measure(&mut near, &mut far, plan, interrupt)
}

/// A run of `java/benchmarks/PingPong.java` on our driver.
fn measure_java(
    java: &Java,
    connection: &Connection,
    [pings, pongs]: &[String; 2],
    plan: &Plan,
    stream_id: i32,
    interrupt: &ShutdownSignal,
) -> Result<Histogram<u64>, Failure> {
    let interval = match plan.pace {
        Pace::Closed => Duration::ZERO,
        Pace::Fixed(interval) => interval,
    };
    let arguments = [
        connection.aeron_dir().display().to_string(),
        pings.clone(),
        pongs.clone(),
        stream_id.to_string(),
        plan.idle.name().to_owned(),
        plan.message_length.to_string(),
        plan.warmup.as_nanos().to_string(),
        plan.measure.as_nanos().to_string(),
        interval.as_nanos().to_string(),
    ];
    let timeout = plan.timeout + plan.warmup + plan.measure;
    let mut program = java.start("benchmarks/PingPong.java", &[], &arguments, timeout)?;
    let (histogram, _) = ping_pong::read_histogram(&mut program, interrupt)?;
    program.finish(interrupt)?;
    Ok(histogram)
}
