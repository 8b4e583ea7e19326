//! The catalog's file, with a copy of it in memory.

use std::ops::Range;
use std::sync::Arc;

use crate::catalog::CatalogError;
use crate::catalog::descriptor::{
    ENTRY_HEADER_LENGTH, RECORDING_ID_OFFSET, RecordingState, STATE_OFFSET, entry_length,
};
use crate::catalog::header::{self, HEADER_LENGTH};
use crate::storage::{Storage, StorageFile, SyncLevel};

/// The name of the file.
pub(crate) const CATALOG_NAME: &str = "archive.catalog";
/// The name of the file while it is written as a whole. Java ignores it.
const STAGED_NAME: &str = "archive.catalog.staged";

/// The greatest length of the file, in bytes.
const MAX_CAPACITY: u64 = i32::MAX as u64;
/// The bytes that one read asks for at least.
const READ_LENGTH: usize = 64 * 1024;

/// The catalog's file. Memory has the same content, but for ranges that a failed write has left unsettled: these are
/// written again before the next edit.
#[derive(Debug)]
pub(super) struct CatalogFile {
    storage: Arc<dyn Storage>,
    file: Box<dyn StorageFile>,
    sync_level: SyncLevel,
    /// Header and entries. Zeros follow in the file.
    content: Vec<u8>,
    /// The length of the file.
    capacity: u64,
    /// The bytes of the file that may differ from those in memory.
    unsettled: Option<Range<usize>>,
}

impl CatalogFile {
    /// Opens the file and reads it up to its last entry, or makes one without entries. Lengthens a file that is shorter
    /// than `capacity`.
    pub(super) fn open(
        storage: Arc<dyn Storage>,
        capacity: u64,
        sync_level: SyncLevel,
    ) -> Result<Self, CatalogError> {
        let look = CatalogError::io("look for the file");
        if storage.length(STAGED_NAME).map_err(&look)?.is_some() {
            storage.remove(STAGED_NAME).map_err(CatalogError::io("remove an unfinished file"))?;
        }
        let capacity = capacity.clamp(HEADER_LENGTH as u64, MAX_CAPACITY);
        if storage.length(CATALOG_NAME).map_err(&look)?.is_none() {
            let content = header::empty();
            let file = stage(&*storage, &content, capacity)?;
            let catalog = Self { storage, file, sync_level, content, capacity, unsettled: None };
            catalog.sync_name()?;
            return Ok(catalog);
        }
        let mut catalog = Self::open_existing(storage, sync_level)?;
        if catalog.capacity < capacity {
            catalog.set_capacity(capacity)?;
        }
        Ok(catalog)
    }

    /// Opens an existing file and reads it up to its last entry. Changes nothing.
    pub(super) fn open_existing(
        storage: Arc<dyn Storage>,
        sync_level: SyncLevel,
    ) -> Result<Self, CatalogError> {
        let file = storage.open(CATALOG_NAME).map_err(CatalogError::io("open the file"))?;
        let length = file.length().map_err(CatalogError::io("read the length"))?;
        if length > MAX_CAPACITY {
            let reason = format!("a file of {length} bytes: the maximum is {MAX_CAPACITY}");
            return Err(CatalogError::Corrupt { offset: 0, reason });
        }
        let content = read(&*file, length)?;
        Ok(Self { storage, file, sync_level, content, capacity: length, unsettled: None })
    }

    /// Returns the directory of the file.
    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    pub(super) fn sync_level(&self) -> SyncLevel {
        self.sync_level
    }

    /// Returns header and entries.
    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    /// Returns the entry at an offset that [`offsets`](Self::offsets) has, or [`append`](Self::append).
    pub(super) fn entry(&self, offset: usize) -> &[u8] {
        let entry = &self.content[offset..];
        &entry[..entry_length(entry).unwrap_or(entry.len()).min(entry.len())]
    }

    /// Returns the offsets of all entries.
    pub(super) fn offsets(&self) -> impl Iterator<Item = usize> {
        let mut next = HEADER_LENGTH;
        std::iter::from_fn(move || {
            let offset = next;
            if offset >= self.content.len() {
                return None;
            }
            next += self.entry(offset).len();
            Some(offset)
        })
    }

