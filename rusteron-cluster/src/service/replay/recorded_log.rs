//! The log of a member, in the files of its archive.

use std::fs::{self, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::service::files;
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
    recording_log: RecordingLog,
    recording: Recording,
}

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
        let bytes = files::read(&path).map_err(|error| io_error(&path, &error))?;
        let recording_log = RecordingLog::parse(&bytes)
            .map_err(|error| invalid(format!("{}: {error}", path.display())))?;
        let Some(recording_id) = recording_log.log_recording_id else {
            return Err(invalid(format!("{}: no term of a leader", path.display())));
        };
        let archive_dir = archive_dir.as_ref().to_owned();
        let recording = Recording::open(&archive_dir, recording_id)?;
        Ok(Self { archive_dir, recording_log, recording })
    }

    /// Returns the snapshot from which a run begins. `None` for the beginning of the log.
    pub(super) fn beginning(
        &self,
        service_id: i32,
        is_last_snapshot_wanted: bool,
    ) -> Result<Option<SnapshotEntry>> {
        let first = self.recording.first_position();
        let is_usable =
            |entry: &&SnapshotEntry| entry.service_id == service_id && entry.log_position >= first;
        let snapshots = self.recording_log.snapshots.iter().filter(is_usable);
        if is_last_snapshot_wanted {
            let last = snapshots.max_by_key(|entry| entry.log_position);
            let text = || invalid(format!("no snapshot of service {service_id}"));
            return last.copied().map(Some).ok_or_else(text);
        }
        // The first file of a log that began at a snapshot is empty up to there.
        if first == 0 && self.recording.read(0, |_, _| Ok(false))? > 0 {
            return Ok(None);
        }
        let oldest = snapshots.min_by_key(|entry| entry.log_position).copied();
        oldest.map(Some).ok_or_else(|| {
            let text = format!(
                "the log begins at position {first}: no snapshot of service {service_id} is there"
            );
            invalid(text)
        })
    }

    /// Loads a snapshot.
    pub(super) fn load(&self, entry: &SnapshotEntry) -> Result<Snapshot> {
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

const HEADER_LENGTH: usize = 32;
const FRAME_ALIGNMENT: i64 = 32;

/// Flags of the first and the last fragment of a message.
const BEGIN: u8 = 0x80;
const END: u8 = 0x40;

/// Types of frames.
const PADDING: u16 = 0;
const DATA: u16 = 1;

/// A recording in an archive's directory: files of equal length, one behind the other.
///
/// Reads the files alone. The archive need not run.
#[derive(Debug, Clone)]
pub(super) struct Recording {
    /// Position at which a file begins, in ascending order.
    segments: Vec<(i64, PathBuf)>,
}

impl Recording {
    pub(super) fn open(archive_dir: &Path, recording_id: i64) -> Result<Self> {
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
                let frame = Frame::decode(&header);
                if !is_whole || frame.length == 0 {
                    // The end of the recording. An archive makes a file when it needs the file.
                    if index + 1 < self.segments.len() {
                        let text = format!("{path:?} ends at position {position}: more files");
                        return Err(invalid(text));
                    }
                    return Ok(position);
                }
                let next = frame.length.checked_add(FRAME_ALIGNMENT - 1);
                let next = next
                    .map_or(i64::MAX, |next| position + next / FRAME_ALIGNMENT * FRAME_ALIGNMENT);
                if frame.length < HEADER_LENGTH as i64 || next > end || !frame.is_known() {
                    return Err(invalid(format!("{path:?}: damaged at position {position}")));
                }
                body.resize((next - position) as usize - HEADER_LENGTH, 0);
                if !read_whole(&mut file, &mut body).map_err(cannot)? {
                    // The archive was killed meanwhile.
                    return Ok(position);
                }
                position = next;
                if frame.kind == PADDING {
                    continue;
                }
                if frame.flags & BEGIN != 0 {
                    message.clear();
                }
                message.extend_from_slice(&body[..frame.length as usize - HEADER_LENGTH]);
                if frame.flags & END != 0 && !handler(position, &message)? {
                    return Ok(position);
                }
            }
        }
        Ok(position)
    }
}

struct Frame {
    length: i64,
    flags: u8,
    kind: u16,
}

impl Frame {
    fn decode(header: &[u8; HEADER_LENGTH]) -> Self {
        let [a, b, c, d, _, flags, kind_low, kind_high, ..] = *header;
        Self {
            length: i32::from_le_bytes([a, b, c, d]).into(),
            flags,
            kind: u16::from_le_bytes([kind_low, kind_high]),
        }
    }

    fn is_known(&self) -> bool {
        matches!(self.kind, PADDING | DATA)
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

/// The file in the cluster directory.
const RECORDING_LOG: &str = "recording.log";

/// Length of an entry in bytes, without the endpoint of an archive.
const FIELDS_LENGTH: usize = 48;
/// Entries begin at multiples of this number of bytes.
const ALIGNMENT: usize = 64;

const TERM: i32 = 0;
const SNAPSHOT: i32 = 1;
const STANDBY_SNAPSHOT: i32 = 2;
/// The type of a removed entry.
const REMOVED: i32 = -1;

/// A snapshot of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SnapshotEntry {
    pub(super) recording_id: i64,
    pub(super) leadership_term_id: i64,
    pub(super) log_position: i64,
    pub(super) timestamp: i64,
    pub(super) service_id: i32,
}

/// The valid entries of a recording log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RecordingLog {
    /// The recording of the last term, which holds all terms of the member.
    pub(super) log_recording_id: Option<i64>,
    /// In the order of the file.
    pub(super) snapshots: Vec<SnapshotEntry>,
}

