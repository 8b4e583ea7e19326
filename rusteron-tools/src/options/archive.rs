//! The command line of `rusteron archive`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rusteron_archive::RecordingId;
use rusteron_client::{ChannelUri, Position};

use super::FormatOptions;

#[derive(Debug, Args)]
pub(crate) struct ArchiveOptions {
    #[command(flatten)]
    pub(crate) connection: ArchiveConnectionOptions,

    #[command(subcommand)]
    pub(crate) command: ArchiveCommand,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveConnectionOptions {
    /// Where the archive takes requests
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:8010")]
    #[arg(global = true)]
    pub(crate) control_channel: ChannelUri,

    /// Where the archive is to answer
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:0")]
    #[arg(global = true)]
    pub(crate) response_channel: ChannelUri,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    /// List the recordings; with --archive-dir, also those that are not valid
    List(RecordingsOptions),

    /// Count the recordings
    Count(RecordingsOptions),

    /// Print the facts that the archive knows of a recording
    Describe(DescribeOptions),

    /// Replay a recording, and check that every byte is accounted for; with --archive-dir, read its files
    ///
    /// Exit code 0 says that every byte is. Then frames follow each other from the first position to the last,
    /// and their headers have the right positions. Messages in several fragments are whole, except perhaps the last one.
    /// The checksum is the CRC-32 of all payloads in their order, as zlib and Java compute it. Copies of a
    /// recording have the same checksum.
    ///
    /// With --archive-dir, exit code 0 says that all entries of the catalog and all frames that were read are as they
    /// should be.
    Verify(VerifyOptions),

    /// Print the messages of a recording, and go on with it until it stops, or Ctrl-C
    Tail(TailOptions),

    /// Make an invalid recording valid
    MarkValid(MarkOptions),

    /// Hide a recording from archive and clients, until it is valid again
    MarkInvalid(MarkOptions),

    /// Remove all recordings that are not valid, and their segments: they are lost
    Compact(CompactOptions),

    /// Delete the segments before the start and behind the end of their recordings
    DeleteOrphanedSegments(OrphansOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveDirOptions {
    /// Read the files of this directory, without a running archive
    #[arg(long, value_name = "DIR")]
    pub(crate) archive_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EditOptions {
    /// The directory of an archive that is not running
    #[arg(long, value_name = "DIR")]
    pub(crate) archive_dir: PathBuf,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct MarkOptions {
    /// The recording
    #[arg(value_name = "ID")]
    pub(crate) recording_id: RecordingId,

    #[command(flatten)]
    pub(crate) edit: EditOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CompactOptions {
    /// Change nothing, and say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) edit: EditOptions,
}

#[derive(Debug, Args)]
pub(crate) struct OrphansOptions {
    /// Only segments of this recording
    #[arg(value_name = "ID")]
    pub(crate) recording_id: Option<RecordingId>,

    /// Change nothing, and say what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) edit: EditOptions,
}

/// A decision about a last fragment that may be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LastFragmentDecision {
    /// It was written in part
    Truncate,
    /// It is whole
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordChecksum {
    #[value(name = "CRC-32")]
    Crc32,
    #[value(name = "CRC-32C")]
    Crc32c,
}

#[derive(Debug, Args)]
pub(crate) struct RecordingsOptions {
    /// Only recordings with this in their channel
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) channel: String,

    /// Only recordings with this stream id
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(crate) stream_id: Option<i32>,

    #[command(flatten)]
    pub(crate) files: ArchiveDirOptions,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DescribeOptions {
    /// The recording
    #[arg(value_name = "ID")]
    pub(crate) recording_id: RecordingId,

    #[command(flatten)]
    pub(crate) files: ArchiveDirOptions,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// The recording; with --archive-dir, all without it
    #[arg(value_name = "ID", required_unless_present = "archive_dir")]
    pub(crate) recording_id: Option<RecordingId>,

    /// The expected checksum, as an earlier run has printed it
    #[arg(long, value_name = "HEX", value_parser = checksum, conflicts_with = "archive_dir")]
    pub(crate) checksum: Option<u32>,

    #[command(flatten)]
    pub(crate) replay: ReplayOptions,

    #[command(flatten)]
    pub(crate) files: ArchiveDirOptions,

    /// Read all segments instead of each recording's last one
    #[arg(long, short = 'a', requires = "archive_dir")]
    pub(crate) all_segments: bool,

    /// Check the checksums of entries and frames, with the algorithm of the archive's setting
    #[arg(long, value_name = "ALGORITHM", requires = "archive_dir", ignore_case = true)]
    pub(crate) record_checksum: Option<RecordChecksum>,

    /// Decide about a last fragment that may have been written in part
    #[arg(long, value_name = "DECISION", requires = "archive_dir")]
    pub(crate) last_fragment: Option<LastFragmentDecision>,

    /// Write into the catalog what was found: recordings are invalid or valid, and stop where their frames end
    #[arg(long, requires = "archive_dir")]
    pub(crate) repair: bool,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TailOptions {
    /// The recording
    #[arg(value_name = "ID")]
    pub(crate) recording_id: RecordingId,

    /// Position of the first frame to print [default: the recording's start]
    #[arg(long, value_name = "POSITION", conflicts_with = "new")]
    pub(crate) from: Option<Position>,

    /// Begin with the next message that is recorded
    #[arg(long)]
    pub(crate) new: bool,

    /// End after so many messages
    #[arg(long, value_name = "N")]
    pub(crate) messages: Option<u64>,

    #[command(flatten)]
    pub(crate) replay: ReplayOptions,

    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// Where the archive is to replay to; without a driver in common, such as
    /// aeron:udp?endpoint=HOST:PORT
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    pub(crate) replay_channel: ChannelUri,
}

fn checksum(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 16).map_err(|_| "expected up to 8 hexadecimal digits".to_owned())
}
