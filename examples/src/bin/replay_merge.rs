//! Joins a live stream late, without missing its earlier messages.
//!
//! A `ReplayMerge` replays a recording until the replay has caught up with the live stream. Then the subscription
//! receives the live stream, without a message lost or repeated. Runs an archive of its own, unless the
//! environment variable `AERON_DIR` names the directory of another archive's media driver.

use std::cell::Cell;
use std::env;
use std::error::Error;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ArchiveContext, ReplayMerge};
use rusteron_archive_server::ArchiveServer;
use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy, WaitError};

const STREAM_ID: i32 = 1001;
/// How many messages are published before the subscriber comes, and how many in all.
const EARLY_MESSAGES: u64 = 500;
const MESSAGES: u64 = 1000;
/// How often there is a message once the subscriber has come. Replays are faster, and so catch up.
const INTERVAL: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    // With a media driver, and recordings that are deleted at the end.
    let server = match env::var_os("AERON_DIR") {
        Some(_) => None,
        None => Some(ArchiveServer::launch_embedded()?),
    };
    let mut context = Context::new()?;
    if let Some(server) = &server {
        context.set_dir(server.aeron_dir())?;
    }
    let aeron = Aeron::connect(context)?;
    let mut context = ArchiveContext::new()?;
    context.set_control_request_channel("aeron:ipc")?.set_control_response_channel("aeron:ipc")?;
    let archive = Archive::connect(&aeron, context)?;

    // Subscribers come to the publication by themselves, at its control address. It waits for the slowest of them
    // (fc=min).
    let control = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let channel = format!("aeron:udp?control={control}|control-mode=dynamic|fc=min");
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication(channel, STREAM_ID)?;
    let session_id = publication.session_id();
    let mut publish = move |number: u64| {
        publication.offer_until(format!("Hello {number}").as_bytes(), Instant::now() + TIMEOUT)
    };
    let mut position = 0;
    for number in 1..=EARLY_MESSAGES {
        position = publish(number)?;
    }
    archive.await_recorded(recording_id, position, TIMEOUT)?;
    let publisher = thread::spawn(move || {
        for number in EARLY_MESSAGES + 1..=MESSAGES {
            publish(number)?;
            thread::sleep(INTERVAL);
        }
        Ok::<_, WaitError>(publish) // With the publication, which has to stay for the subscriber.
    });

    // Replay and live stream are two destinations of one subscription, and one image by their common session id.
    let subscription = aeron.add_subscription("aeron:udp?control-mode=manual", STREAM_ID)?;
    let replay_channel = format!("aeron:udp?session-id={session_id}");
    let live_endpoint = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let live_channel = format!("aeron:udp?endpoint={live_endpoint}|control={control}");
    let mut merge =
        ReplayMerge::builder(replay_channel, "aeron:udp?endpoint=127.0.0.1:0", live_channel)
            .start(archive, subscription, recording_id)?;
    let received = Cell::new(0);
    let mut handler = |message: &[u8], _: &Header<'_>| {
        received.set(received.get() + 1);
        assert_eq!(message, format!("Hello {}", received.get()).as_bytes());
    };
    let mut idle = Backoff::default();
    while !merge.is_merged() {
        idle.idle(merge.poll(&mut handler, 10)?);
    }
    // From here on it is a subscription like any other. It loses its image if the publisher fails.
    let (_archive, mut subscription) = merge.into_parts()?;
    println!("Merged after {} messages", received.get());
    while received.get() < MESSAGES && subscription.is_connected() {
        idle.idle(subscription.poll(&mut handler, 10)?);
    }
    drop(publisher.join().expect("the publisher does not panic")?);
    assert_eq!(received.get(), MESSAGES, "the live stream ended early");
    println!("Received {MESSAGES} messages, none lost or repeated");
    Ok(())
}
