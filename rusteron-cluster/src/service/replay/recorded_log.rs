//! The log of a member, in the files of its archive.

use std::fs::{self, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use rusteron_core::log_buffer::{BEGIN_FLAG, END_FLAG, HEADER_LENGTH, TYPE_DATA, TYPE_PAD, align};
use rusteron_core::{RecordingId, files};

use crate::codec::recording_log::{
    RECORDING_LOG, RecordingLogEntry, RecordingLogEntryKind, parse_recording_log,
};
use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::ids::ServiceId;
use crate::service::replay::recorder::Snapshot;

/// The log that a member has recorded, and the snapshots of its services.
///
/// Reads the files of the consensus module and of the archive alone: neither has to run. Stop the
/// node first, or copy the files of a stopped node. The log of a killed node can end with messages
/// that were never committed, which does no harm here.
#[derive(Debug)]
#[must_use]
pub struct RecordedLog {
    archive_dir: PathBuf,
    /// The valid snapshots, in the order of the recording log.
    snapshots: Vec<RecordingLogEntry>,
    recording: Recording,
}

/// The most bytes of `recording.log`: a term or a snapshot has about a hundred.
const MAX_LOG_LENGTH: u64 = 64 << 20;

impl RecordedLog {
    /// Finds the log of a member. `cluster_dir` has the file `recording.log` of the consensus module,
    /// and `archive_dir` the recordings of the node's archive.
    ///
    /// # Errors
    /// - [`Io`](crate::ClusterErrorKind::Io): a file or directory cannot be read;
    /// - [`InvalidRecording`](crate::ClusterErrorKind::InvalidRecording): `recording.log` is
    ///   damaged or has no term, or the archive does not have the log.
    pub fn open(cluster_dir: impl AsRef<Path>, archive_dir: impl AsRef<Path>) -> Result<Self> {
        let path = cluster_dir.as_ref().join(RECORDING_LOG);
        let bytes = files::read(&path, MAX_LOG_LENGTH).map_err(|error| io_error(&path, &error))?;
        let mut entries = parse_recording_log(&bytes)
            .map_err(|error| invalid(format!("{}: {error}", path.display())))?;
        let Some(recording_id) = last_term(&entries) else {
            return Err(invalid(format!("{}: no term of a leader", path.display())));
        };
        let archive_dir = archive_dir.as_ref().to_owned();
        let recording = Recording::open(&archive_dir, recording_id)?;
        let is_snapshot = |entry: &RecordingLogEntry| entry.kind == RecordingLogEntryKind::Snapshot;
        entries.retain(|entry| is_snapshot(entry) && entry.is_valid);
        Ok(Self { archive_dir, snapshots: entries, recording })
    }

    /// Returns the snapshot from which a run begins. `None` for the beginning of the log.
    pub(super) fn beginning(
        &self,
        service_id: ServiceId,
        is_last_snapshot_wanted: bool,
    ) -> Result<Option<&RecordingLogEntry>> {
        let first = self.recording.first_position();
        let is_usable = |entry: &&RecordingLogEntry| {
            entry.service_id == Some(service_id) && entry.log_position >= first
        };
        let snapshots = self.snapshots.iter().filter(is_usable);
        if is_last_snapshot_wanted {
            let last = snapshots.max_by_key(|entry| entry.log_position);
            let text = || invalid(format!("no snapshot of service {service_id}"));
            return last.map(Some).ok_or_else(text);
        }
        // The first file of a log that began at a snapshot is empty up to there.
        if first == 0 && self.recording.read(0, |_, _| Ok(false))? > 0 {
            return Ok(None);
        }
        let oldest = snapshots.min_by_key(|entry| entry.log_position);
        oldest.map(Some).ok_or_else(|| {
            let text = format!(
                "the log begins at position {first}: no snapshot of service {service_id} is there"
            );
            invalid(text)
        })
    }

    /// Loads a snapshot.
    pub(super) fn load(&self, entry: &RecordingLogEntry) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        let recording = Recording::open(&self.archive_dir, entry.recording_id)?;
        recording.read(recording.first_position(), |_, message| {
            snapshot.push(message);
            Ok(true)
        })?;
        Ok(snapshot)
    }

    /// Passes the messages from a position on to the handler, as [`Recording::read`].
    pub(super) fn read(
        &self,
        from: i64,
        handler: impl FnMut(i64, &[u8]) -> Result<bool>,
    ) -> Result<i64> {
        self.recording.read(from, handler)
    }
}

