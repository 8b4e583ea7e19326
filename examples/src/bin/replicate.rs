//! Copies a recording from one archive to another: `replicate SOURCE_CONTROL_CHANNEL RECORDING_ID`.
//!
//! The archive of the copy fetches it from the source, and reports its progress by signals. The
//! environment variable `AERON_DIR` names the directory of the media driver of the copy's archive, which
//! `examples/README.md` says how to start.

use std::env;
use std::error::Error;
use std::sync::mpsc;

use rusteron_archive::{
    Archive, ArchiveContext, RecordingId, RecordingSignalKind, ReplicationParams,
};
use rusteron_client::{Aeron, Backoff, Context, IdleStrategy};

/// The stream id of the source's control channel: Aeron's default.
const SOURCE_CONTROL_STREAM_ID: i32 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [source_channel, recording_id] = &arguments[..] else {
        return Err("usage: replicate SOURCE_CONTROL_CHANNEL RECORDING_ID".into());
    };
    let recording_id: RecordingId = recording_id.parse()?;
    let aeron = Aeron::connect(Context::new()?)?;

    // The copy ends where the recording is now. Without a stop position it would go on until the recording stops.
    let mut context = ArchiveContext::new()?;
    context
        .set_control_request_channel(source_channel)?
        .set_control_response_channel("aeron:udp?endpoint=localhost:0")?;
    let source = Archive::connect(&aeron, context)?;
    let recorded = source.max_recorded_position(recording_id)?;
    drop(source);

    // Signals arrive among the archive's answers, while a call waits for an answer or polls.
    let (sender, signals) = mpsc::channel();
    let mut context = ArchiveContext::new()?;
    context.set_control_request_channel("aeron:ipc")?.set_control_response_channel("aeron:ipc")?;
    context.set_recording_signal_consumer(move |signal| {
        let _ = sender.send(*signal); // Fails only when this program ends.
    })?;
    let archive = Archive::connect(&aeron, context)?;
    archive.replicate(
        recording_id,
        source_channel,
        SOURCE_CONTROL_STREAM_ID,
        &ReplicationParams::new().stop_position(recorded),
    )?;
    let mut idle = Backoff::default();
    let copy = loop {
        // An error of the replication is an error of this call.
        idle.idle(archive.poll_for_recording_signals()?);
        if let Ok(signal) = signals.try_recv() {
            println!("{:?}: recording {}", signal.kind, signal.recording_id);
            if signal.kind == RecordingSignalKind::ReplicateEnd {
                break signal.recording_id;
            }
        }
    };
    let position = archive.max_recorded_position(copy)?;
    println!("Recording {copy} is a copy of {recording_id}, up to position {position}");
    Ok(())
}