    /// Overwrites bytes of the header or of an entry.
    pub(super) fn overwrite(&mut self, offset: usize, bytes: &[u8]) -> Result<(), CatalogError> {
        self.settle()?;
        self.write(offset, bytes)?;
        self.sync()?;
        self.content[offset..][..bytes.len()].copy_from_slice(bytes);
        self.unsettled = None;
        Ok(())
    }

    /// Lengthens the file so that `additional` bytes fit behind the last entry.
    pub(super) fn reserve(&mut self, additional: usize) -> Result<(), CatalogError> {
        let capacity = self.capacity_for(additional)?;
        if capacity > self.capacity { self.set_capacity(capacity) } else { Ok(()) }
    }

    /// Returns the length of a file with `additional` bytes behind the last entry. Files grow by half, as Java's.
    fn capacity_for(&self, additional: usize) -> Result<u64, CatalogError> {
        let length = self.content.len() as u64;
        let needed = length + additional as u64;
        if needed > MAX_CAPACITY {
            return Err(CatalogError::Full(if self.capacity == MAX_CAPACITY {
                format!("catalog is full, max capacity reached: {MAX_CAPACITY}")
            } else {
                format!(
                    "recording is too big: total recording length is {additional} bytes, available space is {} bytes",
                    MAX_CAPACITY - length
                )
            }));
        }
        let mut capacity = self.capacity;
        while capacity < needed {
            capacity = (capacity + capacity / 2).min(MAX_CAPACITY);
        }
        Ok(capacity)
    }

    /// Appends a valid entry, for which there has to be space, and returns its offset.
    ///
    /// Java's tool deletes the segments of entries that are not valid, by the recording id that they have. So the id is in
    /// the file before the entry is, and the entry becomes valid by a write that a crash cannot tear.
    pub(super) fn append(&mut self, entry: &[u8]) -> Result<usize, CatalogError> {
        self.settle()?;
        let offset = self.content.len();
        let id = &entry[RECORDING_ID_OFFSET..][..8];
        self.write(offset + RECORDING_ID_OFFSET, id)?;
        self.sync()?;
        let mut bytes = entry.to_vec();
        bytes[STATE_OFFSET..][..4].copy_from_slice(&RecordingState::Invalid.to_bytes());
        if self.capacity >= (offset + bytes.len() + 4) as u64 {
            // The end of the entries, should a crash have left something there.
            bytes.extend_from_slice(&[0; 4]);
        }
        self.write(offset, &bytes)?;
        self.sync()?;
        self.write(offset + STATE_OFFSET, &RecordingState::Valid.to_bytes())?;
        self.sync()?;
        self.content.extend_from_slice(entry);
        self.unsettled = None;
        Ok(offset)
    }

    /// Replaces the content as a whole: a crash leaves the old file or the new one.
    pub(super) fn replace(&mut self, content: Vec<u8>) -> Result<(), CatalogError> {
        let capacity = self.capacity_for(content.len().saturating_sub(self.content.len()))?;
        self.replace_file(content, capacity)
    }

    /// As [`replace`](Self::replace), with a file that ends behind the last entry.
    pub(super) fn compact(&mut self, content: Vec<u8>) -> Result<(), CatalogError> {
        let capacity = content.len() as u64;
        self.replace_file(content, capacity)
    }

    fn replace_file(&mut self, content: Vec<u8>, capacity: u64) -> Result<(), CatalogError> {
        self.file = stage(&*self.storage, &content, capacity)?;
        self.capacity = capacity;
        self.content = content;
        self.unsettled = None;
        self.sync_name()
    }

    fn set_capacity(&mut self, capacity: u64) -> Result<(), CatalogError> {
        self.file.set_length(capacity).map_err(CatalogError::io("lengthen the file"))?;
        self.capacity = capacity;
        Ok(())
    }