/// A recording in an archive's directory: files of equal length, one behind the other.
///
/// Reads the files alone. The archive need not run.
#[derive(Debug, Clone)]
pub(super) struct Recording {
    /// Position at which a file begins, in ascending order.
    segments: Vec<(i64, PathBuf)>,
}

impl Recording {
    pub(super) fn open(archive_dir: &Path, recording_id: RecordingId) -> Result<Self> {
        let prefix = format!("{recording_id}-");
        let cannot = |error| io_error(archive_dir, &error);
        let mut segments = Vec::new();
        for entry in fs::read_dir(archive_dir).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            let position = name.strip_prefix(&prefix).and_then(|name| name.strip_suffix(".rec"));
            // Files that the archive is deleting have another ending.
            if let Some(position) = position.and_then(|position| position.parse().ok()) {
                segments.push((position, path.clone()));
            }
        }
        segments.sort();
        if segments.is_empty() {
            let dir = archive_dir.display();
            return Err(invalid(format!("{dir}: no file of recording {recording_id}")));
        }
        Ok(Self { segments })
    }

    /// Returns the position of the first file.
    pub(super) fn first_position(&self) -> i64 {
        self.segments[0].0
    }

    /// Passes all messages to the handler, with the position behind each, from a position between two messages.
    /// Stops early if the handler returns `false`. Returns the position behind the last frame.
    pub(super) fn read(
        &self,
        from: i64,
        mut handler: impl FnMut(i64, &[u8]) -> Result<bool>,
    ) -> Result<i64> {
        let mut position = from;
        let mut message = Vec::new();
        let mut body = Vec::new();
        for (index, (base, path)) in self.segments.iter().enumerate() {
            let cannot = |error| io_error(path, &error);
            let file = files::open(path, OpenOptions::new().read(true)).map_err(cannot)?;
            let length = file.metadata().map_err(cannot)?.len();
            let end = base + i64::try_from(length).unwrap_or(i64::MAX);
            if end <= position {
                continue;
            }
            if *base > position {
                return Err(invalid(format!("no file with position {position}, before {path:?}")));
            }
            let mut file = BufReader::with_capacity(1 << 20, file);
            file.seek_relative(position - base).map_err(cannot)?;
            while position < end {
                let mut header = [0; HEADER_LENGTH];
                let is_whole = read_whole(&mut file, &mut header).map_err(cannot)?;
                let [a, b, c, d, _, flags, kind_low, kind_high, ..] = header;
                let length = i32::from_le_bytes([a, b, c, d]);
                let kind = u16::from_le_bytes([kind_low, kind_high]);
                if !is_whole || length == 0 {
                    // The end of the recording. An archive makes a file when it needs the file.
                    if index + 1 < self.segments.len() {
                        let text = format!("{path:?} ends at position {position}: more files");
                        return Err(invalid(text));
                    }
                    return Ok(position);
                }
                // A negative length is as damaged as one that is too short.
                let length = usize::try_from(length).unwrap_or(0);
                let next = position + align(length) as i64;
                if length < HEADER_LENGTH || next > end || !matches!(kind, TYPE_PAD | TYPE_DATA) {
                    return Err(invalid(format!("{path:?}: damaged at position {position}")));
                }
                body.resize(align(length) - HEADER_LENGTH, 0);
                if !read_whole(&mut file, &mut body).map_err(cannot)? {
                    // The archive was killed meanwhile.
                    return Ok(position);
                }
                position = next;
                if kind == TYPE_PAD {
                    continue;
                }
                if flags & BEGIN_FLAG != 0 {
                    message.clear();
                }
                message.extend_from_slice(&body[..length - HEADER_LENGTH]);
                if flags & END_FLAG != 0 && !handler(position, &message)? {
                    return Ok(position);
                }
            }
        }
        Ok(position)
    }
}