impl RecordingLog {
    /// The text of an error says why the bytes are not a recording log.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut log = Self::default();
        let mut last_term = i64::MIN;
        let mut offset = 0;
        while offset < bytes.len() {
            let entry = &bytes[offset..];
            let truncated = || format!("the file ends within the entry at byte {offset}");
            let i32_at = |at: usize| {
                let field = entry.get(at..).and_then(|field| field.first_chunk());
                field.copied().map(i32::from_le_bytes).ok_or_else(truncated)
            };
            let i64_at = |at: usize| {
                let field = entry.get(at..).and_then(|field| field.first_chunk());
                field.copied().map(i64::from_le_bytes).ok_or_else(truncated)
            };
            let (recording_id, leadership_term_id) = (i64_at(0)?, i64_at(8)?);
            let mut length = FIELDS_LENGTH;
            // Entries that are not valid have the sign bit set.
            match i32_at(44)? {
                TERM if leadership_term_id > last_term => {
                    last_term = leadership_term_id;
                    log.log_recording_id = Some(recording_id);
                }
                SNAPSHOT => log.snapshots.push(SnapshotEntry {
                    recording_id,
                    leadership_term_id,
                    log_position: i64_at(24)?,
                    timestamp: i64_at(32)?,
                    service_id: i32_at(40)?,
                }),
                code if code != REMOVED && code & i32::MAX == STANDBY_SNAPSHOT => {
                    let endpoint = i32_at(FIELDS_LENGTH)?;
                    length += 4 + usize::try_from(endpoint).map_err(|_| {
                        format!("the entry at byte {offset} has an endpoint of {endpoint} bytes")
                    })?;
                }
                _ => {}
            }
            offset += length.next_multiple_of(ALIGNMENT);
        }
        Ok(log)
    }
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
        Recording::open(dir, 7).expect("a recording")
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
            frame(BEGIN | END, DATA, b"one"),
            frame(BEGIN, DATA, &[1; 32]),
            frame(0, DATA, &[2; 32]),
            frame(0, PADDING, &[9; 32]),
            frame(END, DATA, b"end"),
            frame(BEGIN | END, DATA, b"two"),
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
        fails(&[frame(BEGIN | END, 5, b"one")], "damaged at position 0");
        let mut short = frame(BEGIN | END, DATA, b"one");
        short[0] = 31;
        fails(&[short], "damaged at position 0");
        // A frame that does not end in its file.
        fails(&[frame(BEGIN | END, DATA, &[0; 300])], "damaged at position 0");
        fails(&[vec![0; 300]], "more files");
        fs::remove_file(dir.path().join("7-0.rec")).expect("a file");
        let rest = Recording::open(dir.path(), 7).expect("a recording");
        assert!(messages(&rest, 0).is_err());
        assert!(Recording::open(dir.path(), 8).is_err());
    }

    fn entry(kind: i32, recording_id: i64, term: i64, position: i64, service_id: i32) -> Vec<u8> {
        let mut entry: Vec<u8> =
            [recording_id, term, 0, position, 77].iter().flat_map(|x| x.to_le_bytes()).collect();
        entry.extend([service_id, kind].iter().flat_map(|x| x.to_le_bytes()));
        if kind & i32::MAX == STANDBY_SNAPSHOT {
            entry.extend(20_i32.to_le_bytes());
            entry.extend([b'x'; 20]);
        }
        entry.resize(entry.len().next_multiple_of(ALIGNMENT), 0);
        entry
    }

    #[test]
    fn last_term_and_valid_snapshots() {
        let invalid = SNAPSHOT | i32::MIN;
        let bytes = [
            entry(TERM, 4, 0, 640, -1),
            entry(SNAPSHOT, 8, 0, 320, 0),
            entry(invalid, 9, 0, 640, 0),
            entry(REMOVED, 9, 0, 640, 0),
            entry(STANDBY_SNAPSHOT, 9, 0, 640, 0),
            entry(STANDBY_SNAPSHOT | i32::MIN, 9, 0, 640, 0),
            entry(TERM, 5, 1, -1, -1),
            entry(SNAPSHOT, 10, 1, 960, 1),
        ]
        .concat();
        let log = RecordingLog::parse(&bytes).expect("a recording log");
        assert_eq!(log.log_recording_id, Some(5));
        let snapshots: Vec<_> =
            log.snapshots.iter().map(|x| (x.recording_id, x.log_position, x.service_id)).collect();
        assert_eq!(snapshots, [(8, 320, 0), (10, 960, 1)]);
        let error = RecordingLog::parse(&bytes[..100]).expect_err("it is truncated");
        assert_eq!(error, "the file ends within the entry at byte 64");
        assert_eq!(RecordingLog::parse(&[]), Ok(RecordingLog::default()));
    }
}
