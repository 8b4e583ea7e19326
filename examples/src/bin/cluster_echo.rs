//! Sends messages to a cluster whose service echoes them, until Ctrl-C.
//!
//! Shows a session with Aeron Cluster: connecting, offering, polling the answers, and following a change of leader.
//! `just run-cluster` starts a cluster, and prints the members' endpoints. The environment variable
//! `AERON_CLUSTER_INGRESS_ENDPOINTS` names them, such as `0=localhost:9002,1=localhost:9102,2=localhost:9202`.

use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Backoff, Context, IdleStrategy};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress};
use rusteron_media_driver::MediaDriver;

/// How many answers are printed as one line.
const REPORT: u64 = 100;
const INTERVAL: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::on_interrupt()?;
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;
    let mut context = ClusterContext::from_env()?;
    context
        .set_ingress_channel("aeron:udp")?
        // All members have to reach this endpoint, here on the same machine.
        .set_egress_channel("aeron:udp?endpoint=localhost:0")?
        // The first message to a new leader is a keep-alive.
        .set_keep_alive_interval(Some(Duration::from_secs(1)))?;
    let mut cluster = ClusterClient::connect(&aeron, context)?;
    println!("Session {}, leader {}", cluster.cluster_session_id(), cluster.leader_member_id());

    let (mut number, mut longest) = (0, Duration::ZERO);
    while !shutdown.wait_timeout(INTERVAL) {
        number += 1;
        longest = longest.max(round_trip(&mut cluster, number)?);
        if number % REPORT == 0 {
            println!("{number} messages echoed; the slowest of these {REPORT} took {longest:.1?}");
            longest = Duration::ZERO;
        }
    }
    cluster.close();
    println!("Done: {number} messages echoed");
    Ok(())
}

/// Sends a message, and waits for its answer.
fn round_trip(cluster: &mut ClusterClient, number: u64) -> Result<Duration, Box<dyn Error>> {
    let mut idle = Backoff::default();
    let start = Instant::now();
    let (mut is_sent, mut is_answered) = (false, false);
    while !is_answered {
        if !is_sent {
            match cluster.offer(&number.to_le_bytes()) {
                Ok(_) => is_sent = true,
                // Back pressure, or no leader at the moment.
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let handler = |_: &mut _, event: Egress<'_>| match event {
            // An earlier message may be answered a second time.
            Egress::Message { payload, .. } => is_answered |= payload == number.to_le_bytes(),
            Egress::NewLeader { leader_member_id, .. } => {
                println!("Member {leader_member_id} leads after {:.1?}", start.elapsed());
                is_sent = false; // The old leader may have lost the message.
            }
            event => println!("{event:?}"),
        };
        idle.idle(cluster.poll_egress(handler, 10)?);
    }
    Ok(start.elapsed())
}