/// Returns `false` at the end of the file.
fn read_whole(file: &mut impl Read, target: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(target) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn io_error(path: &Path, error: &io::Error) -> ClusterError {
    ClusterError::new(ClusterErrorKind::Io(error.kind()), format!("{}: {error}", path.display()))
}

pub(super) fn invalid(text: impl Into<String>) -> ClusterError {
    ClusterError::new(ClusterErrorKind::InvalidRecording, text)
}

/// Returns the recording of the last term, which holds all terms of the member.
fn last_term(entries: &[RecordingLogEntry]) -> Option<RecordingId> {
    let is_term = |entry: &&RecordingLogEntry| entry.kind == RecordingLogEntryKind::Term;
    let terms = entries.iter().filter(is_term).filter(|entry| entry.is_valid);
    terms.max_by_key(|term| term.leadership_term_id).map(|term| term.recording_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flags: u8, kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; HEADER_LENGTH];
        frame[..4].copy_from_slice(&((HEADER_LENGTH + payload.len()) as i32).to_le_bytes());
        frame[5] = flags;
        frame[6..8].copy_from_slice(&kind.to_le_bytes());
        frame.extend(payload);
        frame.resize(frame.len().next_multiple_of(32), 0);
        frame
    }

    /// Writes files of 256 bytes.
    fn write(dir: &Path, frames: &[Vec<u8>]) -> Recording {
        let mut bytes = frames.concat();
        bytes.resize(bytes.len().next_multiple_of(256), 0);
        for (index, segment) in bytes.chunks(256).enumerate() {
            fs::write(dir.join(format!("7-{}.rec", 256 * index)), segment).expect("a file");
        }
        fs::write(dir.join("77-0.rec"), [0; 256]).expect("a file");
        Recording::open(dir, RecordingId::new(7)).expect("a recording")
    }

    /// Messages with the positions behind them.
    type Messages = Vec<(i64, Vec<u8>)>;

    fn messages(recording: &Recording, from: i64) -> Result<(Messages, i64)> {
        let mut messages = Vec::new();
        let end = recording.read(from, |position, message| {
            messages.push((position, message.to_vec()));
            Ok(true)
        })?;
        Ok((messages, end))
    }

    #[test]
    fn fragments_padding_and_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let frames = [
            frame(BEGIN_FLAG | END_FLAG, TYPE_DATA, b"one"),
            frame(BEGIN_FLAG, TYPE_DATA, &[1; 32]),
            frame(0, TYPE_DATA, &[2; 32]),
            frame(0, TYPE_PAD, &[9; 32]),
            frame(END_FLAG, TYPE_DATA, b"end"),
            frame(BEGIN_FLAG | END_FLAG, TYPE_DATA, b"two"),
        ];
        let recording = write(dir.path(), &frames);
        let long = [&[1; 32][..], &[2; 32], b"end"].concat();
        let all = vec![(64, b"one".to_vec()), (320, long), (384, b"two".to_vec())];
        assert_eq!(messages(&recording, 0).expect("messages"), (all.clone(), 384));
        assert_eq!(messages(&recording, 64).expect("messages"), (all[1..].to_vec(), 384));
        assert_eq!(messages(&recording, 384).expect("messages"), (Vec::new(), 384));
    }

    #[test]
    fn damage_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let fails = |frames: &[Vec<u8>], text: &str| {
            let error = messages(&write(dir.path(), frames), 0).expect_err(text);
            assert_eq!(error.kind(), ClusterErrorKind::InvalidRecording);
            assert!(error.message().contains(text), "{error}");
        };
        fails(&[frame(BEGIN_FLAG | END_FLAG, 5, b"one")], "damaged at position 0");
        let mut short = frame(BEGIN_FLAG | END_FLAG, TYPE_DATA, b"one");
        short[0] = 31;
        fails(&[short], "damaged at position 0");
        // A frame that does not end in its file.
        fails(&[frame(BEGIN_FLAG | END_FLAG, TYPE_DATA, &[0; 300])], "damaged at position 0");
        fails(&[vec![0; 300]], "more files");
        fs::remove_file(dir.path().join("7-0.rec")).expect("a file");
        let rest = Recording::open(dir.path(), RecordingId::new(7)).expect("a recording");
        assert!(messages(&rest, 0).is_err());
        assert!(Recording::open(dir.path(), RecordingId::new(8)).is_err());
    }

    fn entry(kind: RecordingLogEntryKind, recording_id: i64, term: i64) -> RecordingLogEntry {
        RecordingLogEntry {
            kind,
            is_valid: true,
            recording_id: recording_id.into(),
            leadership_term_id: term.into(),
            term_base_log_position: 0,
            log_position: 640,
            timestamp: 77,
            service_id: None,
            archive_endpoint: None,
        }
    }

    #[test]
    fn last_valid_term_has_the_log() {
        use RecordingLogEntryKind::{Snapshot, Term};
        let invalid = RecordingLogEntry { is_valid: false, ..entry(Term, 9, 7) };
        let entries = [entry(Term, 5, 1), entry(Term, 4, 0), entry(Snapshot, 8, 3), invalid];
        assert_eq!(last_term(&entries), Some(5.into()));
        assert_eq!(last_term(&entries[2..]), None);
    }
}
