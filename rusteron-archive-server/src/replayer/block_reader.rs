//! The files that replays read.

use std::io;
use std::sync::Arc;

use crate::recorder::IoTotals;
use crate::segment::checksum::Checksum;
use crate::storage::{Storage, StorageFile};

/// Opens segment files, and counts what is read of them.
#[derive(Debug)]
pub(crate) struct BlockReader {
    storage: Arc<dyn Storage>,
    /// Verified in each data frame, if set.
    pub(super) checksum: Option<Checksum>,
    pub(super) totals: IoTotals,
}

impl BlockReader {
    pub(crate) fn new(storage: Arc<dyn Storage>, checksum: Option<Checksum>) -> Self {
        Self { storage, checksum, totals: IoTotals::default() }
    }

    /// Opens a file. Returns `None` if it does not exist.
    pub(super) fn open(&self, name: &str) -> io::Result<Option<Box<dyn StorageFile>>> {
        match self.storage.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }
}
