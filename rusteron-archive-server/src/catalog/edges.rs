//! Edits of where recordings begin and end, and the deletion of entries.

use crate::catalog::Recording;
use crate::catalog::descriptor::{
    CHECKSUM_OFFSET, Descriptor, FIXED_LENGTH, RecordingState, STATE_OFFSET,
};
use crate::catalog::{Catalog, CatalogError};
use crate::ids::RecordingId;
use crate::storage::{PAGE_LENGTH, SyncLevel};

impl Catalog {
    /// Returns how durable edits are, and how durable the changes of files have to be that they follow from.
    pub(crate) fn sync_level(&self) -> SyncLevel {
        self.file.sync_level()
    }

    /// Moves the start of a recording, which may be active, to a position that is not behind its end.
    pub(crate) fn set_start_position(
        &mut self,
        id: RecordingId,
        position: i64,
    ) -> Result<(), CatalogError> {
        self.edit(id, |descriptor| descriptor.start_position = position)
    }

    /// Moves the end of a stopped recording to a position that is not before its start.
    pub(crate) fn set_stop_position(
        &mut self,
        id: RecordingId,
        position: i64,
    ) -> Result<(), CatalogError> {
        self.edit(id, |descriptor| descriptor.stop_position = position)
    }

    /// Deletes a recording. As in Java, its entry stays in the file, and its id is not used again.
    pub(crate) fn delete(&mut self, id: RecordingId) -> Result<(), CatalogError> {
        let index = self.index(id).ok_or(CatalogError::UnknownRecording(id))?;
        let offset = self.recordings[index].offset + STATE_OFFSET;
        self.file.overwrite(offset, &RecordingState::Deleted.to_bytes())?;
        self.recordings.remove(index);
        Ok(())
    }

    pub(super) fn edit(
        &mut self,
        id: RecordingId,
        change: impl FnOnce(&mut Descriptor),
    ) -> Result<(), CatalogError> {
        let index = self.index(id).ok_or(CatalogError::UnknownRecording(id))?;
        let Recording { offset, mut descriptor } = self.recordings[index];
        change(&mut descriptor);
        let old = self.file.entry(offset)[CHECKSUM_OFFSET..FIXED_LENGTH].to_vec();
        let mut entry = self.file.entry(offset).to_vec();
        if self.checksum.is_none() {
            // It would be that of the entry before.
            entry[CHECKSUM_OFFSET..][..4].fill(0);
        }
        descriptor.write(&mut entry, self.checksum);
        let begin = offset + CHECKSUM_OFFSET;
        let (checksum, fields) = entry[CHECKSUM_OFFSET..FIXED_LENGTH].split_at(4);
        if begin / PAGE_LENGTH == (begin + old.len() - 1) / PAGE_LENGTH {
            self.file.overwrite(begin, &entry[CHECKSUM_OFFSET..FIXED_LENGTH])?;
        } else {
            // A crash between two pages leaves an entry without a checksum, and not one that it
            // contradicts.
            let written = self
                .file
                .overwrite(begin, &[0; 4])
                .and_then(|()| self.file.overwrite(begin + 4, fields))
                .and_then(|()| self.file.overwrite(begin, checksum));
            if let Err(error) = written {
                // If this fails, too, the next edit writes all of it.
                let _ = self.file.overwrite(begin, &old);
                return Err(error);
            }
        }
        self.recordings[index].descriptor = descriptor;
        Ok(())
    }
}
