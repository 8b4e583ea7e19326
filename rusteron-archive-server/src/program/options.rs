//! The command lines.
//!
//! Options become environment variables, as `-D` and property files do.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser};
use rusteron_client::{Error, IdleStrategyKind};
use rusteron_core::program::exit_status;
use rusteron_media_driver::program::{CommonOptions, Origins};

use crate::context::ArchiveServerContext;

/// Runs an Aeron archive on the media driver of another process, until it is interrupted or terminated.
///
/// Settings come from the AERON_ARCHIVE_* environment variables; then -D; then the files of properties; then the
/// other options below. Each wins over those before.
#[derive(Debug, Parser)]
#[command(name = "archive", version, disable_version_flag = true, after_help = exit_status::help(true))]
pub(super) struct Archive {
    #[command(flatten)]
    pub(super) options: Options,
}

/// Runs an Aeron media driver with an archive, until it is interrupted or terminated.
///
/// Settings come from the AERON_* environment variables; then -D; then the files of properties; then the other
/// options below. Each wins over those before. `media_driver --print-config` lists the driver's settings.
#[derive(Debug, Parser)]
#[command(
    name = "archiving_media_driver",
    version,
    disable_version_flag = true,
    after_help = exit_status::help(true)
)]
pub(super) struct ArchivingMediaDriver {
    #[command(flatten)]
    pub(super) options: Options,
}

// No documentation comment: clap would take it for the program's.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The directory of the recordings. The default is aeron-archive [env: AERON_ARCHIVE_DIR]
    #[arg(long, value_name = "DIR")]
    archive_dir: Option<PathBuf>,

    /// The directory of the mark file. The default is the archive's [env: AERON_ARCHIVE_MARK_FILE_DIR]
    #[arg(long, value_name = "DIR")]
    mark_file_dir: Option<PathBuf>,

    /// The channel of requests, such as aeron:udp?endpoint=localhost:8010 [env: AERON_ARCHIVE_CONTROL_CHANNEL]
    #[arg(long, value_name = "CHANNEL", value_parser = value_of("AERON_ARCHIVE_CONTROL_CHANNEL"))]
    control_channel: Option<String>,

    /// Take requests over IPC only [env: AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED=false]
    #[arg(long, conflicts_with = "control_channel")]
    ipc_only: bool,

    /// The archive's threads: one for each of conductor, recorder and replayer (dedicated), one for everything
    /// (shared), or the main thread for everything (invoker) [env: AERON_ARCHIVE_THREADING_MODE]
    #[arg(long, value_name = "MODE", value_parser = ["dedicated", "shared", "invoker"])]
    threading_mode: Option<String>,

    /// The archive's idle strategy: spin, yield, sleep-ns, backoff or noop [env: AERON_ARCHIVE_IDLE_STRATEGY]
    #[arg(long, value_name = "STRATEGY")]
    idle: Option<IdleStrategyKind>,

    /// Length of a segment file, such as 128m [env: AERON_ARCHIVE_SEGMENT_FILE_LENGTH]
    #[arg(long, value_name = "SIZE", value_parser = value_of("AERON_ARCHIVE_SEGMENT_FILE_LENGTH"))]
    segment_file_length: Option<String>,

    /// Delete the archive's directory, with all recordings, before starting [env: AERON_ARCHIVE_DIR_DELETE_ON_START]
    #[arg(long)]
    delete_archive_on_start: bool,

    #[command(flatten)]
    pub(super) common: CommonOptions,
}

impl Options {
    /// Sets the environment variables that the command line asks for. Returns the places of properties, and the errors
    /// of properties that cannot be loaded.
    ///
    /// # Safety
    /// There is no other thread.
    pub(super) unsafe fn apply_to_environment(&self) -> (Origins, Vec<Error>) {
        let path = |path: &Option<PathBuf>| path.clone().map(OsString::from);
        let text = |text: &Option<String>| text.clone().map(OsString::from);
        let mode = self.threading_mode.as_ref().map(|mode| mode.to_ascii_uppercase().into());
        let own = [
            ("AERON_ARCHIVE_DIR", path(&self.archive_dir)),
            ("AERON_ARCHIVE_MARK_FILE_DIR", path(&self.mark_file_dir)),
            ("AERON_ARCHIVE_CONTROL_CHANNEL", text(&self.control_channel)),
            ("AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED", self.ipc_only.then(|| "false".into())),
            ("AERON_ARCHIVE_THREADING_MODE", mode),
            ("AERON_ARCHIVE_IDLE_STRATEGY", self.idle.map(|idle| idle.name().into())),
            ("AERON_ARCHIVE_SEGMENT_FILE_LENGTH", text(&self.segment_file_length)),
            (
                "AERON_ARCHIVE_DIR_DELETE_ON_START",
                self.delete_archive_on_start.then(|| "true".into()),
            ),
        ];
        // SAFETY: the caller guarantees that there is no other thread.
        unsafe { self.common.apply_to_environment(own) }
    }
}

/// Checks the text of a variable.
fn value_of(variable: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| {
        ArchiveServerContext::setting(variable).map_or(Ok(()), |setting| setting.check(text))?;
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_lines_are_consistent() {
        Archive::command().debug_assert();
        ArchivingMediaDriver::command().debug_assert();
    }

    #[test]
    fn help_is_of_the_program() {
        let about = |command: clap::Command| command.get_about().map(ToString::to_string);
        assert!(
            about(Archive::command()).expect("a text").contains("on the media driver of another")
        );
        let text = about(ArchivingMediaDriver::command()).expect("a text");
        assert!(text.contains("media driver with an archive"), "{text}");
    }

    #[test]
    fn arguments_of_java_are_accepted() {
        let line = [
            "archive",
            "-Daeron.dir=/dev/shm/x",
            "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010",
            "-D",
            "aeron.archive.threading.mode=SHARED",
            "some.properties",
        ];
        Archive::try_parse_from(line).expect("Java's arguments");
        assert!(Archive::try_parse_from(["archive", "--control-channel", "aeron:ipc"]).is_err());
        assert!(Archive::try_parse_from(["archive", "--segment-file-length", "100k"]).is_err());
    }
}
