//! Positions of recordings in progress, among the [notes](NOTES) of the mark file.
//!
//! They tell the next server how far a killed one had come: memory that is mapped survives the process, with all stores
//! that came before the kill. They do not survive the operating system as exactly, so they count only if the lock has told
//! that the owner was killed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::ids::RecordingId;
use crate::mark_file::{MarkFile, NOTES, client};

/// Where the slots are in the file.
pub(super) const SLOTS: Range<usize> = client::RECORD.end..NOTES.end;
/// Recording id + 1, or 0 if the slot is free; then the position.
const SLOT_LENGTH: usize = 16;

/// A slot of a recording in progress.
#[derive(Debug)]
pub(crate) struct PositionSlot {
    mark_file: Arc<MarkFile>,
    offset: usize,
}

impl PositionSlot {
    /// Claims a slot for a recording. `None` if all are in use: a kill then leaves this recording as one of Java's archive.
    pub(crate) fn claim(
        mark_file: &Arc<MarkFile>,
        recording_id: RecordingId,
        position: i64,
    ) -> Option<Self> {
        let slots = mark_file.has_notes.then_some(SLOTS)?;
        let is_free = |offset: &usize| number(mark_file, *offset).load(Ordering::Relaxed) == 0;
        let offset = slots.step_by(SLOT_LENGTH).find(is_free)?;
        let slot = Self { mark_file: Arc::clone(mark_file), offset };
        slot.store(position);
        number(mark_file, offset).store((recording_id.get() + 1).to_le(), Ordering::Release);
        Some(slot)
    }

    /// Notes that the recording has come so far. Belongs before anything that announces the position.
    #[inline]
    pub(crate) fn store(&self, position: i64) {
        let slot = number(&self.mark_file, self.offset + size_of::<i64>());
        slot.store(position.to_le(), Ordering::Release);
    }

    /// Frees the slot, once: another recording may claim it. The catalog has to have the recording's end.
    pub(crate) fn release(&self) {
        number(&self.mark_file, self.offset).store(0, Ordering::Release);
    }
}

/// Frees the slots of all recordings but those that `is_needed` names by id.
pub(super) fn forget(mark_file: &MarkFile, is_needed: impl Fn(RecordingId) -> bool) {
    for offset in SLOTS.step_by(SLOT_LENGTH) {
        let slot = number(mark_file, offset);
        let number = i64::from_le(slot.load(Ordering::Relaxed));
        if number != 0 && !is_needed(RecordingId::new(number.wrapping_sub(1))) {
            slot.store(0, Ordering::Release);
        }
    }
}

fn number(mark_file: &MarkFile, offset: usize) -> &AtomicI64 {
    mark_file.file.number(offset)
}

/// Reads the positions of a file from its header's bytes.
pub(crate) fn read(header: &[u8]) -> HashMap<RecordingId, i64> {
    let slots = header.get(SLOTS).unwrap_or_default().chunks_exact(SLOT_LENGTH);
    let read = |bytes: &[u8]| bytes.first_chunk().copied().map(i64::from_le_bytes);
    slots
        .filter_map(|slot| Some((read(slot)?, read(&slot[size_of::<i64>()..])?)))
        .filter(|(number, _)| *number != 0)
        .map(|(number, position)| (RecordingId::new(number.wrapping_sub(1)), position))
        .collect()
}
