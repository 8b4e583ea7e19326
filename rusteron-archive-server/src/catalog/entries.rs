//! The entries of a catalog as its file has them, valid or not: for tools, while no archive runs.

use std::sync::Arc;
use std::time::SystemTime;

use rusteron_core::cnc::epoch;

use crate::catalog::CatalogError;
use crate::catalog::descriptor::{
    CHECKSUM_OFFSET, Descriptor, ENTRY_HEADER_LENGTH, FIXED_LENGTH, RecordingState, STATE_OFFSET,
    Texts, WrongChecksum, check_checksum, stated_end,
};
use crate::catalog::file::CatalogFile;
use crate::catalog::header::{self, NEXT_ID_OFFSET, i32_at};
use crate::ids::RecordingId;
use crate::segment::checksum::Checksum;
use crate::storage::{Storage, SyncLevel};

/// An entry of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingEntry {
    /// The id of the recording.
    pub recording_id: RecordingId,
    /// The state, or `None` if the catalog has a number that stands for none.
    pub state: Option<RecordingState>,
    /// When recording started, by the archive's clock.
    pub start_time: SystemTime,
    /// When recording stopped, or `None` if it has not.
    pub stop_time: Option<SystemTime>,
    /// The position at which the recording begins.
    pub start_position: i64,
    /// The position at which the recording ends, or `None` if the catalog has none: a running archive records it, or one
    /// that was killed did.
    pub stop_position: Option<i64>,
    /// The id of the publication's first term.
    pub initial_term_id: i32,
    /// The length of the recording's files, in bytes.
    pub segment_file_length: i32,
    /// The length of the publication's terms, in bytes.
    pub term_buffer_length: i32,
    /// The longest packet of the publication, in bytes.
    pub mtu_length: i32,
    /// The session id of the publication that was recorded last.
    pub session_id: i32,
    /// The stream id of the publication.
    pub stream_id: i32,
    /// The channel, reduced to the parameters that distinguish it. In this and other texts, replacements stand for bytes
    /// that are not UTF-8.
    pub stripped_channel: String,
    /// The channel that was given when recording was started.
    pub original_channel: String,
    /// Source of the publication: an address, or `aeron:ipc`.
    pub source_identity: String,
    /// What is wrong with the entry, if anything. An archive serves the recording as far as that
    /// allows, or not at all.
    pub fault: Option<String>,
    pub(crate) descriptor: Descriptor,
    pub(crate) offset: EntryOffset,
}

/// Where an entry is in the catalog's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryOffset(usize);

impl RecordingEntry {
    /// Tells whether clients see the recording.
    pub fn is_valid(&self) -> bool {
        self.state == Some(RecordingState::Valid)
    }

    fn new(offset: usize, entry: &[u8]) -> Self {
        let mut fixed = [0; FIXED_LENGTH];
        let length = entry.len().min(FIXED_LENGTH);
        fixed[..length].copy_from_slice(&entry[..length]);
        let descriptor = Descriptor::decode(&fixed);
        let state = RecordingState::of(entry);
        let texts = Texts::read(entry).unwrap_or(Texts::EMPTY);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let time = |ms: i64| epoch::time(ms).unwrap_or(SystemTime::UNIX_EPOCH);
        let active = descriptor.is_active();
        Self {
            recording_id: descriptor.recording_id,
            start_time: time(descriptor.start_timestamp),
            stop_time: (!active).then(|| time(descriptor.stop_timestamp)),
            start_position: descriptor.start_position,
            stop_position: (!active).then_some(descriptor.stop_position),
            initial_term_id: descriptor.initial_term_id,
            segment_file_length: descriptor.segment_length,
            term_buffer_length: descriptor.term_length,
            mtu_length: descriptor.mtu,
            session_id: descriptor.session_id,
            stream_id: descriptor.stream_id,
            stripped_channel: text(texts.stripped_channel),
            original_channel: text(texts.original_channel),
            source_identity: text(texts.source_identity),
            fault: Descriptor::read(entry)
                .and_then(|descriptor| descriptor.check_edges())
                .err()
                .or_else(|| state.clone().err()),
            state: state.ok(),
            descriptor,
            offset: EntryOffset(offset),
        }
    }
}

/// The entries of a catalog. Opening them recovers no recording.
#[derive(Debug)]
pub(crate) struct Entries {
    file: CatalogFile,
    list: Vec<RecordingEntry>,
}

impl Entries {
    /// Reads the catalog of a directory.
    pub(crate) fn open(storage: Arc<dyn Storage>) -> Result<Self, CatalogError> {
        let file = CatalogFile::open_existing(storage, SyncLevel::Data)?;
        let mut entries = Self { file, list: Vec::new() };
        entries.read();
        Ok(entries)
    }

