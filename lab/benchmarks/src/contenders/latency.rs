//! Round trips between two threads of this program, or of one in Java.

use hdrhistogram::Histogram;
use rusteron_client::{ExclusivePublication, Subscription};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

use crate::command_line::choice::{Contender, Transport};
use crate::contenders::c_functions::{CPublication, CSubscription};
use crate::contenders::ping_pong::{self, End};
use crate::measuring::connection::{Connection, free_endpoints};
use crate::measuring::measurement::Plan;
use crate::processes::environment::Environment;

/// Where a thread sends to and receives from through Rust.
pub type RustEnd = End<ExclusivePublication, Subscription>;

/// The channels there and back.
///
/// # Errors
/// [`Failure::Run`] if no port is free.
pub fn channels(transport: Transport) -> Result<Vec<String>, Failure> {
    Ok(match transport {
        Transport::Ipc => vec!["aeron:ipc".to_owned(); 2],
        Transport::Udp => {
            free_endpoints(2)?.iter().map(|it| format!("aeron:udp?endpoint={it}")).collect()
        }
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
    let channels = channels(transport)?;
    let aeron = connection.aeron();
    let end = |(to, to_id): (&str, i32), (from, from_id): (&str, i32)| {
        Ok::<_, Failure>(End {
            publication: aeron.add_exclusive_publication(to, to_id)?,
            subscription: aeron.add_subscription(from, from_id)?,
        })
    };
    let (ping, pong) = ((&*channels[0], stream_id), (&*channels[1], stream_id + 1));
    let (near, far) = (end(ping, pong)?, end(pong, ping)?);
    connection.await_connected(&channels[0], stream_id, interrupt, || {
        [&near, &far]
            .iter()
            .all(|end| end.publication.is_connected() && end.subscription.is_connected())
    })?;
    Ok((near, far))
}

/// Runs once over IPC, on a stream and the next stream, and returns the latencies.
///
/// # Errors
/// [`Failure::Run`] if anything fails; [`Failure::Interrupted`].
pub fn measure(
    contender: Contender,
    plan: &Plan,
    connection: &Connection,
    stream_id: i32,
    environment: &Environment,
) -> Result<Histogram<u64>, Failure> {
    let interrupt = &environment.interrupt;
    if contender.is_java() {
        return measure_java(plan, connection, stream_id, environment);
    }
    let (mut near, mut far) = ends(connection, Transport::Ipc, stream_id, interrupt)?;
    if contender == Contender::Rust {
        return ping_pong::measure(&mut near, &mut far, plan, None, interrupt);
    }
    let [mut near, mut far] = [near, far].map(|end| End {
        publication: CPublication(end.publication),
        subscription: CSubscription(end.subscription),
    });
    ping_pong::measure(&mut near, &mut far, plan, None, interrupt)
}

/// A run of `java/benchmarks/PingPong.java` on our driver.
fn measure_java(
    plan: &Plan,
    connection: &Connection,
    stream_id: i32,
    environment: &Environment,
) -> Result<Histogram<u64>, Failure> {
    let arguments = [
        connection.aeron_dir().display().to_string(),
        "aeron:ipc".to_owned(),
        "aeron:ipc".to_owned(),
        stream_id.to_string(),
        plan.idle.name().to_owned(),
        plan.message_length.to_string(),
        plan.warmup.as_nanos().to_string(),
        plan.measure.as_nanos().to_string(),
        // The interval of a fixed pace.
        "0".to_owned(),
    ];
    let timeout = plan.timeout + plan.warmup + plan.measure;
    let java = environment.java()?;
    let mut program = java.start("benchmarks/PingPong.java", &[], &arguments, timeout)?;
    let (histogram, _) = ping_pong::read_histogram(&mut program, &environment.interrupt)?;
    program.finish(&environment.interrupt)?;
    Ok(histogram)
}
