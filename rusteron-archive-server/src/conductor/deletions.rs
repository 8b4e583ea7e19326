//! Deletions of segment files: one file a turn, so that requests do not wait for them.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use crate::catalog::{Descriptor, NULL_POSITION};
use crate::conductor::effect::{Blame, Failure, RecordingId};
use crate::conductor::sessions::Requester;
use crate::conductor::turn::Turn;
use crate::control::responses::{Answer, SignalEvent};
use crate::ids::ReplayId;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::signal::Signal;
use crate::storage::Storage;

/// A segment file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentFile {
    pub(super) base: i64,
    pub(super) name: String,
}

/// Files of a recording that are being deleted. A recording has one deletion at a time, which
/// outlives the session that requested it.
#[derive(Debug)]
struct Deletion {
    requester: Requester,
    files: VecDeque<SegmentFile>,
    highest_base: i64,
    /// Replays that have to end first.
    replays: Vec<ReplayId>,
}

/// All deletions, by their recording.
#[derive(Debug, Default)]
pub(crate) struct Deletions {
    by_recording: BTreeMap<RecordingId, Deletion>,
}

impl Deletions {
    pub(super) fn check_none(&self, recording: RecordingId) -> Result<(), Failure> {
        if self.by_recording.contains_key(&recording) {
            return Err(Failure::generic(format!(
                "another delete operation in progress for recording id: {recording}"
            )));
        }
        Ok(())
    }

    /// Refuses to extend a recording where files are about to be deleted.
    pub(super) fn check_extension(
        &self,
        descriptor: &Descriptor,
        source: &str,
    ) -> Result<(), Failure> {
        let recording = descriptor.recording_id;
        check_order(descriptor)?;
        let end = descriptor.geometry().base(descriptor.stop_position);
        match self.by_recording.get(&recording) {
            Some(deletion) if deletion.highest_base >= end => Err(Failure::generic(format!(
                "cannot extend recording {recording} due to an outstanding delete operation{source}"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a replay beyond the end of a recording where files are about to be deleted.
    pub(super) fn check_replay(&self, descriptor: &Descriptor) -> Result<(), Failure> {
        let recording = descriptor.recording_id;
        match self.by_recording.get(&recording) {
            Some(deletion) if deletion.highest_base > descriptor.stop_position => {
                Err(Failure::generic(format!(
                    "cannot start replay of recording {recording} due to an outstanding delete operation"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Answers with `count`, the number of segments that end, then deletes their files in this
    /// order. As in Java, the number includes files that are missing already.
    pub(super) fn begin(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        recording: RecordingId,
        count: i64,
        files: Vec<SegmentFile>,
        replays: Vec<ReplayId>,
    ) {
        turn.respond(requester, &Answer::Ok(count));
        let Some(highest_base) = files.iter().map(|file| file.base).max() else {
            return signal_end(turn, requester, recording);
        };
        let deletion = Deletion { requester, files: files.into(), highest_base, replays };
        self.by_recording.insert(recording, deletion);
    }

    /// Deletes a file of each recording whose replays have ended.
    pub(super) fn on_turn(
        &mut self,
        turn: &mut Turn<'_>,
        is_replaying: impl Fn(ReplayId) -> bool,
    ) -> usize {
        let mut work = 0;
        let recordings: Vec<_> = self.by_recording.keys().copied().collect();
        for recording in recordings {
            let Some(deletion) = self.by_recording.get_mut(&recording) else { continue };
            deletion.replays.retain(|&replay| is_replaying(replay));
            if deletion.replays.is_empty() {
                self.delete_next(turn, recording);
                work += 1;
            }
        }
        work
    }

    /// Deletes all that is left, because the server ends. Replays have ended.
    pub(super) fn finish(&mut self, turn: &mut Turn<'_>) {
        while let Some(&recording) = self.by_recording.keys().next() {
            self.delete_next(turn, recording);
        }
    }

    /// Deletes the next file of a recording. After the last one, the client is told.
    fn delete_next(&mut self, turn: &mut Turn<'_>, recording: RecordingId) {
        let Some(deletion) = self.by_recording.get_mut(&recording) else { return };
        let requester = deletion.requester;
        if let Some(SegmentFile { name, .. }) = deletion.files.pop_front() {
            if let Err(error) = remove(turn.storage, &name) {
                // The others can be deleted all the same.
                let path = turn.storage.path(&name);
                let text = format!("unable to delete segment file: {path}: {error}");
                turn.fail(requester, Failure::generic(text));
            }
        }
        if self.by_recording.get(&recording).is_some_and(|deletion| deletion.files.is_empty()) {
            self.by_recording.remove(&recording);
            if let Err(error) = turn.catalog.sync_names(turn.storage) {
                turn.out.report(
                    Blame::Server,
                    &format!("deleted segments of recording {recording}: {error}"),
                );
            }
            signal_end(turn, requester, recording);
        }
    }
}

fn signal_end(turn: &mut Turn<'_>, requester: Requester, recording: RecordingId) {
    let event = SignalEvent {
        recording: Some(recording),
        subscription: None,
        position: NULL_POSITION,
        signal: Signal::Delete,
    };
    turn.signal(requester, &event);
}

/// Refuses to add to a recording that ends before it starts: a damaged catalog says so. The files
/// from its start on would be taken for what is behind its end.
pub(super) fn check_order(descriptor: &Descriptor) -> Result<(), Failure> {
    let Descriptor { recording_id, start_position, stop_position, .. } = *descriptor;
    if descriptor.is_active() || stop_position >= start_position {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::InvalidExtension,
        format!(
            "recording {recording_id} ends at {stop_position}, before its start at {start_position}: \
             `rusteron archive mark-invalid` excludes it"
        ),
    ))
}

/// Removes a file, unless an operator has.
fn remove(storage: &dyn Storage, name: &str) -> io::Result<()> {
    match storage.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