    pub(crate) fn list(&self) -> &[RecordingEntry] {
        &self.list
    }

    /// Returns the checksum that an entry has, and the one that it must have.
    pub(crate) fn checksums(&self, entry: &RecordingEntry, checksum: Checksum) -> (i32, i32) {
        let bytes = self.file.entry(entry.offset.0);
        let stated = &bytes[ENTRY_HEADER_LENGTH..stated_end(bytes)];
        (i32_at(bytes, CHECKSUM_OFFSET), checksum.of(stated))
    }

    /// Checks the checksum of an entry, if it has one.
    pub(crate) fn check_checksum(&self, entry: &RecordingEntry) -> Result<(), WrongChecksum> {
        check_checksum(self.file.entry(entry.offset.0))
    }

    /// Returns the kind of the checksum that an entry would have if its recording ended at another
    /// position.
    pub(crate) fn checksum_of_end(&self, entry: &RecordingEntry, end: i64) -> Option<Checksum> {
        let mut bytes = self.file.entry(entry.offset.0).to_vec();
        let (stored, stated) = (i32_at(&bytes, CHECKSUM_OFFSET), stated_end(&bytes));
        Descriptor { stop_position: end, ..entry.descriptor }.write(&mut bytes, None);
        let is_of = |kind: &Checksum| stored == kind.of(&bytes[ENTRY_HEADER_LENGTH..stated]);
        [Checksum::Crc32, Checksum::Crc32c].into_iter().find(is_of)
    }

    /// Takes the checksum of an entry away, which then stands for itself.
    pub(crate) fn clear_checksum(&mut self, offset: EntryOffset) -> Result<(), CatalogError> {
        self.file.overwrite(offset.0 + CHECKSUM_OFFSET, &[0; 4])
    }

    pub(crate) fn set_state(
        &mut self,
        offset: EntryOffset,
        state: RecordingState,
    ) -> Result<(), CatalogError> {
        self.file.overwrite(offset.0 + STATE_OFFSET, &state.to_bytes())?;
        self.read_again(offset);
        Ok(())
    }

    /// Ends a recording. Java's tool leaves the entry's checksum as it was. Here it stays right if
    /// it was right, and gets right if only the end was another one than that of the checksum.
    pub(crate) fn set_end(
        &mut self,
        offset: EntryOffset,
        position: i64,
        now_ms: i64,
    ) -> Result<(), CatalogError> {
        let mut bytes = self.file.entry(offset.0).to_vec();
        let entry = RecordingEntry::new(offset.0, &bytes);
        let is_right = |&checksum: &Checksum| {
            let (stored, computed) = self.checksums(&entry, checksum);
            stored == computed
        };
        let checksum = [Checksum::Crc32, Checksum::Crc32c].into_iter().find(is_right);
        let checksum = checksum.or_else(|| self.checksum_of_end(&entry, position));
        let descriptor =
            Descriptor { stop_position: position, stop_timestamp: now_ms, ..entry.descriptor };
        descriptor.write(&mut bytes, checksum);
        self.file.overwrite(offset.0 + CHECKSUM_OFFSET, &bytes[CHECKSUM_OFFSET..FIXED_LENGTH])?;
        self.read_again(offset);
        Ok(())
    }

    /// Removes the entries that are not valid. A crash leaves the old file or the new one.
    pub(crate) fn compact(&mut self) -> Result<(), CatalogError> {
        let mut content = header::empty();
        let old = self.file.content();
        let next_id = match header::next_id(old).get() {
            0 => self.list.last().map_or(0, |last| last.recording_id.saturating_next().get()),
            next_id => next_id,
        };
        content[..4].copy_from_slice(&old[..4]);
        content[NEXT_ID_OFFSET..][..8].copy_from_slice(&next_id.to_le_bytes());
        for entry in self.list.iter().filter(|entry| entry.is_valid()) {
            content.extend_from_slice(self.file.entry(entry.offset.0));
        }
        let replaced = self.file.compact(content);
        self.read();
        replaced
    }

    /// Returns the length of an entry in the file, in bytes.
    pub(crate) fn length(&self, offset: EntryOffset) -> u64 {
        self.file.entry(offset.0).len() as u64
    }

    fn read(&mut self) {
        let entry = |offset| RecordingEntry::new(offset, self.file.entry(offset));
        self.list = self.file.offsets().map(entry).collect();
    }

    fn read_again(&mut self, offset: EntryOffset) {
        if let Ok(index) = self.list.binary_search_by_key(&offset, |entry| entry.offset) {
            self.list[index] = RecordingEntry::new(offset.0, self.file.entry(offset.0));
        }
    }
}
