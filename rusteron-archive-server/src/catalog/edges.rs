//! Edits of where recordings begin and end, and the deletion of entries.

use crate::catalog::catalog::Recording;
use crate::catalog::descriptor::{
    CHECKSUM_OFFSET, Descriptor, FIXED_LENGTH, RecordingState, STATE_OFFSET,
};
use crate::catalog::{Catalog, CatalogError};
use crate::storage::SyncLevel;

impl Catalog {
    /// Returns how durable edits are, and how durable the changes of files have to be that they follow from.
    pub(crate) fn sync_level(&self) -> SyncLevel {
        self.file.sync_level()
    }

    /// Moves the start of a recording, which may be active, to a position that is not behind its end.
    pub(crate) fn set_start_position(
        &mut self,
        id: i64,
        position: i64,
    ) -> Result<(), CatalogError> {
        self.edit(id, |descriptor| descriptor.start_position = position)
    }

    /// Moves the end of a stopped recording to a position that is not before its start.
    pub(crate) fn set_stop_position(&mut self, id: i64, position: i64) -> Result<(), CatalogError> {
        self.edit(id, |descriptor| descriptor.stop_position = position)
    }

    /// Deletes a recording. As in Java, its entry stays in the file, and its id is not used again.
    pub(crate) fn delete(&mut self, id: i64) -> Result<(), CatalogError> {
        let index = self.index(id).ok_or(CatalogError::UnknownRecording(id))?;
        let offset = self.recordings[index].offset + STATE_OFFSET;
        self.file.overwrite(offset, &RecordingState::Deleted.to_bytes())?;
        self.recordings.remove(index);
        Ok(())
    }

    pub(super) fn edit(
        &mut self,
        id: i64,
        change: impl FnOnce(&mut Descriptor),
    ) -> Result<(), CatalogError> {
        let index = self.index(id).ok_or(CatalogError::UnknownRecording(id))?;
        let Recording { offset, mut descriptor } = self.recordings[index];
        change(&mut descriptor);
        let mut entry = self.file.entry(offset).to_vec();
        descriptor.write(&mut entry, self.checksum);
        let bytes = &entry[CHECKSUM_OFFSET..FIXED_LENGTH];
        self.file.overwrite(offset + CHECKSUM_OFFSET, bytes)?;
        self.recordings[index].descriptor = descriptor;
        Ok(())
    }
}
