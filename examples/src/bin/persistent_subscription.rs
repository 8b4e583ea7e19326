//! A subscription that outlives its publisher, and misses nothing.
//!
//! A `PersistentSubscription` begins in a recording. When it has caught up, it joins the live stream. When the
//! publisher goes, it falls back to the recording, and then joins the stream that continues it. Runs an archive of
//! its own, unless the environment variable `AERON_DIR` names the directory of another archive's media driver.

use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ArchiveContext, ArchiveError, MessageInfo};
use rusteron_archive::{PersistentSubscription, PersistentSubscriptionContext};
use rusteron_archive::{SourceLocation, StartPosition};
use rusteron_archive_server::ArchiveServer;
use rusteron_client::{Aeron, Backoff, Context, IdleStrategy};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const REPLAY_CHANNEL: &str = "aeron:udp?endpoint=localhost:0";
const REPLAY_STREAM_ID: i32 = 1002;
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
    let archive = Archive::connect(&aeron, archive_context()?)?;
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication(CHANNEL, STREAM_ID)?;
    publication.offer_until(b"early", Instant::now() + TIMEOUT)?;

    // It has a session with the archive of its own. Polls call the listener.
    let mut context = PersistentSubscriptionContext::new(
        recording_id,
        CHANNEL,
        STREAM_ID,
        REPLAY_CHANNEL,
        REPLAY_STREAM_ID,
    )?;
    context.set_start_position(StartPosition::Start)?;
    context.set_listener(|event| println!("{event:?}"))?;
    let mut subscription = PersistentSubscription::new(&aeron, archive_context()?, context)?;
    poll_until(&mut subscription, |it, received| received == 1 && it.is_live())?;
    publication.offer_until(b"live", Instant::now() + TIMEOUT)?;
    poll_until(&mut subscription, |_, received| received == 1)?;

    // The publisher goes, and the subscription is back in the recording.
    drop(publication);
    poll_until(&mut subscription, |it, _| !it.is_live())?;
    while archive.stop_position(recording_id)?.is_none() {}

    // Another publisher begins where the recording has stopped.
    let recording = archive.recording(recording_id)?.ok_or("the recording is gone")?;
    let channel = recording.continuation(CHANNEL)?.ok_or("it is being extended already")?;
    archive.extend_recording(recording_id, CHANNEL, STREAM_ID, SourceLocation::Local, true)?;
    let mut publication = aeron.add_exclusive_publication(channel, STREAM_ID)?;
    archive.await_recording(publication.session_id(), TIMEOUT)?;
    publication.offer_until(b"late", Instant::now() + TIMEOUT)?;
    poll_until(&mut subscription, |it, received| received == 1 && it.is_live())?;
    Ok(())
}

fn archive_context() -> Result<ArchiveContext, Box<dyn Error>> {
    let mut context = ArchiveContext::new()?;
    context.set_control_request_channel("aeron:ipc")?.set_control_response_channel("aeron:ipc")?;
    Ok(context)
}

/// Polls until a condition holds of the subscription and the number of messages received here.
fn poll_until(
    subscription: &mut PersistentSubscription,
    is_done: impl Fn(&PersistentSubscription, usize) -> bool,
) -> Result<(), ArchiveError> {
    let mut received = 0;
    let mut idle = Backoff::default();
    while !is_done(subscription, received) {
        let handler = |message: &[u8], _: &MessageInfo| {
            received += 1;
            println!("Received \"{}\"", String::from_utf8_lossy(message));
        };
        idle.idle(subscription.poll(handler, 10)?);
    }
    Ok(())
}
