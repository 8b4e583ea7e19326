//! Records messages with an archive, and replays them.
//!
//! Runs an archive of its own. To use another, such as the program `archiving_media_driver` or Java's, set the environment
//! variable `AERON_DIR` to the directory of its media driver.

use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ArchiveContext, ReplayLength, ReplayParams};
use rusteron_archive_server::ArchiveServer;
use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const REPLAY_STREAM_ID: i32 = 1002;
const MESSAGES: u64 = 10;
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
    // An archive on another machine has a channel such as `aeron:udp?endpoint=HOST:8010`.
    context.set_control_request_channel("aeron:ipc")?.set_control_response_channel("aeron:ipc")?;
    let archive = Archive::connect(&aeron, context)?;

    // The publication is recorded from its beginning.
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication(CHANNEL, STREAM_ID)?;
    let mut position = 0;
    for number in 1..=MESSAGES {
        let message = format!("Hello {number}");
        position = publication.offer_until(message.as_bytes(), Instant::now() + TIMEOUT)?;
    }
    let recorded = archive.await_recorded(recording_id, position, TIMEOUT)?;
    println!("Recording {recording_id} has {MESSAGES} messages, up to position {recorded}");

    // The publication is still there, so the recording is active. This replays what is recorded so far. A replay
    // arrives at a subscription like any other stream.
    let params = ReplayParams::new().length(ReplayLength::Recorded);
    let mut subscription = archive.replay(recording_id, CHANNEL, REPLAY_STREAM_ID, params)?;
    let mut replayed = 0;
    let mut idle = Backoff::default();
    let deadline = Instant::now() + TIMEOUT;
    while replayed < MESSAGES {
        if Instant::now() > deadline {
            return Err(format!("{replayed} messages were replayed within {TIMEOUT:?}").into());
        }
        let handler = |message: &[u8], header: &Header<'_>| {
            replayed += 1;
            let text = String::from_utf8_lossy(message);
            println!("Replayed \"{text}\", position {}", header.position());
        };
        idle.idle(subscription.poll(handler, 10)?);
    }
    Ok(())
}
