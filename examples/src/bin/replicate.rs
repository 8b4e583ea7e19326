//! Copies a recording from one archive to another.
//!
//! Shows replication. The destination archive fetches the copy from the source archive, and reports its
//! progress by signals. The program only asks for the copy. Its media driver is the one of the destination
//! archive.
//!
//! Needs two archives that run already. README.md says how to start Java's.

use std::process::ExitCode;
use std::sync::mpsc;

use clap::Parser;
use rusteron_archive::{Archive, RecordingSignal, RecordingSignalKind, ReplicationParams};
use rusteron_client::{Aeron, ChannelUri};
use rusteron_examples::archive::ArchiveOptions;
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::Turns;

/// Copies a recording from one archive to another
///
/// Copies the messages that are recorded when the program starts or, with --follow, also those recorded later.
#[derive(Debug, Parser)]
#[command(name = "replicate", version)]
struct Options {
    /// Where the archive of the copy is.
    #[command(flatten)]
    archive: ArchiveOptions,

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

fn main() -> ExitCode {
    let options = Options::parse();
    failure::exit_code(options.archive.with_client(|aeron| run(&options, aeron)))
}

fn run(options: &Options, aeron: &Aeron) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);

    // Signals arrive among the archive's answers, while a call waits for an answer or polls.
    let (sender, signals) = mpsc::channel();
    let mut context = options.archive.context()?;
    context.set_recording_signal_consumer(move |signal| {
        // It fails only when this program has ended.
        let _ = sender.send(*signal);
    })?;
    let archive = Archive::connect(aeron, context)
        .map_err(|error| Failure::run("cannot connect to the archive of the copy", error))?;

    let mut context = options.archive.context()?;
    context
        .set_control_request_channel(&options.source_control_channel.to_string())?
        .set_control_request_stream_id(options.source_control_stream_id)?;
    let source = Archive::connect(aeron, context)
        .map_err(|error| Failure::run("cannot connect to the source", error))?;
    let recorded = source.max_recorded_position(options.recording_id)?;
    if recorded == source.start_position(options.recording_id)? && !options.follow {
        return Err(Failure::Run(format!("recording {} is empty", options.recording_id)));
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
    let turns = if options.follow {
        Turns::until_interrupted(&interrupt)
    } else {
        Turns::awaiting("the replication", &interrupt)
    };
    match await_end(&archive, &signals, &mut output, turns) {
        Err(Failure::Interrupted) => {
            // Otherwise the archive would go on without this program. The replication may just have ended.
            archive.try_stop_replication(replication_id)?;
            output.line("Stopped")?;
            Err(Failure::Interrupted)
        }
        Err(failure) => Err(failure),
        Ok(copy) => {
            let position = archive.max_recorded_position(copy)?;
            if position < recorded {
                return Err(Failure::Run(format!(
                    "the copy ends at {position}, before {recorded}"
                )));
            }
            output.line(format_args!(
                "Done: recording {copy} is a copy of {}, up to position {position}",
                options.recording_id
            ))
        }
    }
}

/// Waits until the replication has ended, and returns the id of the copy.
fn await_end(
    archive: &Archive,
    signals: &mpsc::Receiver<RecordingSignal>,
    output: &mut Output<'_>,
    mut turns: Turns,
) -> Result<i64, Failure> {
    let mut last_position = None;
    loop {
        // An error of the replication is an error of this call.
        let mut work = archive.poll_for_recording_signals()?;
        for signal in signals.try_iter() {
            let RecordingSignal { kind, recording_id, position, .. } = signal;
            let at = position.map_or_else(String::new, |position| format!(" at {position}"));
            output.line(format_args!("{kind:?}: recording {recording_id}{at}"))?;
            if kind == RecordingSignalKind::ReplicateEnd {
                return Ok(recording_id);
            }
            last_position = Some((recording_id, position));
        }
        // A long replication is at work although it has nothing to say.
        if let Some((recording_id, position)) = &mut last_position {
            let now = rusteron_archive::RecordingPos::find_by_recording_id(
                archive.aeron(),
                *recording_id,
                archive.archive_id(),
            )
            .and_then(|counter| counter.position());
            if now != *position {
                *position = now;
                work += 1;
            }
        }
        turns.idle(work)?;
    }
}
