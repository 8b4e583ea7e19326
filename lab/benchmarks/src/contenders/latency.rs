//! Round trips between two threads of this program, or of one in Java.

use hdrhistogram::Histogram;
use rusteron_client::{ExclusivePublication, Subscription};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_test_support::udp_channel;

use crate::command_line::choice::{Contender, Transport};
use crate::contenders::c_functions::{CPublication, CSubscription};
use crate::contenders::ping_pong::{self, End};
use crate::measuring::connection::Connection;
use crate::measuring::measurement::Plan;
use crate::processes::environment::Environment;

/// Where a thread sends to and receives from through Rust.
pub type RustEnd = End<ExclusivePublication, Subscription>;

/// The channels there and back.
pub fn channels(transport: Transport) -> [String; 2] {
    match transport {
        Transport::Ipc => ["aeron:ipc"; 2].map(str::to_owned),
        Transport::Udp => [(); 2].map(|()| udp_channel()),
    }
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
    let connect = |channel: &String, stream_id| {
        let publication = connection.aeron().add_exclusive_publication(channel, stream_id)?;
        let subscription = connection.subscribe(&publication, connection, channel, interrupt)?;
        Ok::<_, Failure>((publication, subscription))
    };
    let channels = channels(transport);
    let (pings, far) = connect(&channels[0], stream_id)?;
    let (pongs, near) = connect(&channels[1], stream_id + 1)?;
    Ok((
        End { publication: pings, subscription: near },
        End { publication: pongs, subscription: far },
    ))
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
