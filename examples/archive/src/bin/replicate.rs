//! Copies a recording from one archive to another.
//!
//! Shows replication. The destination archive fetches the copy from the source archive, and reports its
//! progress by signals. The program only asks for the copy. Its media driver is the one of the destination
//! archive.
//!
//! Needs two archives that run already. README.md says how to start Java's.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use clap::Parser;
use rusteron_archive::{
    Archive, ArchiveError, Context, RecordingSignal, RecordingSignalKind, ReplicationParams,
};
use rusteron_client::{Aeron, Backoff, ChannelUri, Context as ClientContext, IdleStrategy};

/// Copies a recording from one archive to another
///
/// Copies the messages that are recorded when the program starts or, with --follow, also those recorded later.
#[derive(Debug, Parser)]
#[command(name = "replicate", version)]
struct Options {
    /// Directory of the media driver of the copy's archive [default: Aeron's default directory]
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Where the archive of the copy takes requests
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:8010")]
    control_channel: ChannelUri,

    /// Where both archives are to answer
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:0")]
    response_channel: ChannelUri,

    /// Where the archive that has the recording takes requests
    #[arg(long, value_name = "URI")]
    source_control_channel: ChannelUri,

    /// The stream id of that channel
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 10)]
    source_control_stream_id: i32,

    /// The recording, in the source
    #[arg(long, value_name = "ID")]
    recording_id: i64,

    /// A recording of the copy's archive to continue, an earlier copy, instead of making a new one
    #[arg(long, value_name = "ID")]
    into: Option<i64>,

    /// Go on until the recording stops, or Ctrl-C
    #[arg(long)]
    follow: bool,
}

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;
    let mut context = ClientContext::new()?;
    if let Some(dir) = &options.aeron_dir {
        context.set_dir(dir)?;
    }
    // Errors of the client's own thread, such as a media driver that has died.
    context.set_error_handler(|error| eprintln!("error: {error}"))?;
    let aeron = Aeron::connect(context)?;

    // Signals arrive among the archive's answers, while a call waits for an answer or polls.
    let (sender, signals) = mpsc::channel();
    let mut context = archive_context(options, &options.control_channel)?;
    context.set_recording_signal_consumer(move |signal| {
        // It fails only when this program has ended.
        let _ = sender.send(*signal);
    })?;
    let archive = Archive::connect(&aeron, context)
        .map_err(|error| format!("cannot connect to the archive of the copy: {error}"))?;

    let mut context = archive_context(options, &options.source_control_channel)?;
    context.set_control_request_stream_id(options.source_control_stream_id)?;
    let source = Archive::connect(&aeron, context)
        .map_err(|error| format!("cannot connect to the source: {error}"))?;
    let recorded = source.max_recorded_position(options.recording_id)?;
    if recorded == source.start_position(options.recording_id)? && !options.follow {
        return Err(format!("recording {} is empty", options.recording_id).into());
    }
    drop(source);

    let mut params = ReplicationParams::new();
    if !options.follow {
        params = params.stop_position(recorded);
    }
    if let Some(recording_id) = options.into {
        params = params.dst_recording_id(recording_id);
    }
    let replication_id = archive.replicate(
        options.recording_id,
        &options.source_control_channel,
        options.source_control_stream_id,
        &params,
    )?;
    let Some(copy) = await_end(&archive, &signals)? else {
        // Otherwise the archive would go on without this program. The replication may just have ended.
        archive.try_stop_replication(replication_id)?;
        println!("Stopped");
        return Ok(());
    };
    let position = archive.max_recorded_position(copy)?;
    if position < recorded {
        return Err(format!("the copy ends at {position}, before {recorded}").into());
    }
    println!(
        "Done: recording {copy} is a copy of {}, up to position {position}",
        options.recording_id
    );
    Ok(())
}

/// Settings of a session with an archive.
fn archive_context(
    options: &Options,
    control_channel: &ChannelUri,
) -> rusteron_client::Result<Context> {
    let mut context = Context::new()?;
    context
        .set_control_request_channel(&control_channel.to_string())?
        .set_control_response_channel(&options.response_channel.to_string())?;
    Ok(context)
}

/// Waits until the replication has ended, and returns the id of the copy. Returns `None` after Ctrl-C.
fn await_end(
    archive: &Archive,
    signals: &mpsc::Receiver<RecordingSignal>,
) -> Result<Option<i64>, ArchiveError> {
    let mut idle = Backoff::default();
    while RUNNING.load(Ordering::Relaxed) {
        // An error of the replication is an error of this call.
        let work_count = archive.poll_for_recording_signals()?;
        for RecordingSignal { kind, recording_id, position, .. } in signals.try_iter() {
            let at = position.map_or_else(String::new, |position| format!(" at {position}"));
            println!("{kind:?}: recording {recording_id}{at}");
            if kind == RecordingSignalKind::ReplicateEnd {
                return Ok(Some(recording_id));
            }
        }
        idle.idle(work_count);
    }
    Ok(None)
}
