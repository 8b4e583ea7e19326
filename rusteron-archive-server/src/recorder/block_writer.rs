//! The writes of all recordings of a recorder.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rusteron_core::error::is_full;
use rusteron_core::log_buffer::{HEADER_LENGTH, TYPE_PAD};

use crate::recorder::IoTotals;
use crate::segment::checksum::Checksum;
use crate::segment::frame;
use crate::storage::{Storage, StorageFile, SyncLevel};

/// Makes segment files and writes blocks to them, as the settings ask for it.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    storage: Arc<dyn Storage>,
    sync_level: SyncLevel,
    checksum: Option<Checksum>,
    /// A block with its checksums. The block itself is the publisher's memory.
    buffer: Vec<u8>,
    totals: IoTotals,
}

impl BlockWriter {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        sync_level: SyncLevel,
        checksum: Option<Checksum>,
    ) -> Self {
        Self { storage, sync_level, checksum, buffer: Vec::new(), totals: IoTotals::default() }
    }

    pub(crate) fn totals(&self) -> &IoTotals {
        &self.totals
    }

    /// Returns the path of a file, for errors.
    pub(crate) fn path(&self, name: &str) -> String {
        self.storage.path(name)
    }

    /// Makes a segment file, which must not exist.
    pub(crate) fn create(&self, name: &str, length: u64) -> io::Result<Box<dyn StorageFile>> {
        let file = self.storage.create(name, length)?;
        if let Err(error) = self.sync_dir() {
            // The recording does not reach this file, and a file that is there already would stop
            // the recording when it is extended.
            drop(file);
            if let Err(error) = self.storage.remove(name) {
                log::warn!("{name}: cannot be removed: {error}");
            }
            return Err(error);
        }
        Ok(file)
    }

    /// Opens the segment file in which a recording goes on at `offset`, or makes it.
    ///
    /// Clears everything from `offset` on: bytes of which no position was announced, as their sync
    /// failed or a power cut took what lay before them. When later frames end where one of theirs
    /// begins, recovery after a crash would count them.
    pub(crate) fn open_or_create(
        &self,
        name: &str,
        length: u64,
        offset: u64,
    ) -> io::Result<Box<dyn StorageFile>> {
        match self.create(name, length) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created,
        }
        let mut file = self.storage.open(name)?;
        file.set_length(offset)?;
        file.set_length(length)?;
        // Otherwise a power cut could bring old pages back behind new ones.
        file.sync(self.sync_level)?;
        self.sync_dir()?;
        Ok(file)
    }

    /// How durable blocks are to be before their positions are announced.
    pub(crate) fn sync_level(&self) -> SyncLevel {
        self.sync_level
    }

    /// Writes a block, and returns the bytes that were written. Of padding, only the header is.
    pub(crate) fn write(
        &mut self,
        file: &mut dyn StorageFile,
        block: &[u8],
        offset: u64,
    ) -> io::Result<usize> {
        let bytes = match self.checksum {
            _ if frame::frame_type(block) == TYPE_PAD => &block[..block.len().min(HEADER_LENGTH)],
            Some(checksum) => {
                self.buffer.clear();
                self.buffer.extend_from_slice(block);
                put_checksums(checksum, &mut self.buffer);
                &self.buffer
            }
            None => block,
        };
        file.write_all_at(bytes, offset)?;
        Ok(bytes.len())
    }

    /// Counts a block that is written, and synced if the settings say so.
    pub(crate) fn count(&mut self, bytes: usize, time: Duration) {
        self.totals.add(bytes, time);
    }

    /// Returns whether an error of writing `length` bytes says that the disk is full.
    pub(crate) fn is_full(&self, error: &io::Error, length: usize) -> bool {
        is_full(error) || self.storage.usable_space().is_ok_and(|usable| usable < length as u64)
    }

    fn sync_dir(&self) -> io::Result<()> {
        if self.sync_level == SyncLevel::None { Ok(()) } else { self.storage.sync_dir() }
    }
}

/// Replaces the session id of each frame by the checksum of its payload, padding to 32 bytes
/// included.
fn put_checksums(checksum: Checksum, frames: &mut [u8]) {
    let mut rest = frames;
    while let Some(length) = frame::aligned_length(rest).filter(|&length| length <= rest.len()) {
        let (frame, next) = std::mem::take(&mut rest).split_at_mut(length);
        let checksum = checksum.of(&frame[HEADER_LENGTH..]);
        frame::set_session_id(frame, checksum);
        rest = next;
    }
}