    /// Writes again what a failed edit may have changed.
    fn settle(&mut self) -> Result<(), CatalogError> {
        let Some(range) = self.unsettled.clone() else { return Ok(()) };
        let mut bytes = self.content.get(range.start..).unwrap_or_default().to_vec();
        bytes.resize(range.len(), 0);
        let restore = CatalogError::io("undo a failed edit");
        self.file.write_all_at(&bytes, range.start as u64).map_err(&restore)?;
        self.file.sync(self.sync_level).map_err(&restore)?;
        self.unsettled = None;
        Ok(())
    }

    /// Writes bytes of an edit, which ends when `unsettled` is empty again.
    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), CatalogError> {
        let range = offset..offset + bytes.len();
        self.unsettled = Some(match self.unsettled.take() {
            Some(other) => other.start.min(range.start)..other.end.max(range.end),
            None => range,
        });
        self.file
            .write_all_at(bytes, offset as u64)
            .map_err(|error| self.fail(CatalogError::io("write")(error)))
    }

    fn sync(&mut self) -> Result<(), CatalogError> {
        self.file.sync(self.sync_level).map_err(|error| self.fail(CatalogError::io("sync")(error)))
    }

    /// Undoes an edit at once if the storage is able to.
    fn fail(&mut self, error: CatalogError) -> CatalogError {
        // Otherwise, the next edit does it first.
        let _ = self.settle();
        error
    }

    fn sync_name(&self) -> Result<(), CatalogError> {
        self.storage.sync_dir().map_err(CatalogError::io("sync the directory"))
    }
}

/// Writes a whole file beside the catalog, and gives it the catalog's name.
fn stage(
    storage: &dyn Storage,
    content: &[u8],
    capacity: u64,
) -> Result<Box<dyn StorageFile>, CatalogError> {
    let mut file =
        storage.create(STAGED_NAME, capacity).map_err(CatalogError::io("make a file"))?;
    let renamed = file
        .write_all_at(content, 0)
        .and_then(|()| file.sync(SyncLevel::All))
        .and_then(|()| storage.rename(STAGED_NAME, CATALOG_NAME));
    match renamed {
        Ok(()) => Ok(file),
        Err(error) => {
            // If this fails, too, the file is removed when the catalog is opened again.
            let _ = storage.remove(STAGED_NAME);
            Err(CatalogError::io("write the whole file")(error))
        }
    }
}

/// Reads header and entries of a file of `length` bytes.
fn read(file: &dyn StorageFile, length: u64) -> Result<Vec<u8>, CatalogError> {
    let mut content = Vec::new();
    read_to(file, &mut content, HEADER_LENGTH)?;
    // A file that is shorter than the header has version 0, as Java reads it.
    content.resize(content.len().max(HEADER_LENGTH), 0);
    if let Some(header) = content.first_chunk() {
        header::check(header)?;
    }
    let mut end = HEADER_LENGTH;
    loop {
        read_to(file, &mut content, end + ENTRY_HEADER_LENGTH)?;
        let Some(frame) = content.get(end..).and_then(entry_length) else { break };
        if (end + frame) as u64 > length {
            let reason = format!("an entry of {frame} bytes exceeds the file of {length} bytes");
            return Err(CatalogError::Corrupt { offset: end, reason });
        }
        end += frame;
        read_to(file, &mut content, end)?;
        if content.len() < end {
            let reason = format!("the file ends at {} instead of {length} bytes", content.len());
            return Err(CatalogError::Corrupt { offset: content.len(), reason });
        }
    }
    content.truncate(end);
    content.shrink_to_fit();
    Ok(content)
}

