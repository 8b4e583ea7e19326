//! The parts that the programs with an archive share: its address, and sessions with it.

use std::path::PathBuf;
use std::sync::mpsc;

use clap::Args;
use rusteron_archive::{
    Archive, ArchiveError, Context, RecordingPos, ReplayMergeCloseError, ReplayMergeError,
};
use rusteron_client::{Aeron, ChannelUri, ExclusivePublication, Media, Parameter, Position};

use crate::failure::Failure;
use crate::sample::Turns;

/// The options of programs that use an archive that runs already.
#[derive(Debug, Clone, Args)]
pub struct ArchiveOptions {
    /// Directory of the archive's media driver [default: Aeron's default directory]
    #[arg(long, value_name = "DIR", env = "AERON_DIR", global = true)]
    pub aeron_dir: Option<PathBuf>,

    /// Where the archive takes requests
    #[arg(
        long,
        value_name = "URI",
        default_value = "aeron:udp?endpoint=localhost:8010",
        global = true
    )]
    pub control_channel: ChannelUri,

    /// Where the archive is to answer
    #[arg(
        long,
        value_name = "URI",
        default_value = "aeron:udp?endpoint=localhost:0",
        global = true
    )]
    pub response_channel: ChannelUri,
}

impl ArchiveOptions {
    /// Runs a program with a client of the media driver, which is closed then. If that was closed by a
    /// fatal error, such as a media driver that is gone, the failure says so.
    ///
    /// # Errors
    /// [`Failure::Run`] if no driver answers; others are the program's.
    pub fn with_client(
        &self,
        program: impl FnOnce(&Aeron) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (sender, background) = mpsc::channel();
        let mut context = rusteron_client::Context::new()?;
        if let Some(dir) = &self.aeron_dir {
            context.set_dir(dir)?;
        }
        context.set_error_handler(move |error| {
            // It fails only when the program has ended.
            let _ = sender.send(error.clone());
        })?;
        let aeron = Aeron::connect(context)?;
        let outcome = program(&aeron);
        // Waits for its thread, which may be about to say what was wrong.
        drop(aeron);
        match (outcome, background.try_recv()) {
            (Err(Failure::Run(text)), Ok(error)) => Err(Failure::run(text, error)),
            (outcome, _) => outcome,
        }
    }

    /// The settings of a session with the archive.
    ///
    /// # Errors
    /// [`Failure::Run`] if the environment has settings that cannot be used.
    pub fn context(&self) -> Result<Context, Failure> {
        let mut context = Context::new()?;
        context
            .set_control_request_channel(&self.control_channel.to_string())?
            .set_control_response_channel(&self.response_channel.to_string())?;
        Ok(context)
    }

    /// A session with the archive.
    ///
    /// # Errors
    /// [`Failure::Run`] if the archive does not answer, or refuses.
    pub fn connect(&self, aeron: &Aeron) -> Result<Archive, Failure> {
        let control_channel = &self.control_channel;
        Archive::connect(aeron, self.context()?).map_err(|error| {
            Failure::run(format_args!("cannot connect to the archive at {control_channel}"), error)
        })
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<ReplayMergeError> for Failure {
    fn from(error: ReplayMergeError) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<ReplayMergeCloseError> for Failure {
    fn from(error: ReplayMergeCloseError) -> Self {
        Self::Run(error.to_string())
    }
}

/// The channel for a recorded publication, which may have no other subscriber. Over UDP, the archive is a
/// spy. A spy counts as a subscriber only where the channel says so.
///
/// # Errors
/// [`Failure::Run`] if the channel is not valid.
pub fn for_recording(channel: &ChannelUri) -> Result<ChannelUri, Failure> {
    let is_said = channel.get(Parameter::SpiesSimulateConnection).is_some();
    if channel.media() != Media::Udp || is_said {
        return Ok(channel.clone());
    }
    Ok(channel.to_builder().spies_simulate_connection(true).build()?)
}

/// Waits until a publication is being recorded, and returns the id of the recording.
///
/// # Errors
/// As for [`Turns::idle`].
pub fn await_recording(
    archive: &Archive,
    session_id: i32,
    mut turns: Turns,
) -> Result<i64, Failure> {
    let (aeron, archive_id) = (archive.aeron(), archive.archive_id());
    loop {
        // The archive shows how far a recording has come in a counter, with its id.
        if let Some(found) = RecordingPos::find_by_session_id(aeron, session_id, archive_id) {
            return Ok(found.recording_id());
        }
        turns.idle(0)?;
    }
}

/// Waits until a message is accepted, and returns the position after it.
///
/// # Errors
/// [`Failure::Run`] if the publication cannot be used any more; others, as for [`Turns::idle`].
pub fn publish(
    publication: &mut ExclusivePublication,
    message: &[u8],
    turns: &mut Turns,
) -> Result<Position, Failure> {
    loop {
        match publication.offer(message) {
            Ok(position) => {
                turns.idle(1)?;
                return Ok(position);
            }
            Err(error) if error.is_retryable() => turns.idle(0)?,
            Err(error) => return Err(Failure::run("cannot publish", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spies_count_as_subscribers_unless_the_channel_says_otherwise() {
        let cases = [
            ("aeron:ipc", "aeron:ipc"),
            ("aeron:udp?endpoint=localhost:1", "aeron:udp?endpoint=localhost:1|ssc=true"),
            (
                "aeron:udp?endpoint=localhost:1|ssc=false",
                "aeron:udp?endpoint=localhost:1|ssc=false",
            ),
        ];
        for (given, used) in cases {
            let channel = for_recording(&given.parse().expect(given)).expect(given);
            assert_eq!(channel, used.parse().expect(used));
        }
    }
}
