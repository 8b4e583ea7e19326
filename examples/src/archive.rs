//! What the programs that use an archive share: where it is, and sessions with it.

use std::path::PathBuf;

use clap::Args;
use rusteron_archive::{
    Archive, ArchiveError, Context, RecordingPos, ReplayMergeCloseError, ReplayMergeError,
};
use rusteron_client::{Aeron, ChannelUri, ExclusivePublication, Position};

use crate::failure::Failure;
use crate::sample::Turns;

/// The options of programs that use an archive that runs already.
#[derive(Debug, Clone, Args)]
pub struct ArchiveOptions {
    /// Directory of the archive's media driver [default: Aeron's default directory]
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    pub aeron_dir: Option<PathBuf>,

    /// Where the archive takes requests
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:8010")]
    pub control_channel: ChannelUri,

    /// Where the archive is to answer
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:0")]
    pub response_channel: ChannelUri,
}

impl ArchiveOptions {
    /// A client of the media driver.
    ///
    /// # Errors
    /// [`Failure::Run`] if no driver answers.
    pub fn client(&self) -> Result<Aeron, Failure> {
        let mut context = rusteron_client::Context::new()?;
        if let Some(dir) = &self.aeron_dir {
            context.set_dir(dir)?;
        }
        Ok(Aeron::connect(context)?)
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

/// Waits until there is a place for a message, publishes it, and returns the position after it.
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