/// Reads on until `content` has `length` bytes at least, or the whole file.
fn read_to(
    file: &dyn StorageFile,
    content: &mut Vec<u8>,
    length: usize,
) -> Result<(), CatalogError> {
    let start = content.len();
    if start < length {
        content.resize(length.max(start + READ_LENGTH), 0);
        let read = file
            .read_at(&mut content[start..], start as u64)
            .map_err(CatalogError::io("read the file"))?;
        content.truncate(start + read);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::faulty::FaultyStorage;

    fn open(storage: &FaultyStorage, capacity: u64) -> CatalogFile {
        CatalogFile::open(Arc::new(storage.clone()), capacity, SyncLevel::None).expect("a file")
    }

    fn length(storage: &FaultyStorage) -> Option<u64> {
        storage.length(CATALOG_NAME).expect("a length")
    }

    #[test]
    fn file_has_capacity_and_grows_by_half() {
        let storage = FaultyStorage::default();
        let mut file = open(&storage, 1000);
        assert_eq!(storage.content(CATALOG_NAME).expect("a file")[..32], header::empty());
        file.reserve(968).expect("nothing to do");
        assert_eq!(length(&storage), Some(1000));
        file.reserve(969).expect("space");
        assert_eq!(length(&storage), Some(1500));
        file.reserve(4000).expect("space");
        assert_eq!(length(&storage), Some(5062));
        drop(open(&storage, 5000));
        assert_eq!(length(&storage), Some(5062));
        drop(open(&storage, 6000));
        assert_eq!(length(&storage), Some(6000));
        drop(open(&FaultyStorage::default(), 0));
    }

    #[test]
    fn file_has_a_greatest_length() {
        let storage = FaultyStorage::default();
        let mut file = open(&storage, u64::MAX);
        assert_eq!(length(&storage), Some((1 << 31) - 1));
        file.reserve((1 << 31) - 1 - 32).expect("space");
        let error = file.reserve((1 << 31) - 32).expect_err("no space");
        assert_eq!(
            error.to_string(),
            "archive.catalog: catalog is full, max capacity reached: 2147483647"
        );
        let error = open(&FaultyStorage::default(), 100).reserve(1 << 31).expect_err("no space");
        assert!(error.is_storage_full());
        assert!(error.to_string().contains("available space is 2147483615 bytes"), "{error}");
    }

    /// The storage failed again when an edit was undone at once.
    #[test]
    fn next_edit_undoes_a_failed_one() {
        let edits: [fn(&mut CatalogFile); 2] = [
            |file| file.overwrite(8, &[1]).expect("an edit"),
            |file| file.append(&[5; 64]).map(drop).expect("an edit"),
        ];
        for edit in edits {
            let storage = FaultyStorage::default();
            let mut file = open(&storage, 1000);
            let mut other = storage.open(CATALOG_NAME).expect("the file");
            other.write_all_at(&[7; 500], 20).expect("a write");
            file.unsettled = Some(20..520);
            edit(&mut file);
            let content = storage.content(CATALOG_NAME).expect("the file");
            let (known, rest) = content.split_at(file.content().len());
            assert_eq!(known[..8], header::empty()[..8]);
            assert_eq!(known[12..32], header::empty()[12..]);
            assert!(rest.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn unfinished_file_is_removed() {
        let storage = FaultyStorage::default();
        storage.create(STAGED_NAME, 100).expect("a file");
        drop(open(&storage, 1000));
        assert_eq!(storage.names().expect("names"), [CATALOG_NAME]);
        drop(open(&storage, 1000));
    }

    #[test]
    fn foreign_files_are_refused() {
        let refusal = |content: &[u8]| {
            let storage = FaultyStorage::default();
            let mut file = storage.create(CATALOG_NAME, 0).expect("a file");
            file.write_all_at(content, 0).expect("a write");
            let opened = CatalogFile::open(Arc::new(storage.clone()), 100, SyncLevel::None);
            assert_eq!(storage.content(CATALOG_NAME).as_deref(), Some(content), "unchanged");
            opened.expect_err("a foreign file").to_string()
        };
        for foreign in [&b""[..], &[0; 31], &[0; 1000]] {
            assert!(refusal(foreign).contains("version 0.0.0, archive software is 3.1.0"));
        }
        assert!(
            refusal(b"#!/bin/sh\nexec java -jar archive.jar\n")
                .contains("archive.catalog: incompatible")
        );
        let cut = [&header::empty()[..], &[64, 0, 0, 0], &[0; 91]].concat();
        assert!(
            refusal(&cut)
                .contains("corrupt at byte 32: an entry of 128 bytes exceeds the file of 127")
        );
    }
}
