//! The reads of all replays of a replayer.

use std::io;
use std::sync::Arc;

use crate::recorder::IoTotals;
use crate::segment::checksum::Checksum;
use crate::storage::{Storage, StorageFile};

/// Opens segment files, and reads them into one buffer.
#[derive(Debug)]
pub(crate) struct BlockReader {
    storage: Arc<dyn Storage>,
    /// Verified in each data frame, if set.
    pub(super) checksum: Option<Checksum>,
    /// As long as the longest read.
    pub(super) buffer: Vec<u8>,
    pub(super) totals: IoTotals,
}

impl BlockReader {
    pub(crate) fn new(storage: Arc<dyn Storage>, checksum: Option<Checksum>) -> Self {
        Self { storage, checksum, buffer: Vec::new(), totals: IoTotals::default() }
    }

    /// Opens a file. Returns `None` if it does not exist.
    pub(super) fn open(&self, name: &str) -> io::Result<Option<Box<dyn StorageFile>>> {
        match self.storage.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Reads up to `length` bytes into the buffer, fewer at the end of the file. Returns their
    /// number.
    pub(super) fn read(
        &mut self,
        file: &dyn StorageFile,
        offset: u64,
        length: usize,
    ) -> io::Result<usize> {
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        file.read_at(&mut self.buffer[..length], offset)
    }
}
