//! The catalog: recordings by id, and edits of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::catalog::descriptor::{
    Descriptor, NULL_POSITION, NULL_TIMESTAMP, RECORDING_ID_OFFSET, RecordingState, Texts,
    check_checksum, i64_at, stated_end,
};
use crate::catalog::file::{CATALOG_NAME, CatalogFile};
use crate::catalog::header::{self, NEXT_ID_OFFSET};
use crate::catalog::recovery;
use crate::catalog::{CatalogError, Migration};
use crate::segment::checksum::Checksum;
use crate::segment::geometry::{DELETED_SUFFIX, parse_name};
use crate::segment::scan::{self, Evidence};
use crate::storage::{Storage, SyncLevel};

/// How a catalog is opened and edited.
#[derive(Debug, Clone)]
pub(crate) struct CatalogSettings {
    /// The least length of the file, in bytes.
    pub(crate) capacity: u64,
    pub(crate) sync_level: SyncLevel,
    /// Of segment files.
    pub(crate) file_sync_level: SyncLevel,
    /// Of recorded frames and of entries.
    pub(crate) checksum: Option<Checksum>,
    /// The time at which recordings end that an earlier archive left active, in milliseconds since 1970.
    pub(crate) now_ms: i64,
    /// The positions that recordings had when that archive was killed, by id, as far as they are known for certain.
    pub(crate) positions: HashMap<i64, i64>,
    /// The directory is the one that the earlier archive wrote to, and no copy.
    pub(crate) is_original: bool,
}

/// A recording to add: what [`Descriptor`] has, and its texts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewRecording<'a> {
    pub(crate) start_position: i64,
    pub(crate) initial_term_id: i32,
    pub(crate) segment_length: i32,
    pub(crate) term_length: i32,
    pub(crate) mtu: i32,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) stripped_channel: &'a str,
    /// As the client wrote it.
    pub(crate) original_channel: &'a str,
    pub(crate) source_identity: &'a str,
}

impl<'a> NewRecording<'a> {
    /// Returns the descriptor of a recording that ends where it starts, at no known time.
    pub(super) fn descriptor(&self, id: i64) -> Descriptor {
        Descriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id: id,
            start_timestamp: NULL_TIMESTAMP,
            stop_timestamp: NULL_TIMESTAMP,
            start_position: self.start_position,
            stop_position: self.start_position,
            initial_term_id: self.initial_term_id,
            segment_length: self.segment_length,
            term_length: self.term_length,
            mtu: self.mtu,
            session_id: self.session_id,
            stream_id: self.stream_id,
        }
    }

    /// Checks what arithmetic on positions depends on, of a recording that another archive describes.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.descriptor(0).check()
    }

    pub(super) fn texts(&self) -> Texts<'a> {
        Texts {
            stripped_channel: self.stripped_channel.as_bytes(),
            original_channel: self.original_channel.as_bytes(),
            source_identity: self.source_identity.as_bytes(),
        }
    }
}

/// The recordings of an archive. An edit is in the file when its method returns, and durable as far as the settings ask
/// for it. After a failed edit, the catalog is as before.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(super) file: CatalogFile,
    pub(super) checksum: Option<Checksum>,
    pub(super) next_id: i64,
    /// Valid recordings, by ascending id.
    pub(super) recordings: Vec<Recording>,
    /// Why valid recordings are not served, by the ids that their entries have: see
    /// [`set_aside`](Self::set_aside).
    set_aside: Vec<(i64, CatalogError)>,
    /// A migration that neither succeeded nor could be undone.
    pub(super) unfinished: Option<Migration>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Recording {
    /// Of the entry in the file.
    pub(super) offset: usize,
    pub(super) descriptor: Descriptor,
}

impl Catalog {
    /// Opens the catalog of a directory, or makes one. Recordings without an end get the one that their frames tell.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        settings: &CatalogSettings,
    ) -> Result<Self, CatalogError> {
        let file = CatalogFile::open(storage.clone(), settings.capacity, settings.sync_level)?;
        let next_id = header::next_id(file.content());
        let mut catalog = Self {
            file,
            checksum: settings.checksum,
            next_id,
            recordings: Vec::new(),
            set_aside: Vec::new(),
            unfinished: None,
        };
        if let Some(highest) = catalog.read_entries()?.filter(|&highest| next_id <= highest) {
            // Java stores the next id after the entry, and a kill may come between.
            catalog.set_last_id(highest)?;
        }
        let names = storage.names().map_err(CatalogError::io("list the directory"))?;
        catalog.skip_unknown_segments(&names)?;
        catalog.finish_migration(&*storage)?;
        catalog.recover(&*storage, settings)?;
        Ok(catalog)
    }

    /// Returns what is wrong with each recording that the server does not serve, although its entry
    /// is valid: its numbers make no sense, or its files do not tell its end. Its entry and files
    /// stay as they are, and its id is not used again.
    pub(crate) fn set_aside(&self) -> impl Iterator<Item = &CatalogError> {
        self.set_aside.iter().map(|(_, error)| error)
    }

    /// Returns what [`set_aside`](Self::set_aside) has of a recording.
    pub(crate) fn why_set_aside(&self, recording: i64) -> Option<&CatalogError> {
        self.set_aside.iter().find(|(id, _)| *id == recording).map(|(_, error)| error)
    }

    /// Moves the next id above those of segments that no entry has, of which the catalog is an
    /// older copy, or new.
    fn skip_unknown_segments(&mut self, names: &[String]) -> Result<(), CatalogError> {
        let known: HashSet<i64> = self
            .file
            .offsets()
            .map(|offset| i64_at(self.file.entry(offset), RECORDING_ID_OFFSET))
            .collect();
        let id = |name: &str| parse_name(name.strip_suffix(DELETED_SUFFIX).unwrap_or(name));
        let mut unknown: Vec<_> = names
            .iter()
            .filter_map(|name| Some((id(name)?, name)))
            .filter(|((id, _), _)| !known.contains(id))
            .collect();
        unknown.sort();
        let (Some((_, first)), Some(((highest, _), last))) = (unknown.first(), unknown.last())
        else {
            return Ok(());
        };
        if *highest == i64::MAX {
            // The archive serves what it has, and adds no recording.
            self.next_id = i64::MAX;
        } else if self.next_id <= *highest {
            self.set_last_id(*highest)?;
        }
        log::warn!(
            "{CATALOG_NAME} has no recording for {} segments, from {first} to {last}: restore the catalog of their \
             recordings, which is the only one to name their channels. They stay, and ids of recordings go on from {}",
            unknown.len(),
            self.next_id
        );
        Ok(())
    }

    /// Returns the id for a recording of which no segment exists. Files can come while the archive
    /// runs.
    pub(super) fn free_id(&mut self, new: &NewRecording<'_>) -> Result<i64, CatalogError> {
        loop {
            let id = self.next_id;
            let geometry = new.descriptor(id).geometry();
            let name = geometry.name(geometry.first_base());
            let length = self.file.storage().length(&name);
            if length.map_err(CatalogError::io("look for a segment"))?.is_none() {
                return Ok(id);
            }
            log::warn!(
                "{name} exists, and {CATALOG_NAME} has no recording {id}: this id is skipped"
            );
            self.set_last_id(id)?;
        }
    }

    /// Returns the id of the next recording.
    #[cfg(test)]
    pub(crate) fn next_id(&self) -> i64 {
        self.next_id
    }

    /// Returns a valid recording.
    pub(crate) fn get(&self, id: i64) -> Option<&Descriptor> {
        self.recording(id).map(|recording| &recording.descriptor)
    }

    /// Returns the valid recordings from an id on, by ascending id.
    pub(crate) fn descriptors_from(&self, id: i64) -> impl Iterator<Item = &Descriptor> {
        let first = self.recordings.partition_point(|known| known.descriptor.recording_id < id);
        self.recordings[first..].iter().map(|recording| &recording.descriptor)
    }

    /// Returns what the message of a recording descriptor (template 22) has behind session and correlation id: the entry's
    /// bytes from the recording id on, padding included.
    pub(crate) fn descriptor_bytes(&self, id: i64) -> Option<&[u8]> {
        let entry = self.file.entry(self.recording(id)?.offset);
        entry.get(RECORDING_ID_OFFSET..stated_end(entry))
    }

    /// Tells whether a recording's channel, as the client wrote it, contains a text.
    pub(crate) fn channel_contains(&self, id: i64, fragment: &[u8]) -> bool {
        self.recording(id).is_some_and(|recording| self.contains(recording, fragment))
    }

    /// Returns the highest id, `min_id` at least, of a recording that has the session id and the stream id, and whose channel
    /// contains a text.
    pub(crate) fn find_last(
        &self,
        min_id: i64,
        session_id: i32,
        stream_id: i32,
        fragment: &[u8],
    ) -> Option<i64> {
        let is_match = |recording: &&Recording| {
            let descriptor = &recording.descriptor;
            descriptor.session_id == session_id
                && descriptor.stream_id == stream_id
                && self.contains(recording, fragment)
        };
        let first = self.recordings.partition_point(|known| known.descriptor.recording_id < min_id);
        let last = self.recordings[first..].iter().rev().find(is_match)?;
        Some(last.descriptor.recording_id)
    }

    /// Adds an active recording, and returns its id.
    pub(crate) fn add(&mut self, new: NewRecording<'_>, now_ms: i64) -> Result<i64, CatalogError> {
        let descriptor = Descriptor {
            start_timestamp: now_ms,
            stop_timestamp: NULL_TIMESTAMP,
            stop_position: NULL_POSITION,
            ..new.descriptor(self.free_id(&new)?)
        };
        self.append(descriptor, &new.texts())
    }

    /// Adds an entry with the next id, which it returns.
    pub(super) fn append(
        &mut self,
        descriptor: Descriptor,
        texts: &Texts<'_>,
    ) -> Result<i64, CatalogError> {
        let id = descriptor.recording_id;
        let entry = descriptor.to_entry(texts, 0, self.checksum);
        self.file.reserve(entry.len())?;
        // Before the entry: Java refuses a catalog whose last entry has the next id. A failure behind this skips an id.
        self.set_last_id(id)?;
        let offset = self.file.append(&entry)?;
        self.recordings.push(Recording { offset, descriptor });
        Ok(id)
    }

    /// Ends a recording.
    pub(crate) fn set_stopped(
        &mut self,
        id: i64,
        position: i64,
        now_ms: i64,
    ) -> Result<(), CatalogError> {
        self.edit(id, |descriptor| {
            descriptor.stop_position = position;
            descriptor.stop_timestamp = now_ms;
        })
    }

    /// Makes a recording active again, with the image of another session.
    pub(crate) fn set_extended(
        &mut self,
        id: i64,
        control_session_id: i64,
        correlation_id: i64,
        session_id: i32,
    ) -> Result<(), CatalogError> {
        self.edit(id, |descriptor| {
            descriptor.control_session_id = control_session_id;
            descriptor.correlation_id = correlation_id;
            descriptor.stop_timestamp = NULL_TIMESTAMP;
            descriptor.stop_position = NULL_POSITION;
            descriptor.session_id = session_id;
        })
    }

    /// Reads all entries, and returns the highest id, of entries that are not valid, too.
    fn read_entries(&mut self) -> Result<Option<i64>, CatalogError> {
        let mut highest: Option<i64> = None;
        for offset in self.file.offsets() {
            let corrupt = |reason: String| CatalogError::Corrupt { offset, reason };
            let entry = self.file.entry(offset);
            let stated_id = i64_at(entry, RECORDING_ID_OFFSET);
            highest = highest.max(Some(stated_id));
            let read = RecordingState::of(entry).and_then(|state| match state {
                RecordingState::Valid => Descriptor::read(entry).map(Some),
                RecordingState::Invalid | RecordingState::Deleted => Ok(None),
            });
            let descriptor = match read {
                Ok(Some(descriptor)) => descriptor,
                Ok(None) => continue,
                Err(reason) => {
                    self.set_aside.push((stated_id, corrupt(reason)));
                    continue;
                }
            };
            let id = descriptor.recording_id;
            if let Some(last) = self.recordings.last().map(|last| last.descriptor.recording_id) {
                if id <= last {
                    return Err(corrupt(format!("recording {id} follows recording {last}")));
                }
            }
            // Without the setting, entries are changed without their checksums, as by Java's
            // archive.
            if let (Some(_), Err(wrong)) = (self.checksum, check_checksum(entry)) {
                self.set_aside.push((id, CatalogError::Checksum { recording: id, wrong }));
                continue;
            }
            self.recordings.push(Recording { offset, descriptor });
        }
        Ok(highest)
    }

    /// Ends the recordings that an earlier archive left active. One whose end its files do not tell
    /// is set aside.
    fn recover(
        &mut self,
        storage: &dyn Storage,
        settings: &CatalogSettings,
    ) -> Result<(), CatalogError> {
        let descriptors = self.recordings.iter().map(|recording| recording.descriptor);
        let active: Vec<_> = descriptors.filter(Descriptor::is_active).collect();
        if active.is_empty() {
            return Ok(());
        }
        let names = storage.names().map_err(CatalogError::io("list the directory"))?;
        let highest = scan::highest_segments(names);
        for descriptor in active {
            let id = descriptor.recording_id;
            let evidence = Evidence {
                checksum: settings.checksum,
                position: settings.positions.get(&id).copied(),
                is_original: settings.is_original,
            };
            let (base, level) = (highest.get(&id).copied(), settings.file_sync_level);
            let found =
                recovery::find_end(storage, &descriptor, base, evidence, level).and_then(|found| {
                    recovery::keep_doubtful(storage, &descriptor, found, settings.sync_level)
                });
            let found = match found {
                Err(error) if error.endless_recording().is_some() => {
                    self.recordings.retain(|known| known.descriptor.recording_id != id);
                    self.set_aside.push((id, error));
                    continue;
                }
                found => found?,
            };
            scan::repair(storage, &descriptor.geometry(), &found, settings.sync_level)
                .map_err(CatalogError::io("repair a segment"))?;
            self.set_stopped(id, found.end, settings.now_ms)?;
        }
        Ok(())
    }

    fn contains(&self, recording: &Recording, fragment: &[u8]) -> bool {
        let channel = Texts::read(self.file.entry(recording.offset))
            .map_or(&[][..], |texts| texts.original_channel);
        fragment.is_empty() || channel.windows(fragment.len()).any(|window| window == fragment)
    }

    fn recording(&self, id: i64) -> Option<&Recording> {
        self.index(id).map(|index| &self.recordings[index])
    }

    pub(super) fn index(&self, id: i64) -> Option<usize> {
        self.recordings.binary_search_by_key(&id, |known| known.descriptor.recording_id).ok()
    }

    fn set_last_id(&mut self, id: i64) -> Result<(), CatalogError> {
        let next = id
            .checked_add(1)
            .ok_or_else(|| CatalogError::Full(format!("no recording id after {id}")))?;
        self.file.overwrite(NEXT_ID_OFFSET, &next.to_le_bytes())?;
        self.next_id = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rusteron_test_support::Random;

    use super::*;
    use crate::catalog::descriptor::{CHECKSUM_OFFSET, FIXED_LENGTH, STATE_OFFSET};
    use crate::catalog::model::{open, settings};
    use crate::segment::sample;
    use crate::storage::PAGE_LENGTH;
    use crate::storage::faulty::FaultyStorage;

    const NEW: NewRecording<'static> = NewRecording {
        start_position: 0,
        initial_term_id: 7,
        segment_length: 128 << 10,
        term_length: 64 << 10,
        mtu: 1408,
        session_id: 5,
        stream_id: sample::STREAM_ID,
        stripped_channel: "aeron:ipc?alias=b",
        original_channel: "aeron:ipc?alias=a|mtu=1408",
        source_identity: "aeron:ipc",
    };

    /// A catalog with recordings 0 to 2. The first one has stopped.
    fn three_recordings() -> FaultyStorage {
        let storage = FaultyStorage::default();
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        for now_ms in 0..3 {
            catalog.add(NEW, now_ms).expect("a recording");
        }
        catalog.set_stopped(0, 64, 5).expect("an edit");
        storage
    }

    fn content(storage: &FaultyStorage) -> Vec<u8> {
        storage.content(CATALOG_NAME).expect("a catalog")
    }

    fn with_content(content: &[u8]) -> FaultyStorage {
        let storage = FaultyStorage::default();
        let mut file = storage.create(CATALOG_NAME, 0).expect("a file");
        file.write_all_at(content, 0).expect("a write");
        storage
    }

    /// Returns the refusal of a catalog of three recordings with other bytes.
    fn refusal(offset: usize, bytes: &[u8]) -> String {
        let mut content = content(&three_recordings());
        content[offset..][..bytes.len()].copy_from_slice(bytes);
        open(&with_content(&content), &settings()).expect_err("a wrong catalog").to_string()
    }

    const FIRST: usize = 32;
    const SECOND: usize = FIRST + 192;

    #[test]
    fn fragment_is_searched_in_the_original_channel() {
        let storage = three_recordings();
        let catalog = open(&storage, &settings()).expect("a catalog");
        assert!(catalog.channel_contains(0, b"alias=a|mtu"));
        assert!(catalog.channel_contains(0, b""));
        assert!(!catalog.channel_contains(0, b"alias=b"));
        assert!(!catalog.channel_contains(3, b""));
        assert_eq!(catalog.find_last(0, 5, sample::STREAM_ID, b"mtu"), Some(2));
        assert_eq!(catalog.find_last(3, 5, sample::STREAM_ID, b"mtu"), None);
        assert_eq!(catalog.find_last(0, 6, sample::STREAM_ID, b"mtu"), None);
    }

    #[test]
    fn same_edit_changes_no_byte() {
        let storage = three_recordings();
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        let before = content(&storage);
        catalog.set_stopped(0, 64, 5).expect("an edit");
        assert_eq!(content(&storage), before);
    }

    #[test]
    fn entries_that_are_not_valid_are_skipped_and_kept() {
        for state in [0, 2] {
            let mut bytes = content(&three_recordings());
            bytes[SECOND + STATE_OFFSET] = state;
            let storage = with_content(&bytes);
            let mut catalog = open(&storage, &settings()).expect("a catalog");
            assert_eq!(catalog.get(1), None);
            assert_eq!(catalog.descriptor_bytes(1), None);
            assert!(matches!(catalog.set_stopped(1, 0, 0), Err(CatalogError::UnknownRecording(1))));
            assert_eq!(catalog.add(NEW, 0).expect("a recording"), 3);
            assert_eq!(content(&storage)[SECOND..][..192], bytes[SECOND..][..192]);
            let ids: Vec<_> = catalog.descriptors_from(0).map(|known| known.recording_id).collect();
            assert_eq!(ids, [0, 2, 3]);
        }
    }

    #[test]
    fn next_id_is_repaired() {
        for stored in [0_i64, 1, 2] {
            let mut bytes = content(&three_recordings());
            bytes[NEXT_ID_OFFSET..][..8].copy_from_slice(&stored.to_le_bytes());
            let storage = with_content(&bytes);
            assert_eq!(open(&storage, &settings()).expect("a catalog").next_id(), 3);
            assert_eq!(header::next_id(&content(&storage)), 3);
        }
        let mut bytes = content(&three_recordings());
        bytes[NEXT_ID_OFFSET..][..8].copy_from_slice(&i64::MAX.to_le_bytes());
        let mut catalog = open(&with_content(&bytes), &settings()).expect("a catalog");
        assert!(matches!(catalog.add(NEW, 0), Err(CatalogError::Full(_))));
    }

    #[test]
    fn ids_go_on_above_unknown_segments() {
        let segments = ["1-0.rec", "7-131072.rec", "9-0.rec.del", "archive.rec"];
        for (known, added) in [(Some(&three_recordings()), [10, 11]), (None, [10, 11])] {
            let storage =
                known.map_or_else(FaultyStorage::default, |known| with_content(&content(known)));
            for name in segments {
                storage.create(name, 64 << 10).expect("a segment");
            }
            drop(open(&storage, &settings()).expect("a catalog"));
            // Also for Java's archive, which does not look for segments.
            assert_eq!(header::next_id(&content(&storage)), added[0]);
            let mut catalog = open(&storage, &settings()).expect("a catalog");
            for id in added {
                assert_eq!(catalog.add(NEW, 0).expect("a recording"), id);
            }
        }
    }

    #[test]
    fn last_id_of_a_segment_leaves_the_catalog_open() {
        let storage = three_recordings();
        storage.create("9223372036854775807-0.rec", 64 << 10).expect("a segment");
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        assert!(matches!(catalog.add(NEW, 0), Err(CatalogError::Full(_))));
        assert_eq!(catalog.descriptors_from(0).count(), 3);
    }

    /// An operator, or another archive, has put it there since the start.
    #[test]
    fn id_of_a_segment_that_came_is_skipped() {
        let storage = three_recordings();
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        storage.create("3-65536.rec", 64 << 10).expect("a segment");
        let start = NewRecording { start_position: 65_600, ..NEW };
        assert_eq!(catalog.add(start, 0).expect("a recording"), 4);
        storage.create("5-0.rec", 64 << 10).expect("a segment");
        assert_eq!(catalog.add_copy(NEW, 0).expect("a copy"), 6);
    }

    #[test]
    fn corrupt_entries_are_named() {
        let id = refusal(SECOND + RECORDING_ID_OFFSET, &[0]);
        assert!(id.contains("recording 0 follows recording 0"), "{id}");
        let length = refusal(SECOND + 2, &[1]);
        assert!(
            length.contains("an entry of 65728 bytes exceeds the file of 16384 bytes"),
            "{length}"
        );
    }

    #[test]
    fn recordings_between_frames_are_served() {
        let storage = FaultyStorage::default();
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        for start_position in [1, 33, 64] {
            catalog.add(NewRecording { start_position, mtu: 7, ..NEW }, 1).expect("a recording");
        }
        catalog.set_stopped(2, 3, 5).expect("an end before the start");
        let catalog = open(&storage, &settings()).expect("a catalog");
        let edges: Vec<_> = catalog
            .descriptors_from(0)
            .map(|known| (known.start_position, known.stop_position))
            .collect();
        assert_eq!(edges, [(1, 1), (33, 33), (64, 3)]);
        assert_eq!(catalog.set_aside().count(), 0);
    }

    #[test]
    fn impossible_entry_is_set_aside_alone() {
        let reasons = [
            (STATE_OFFSET, 3, "state 3: must be from 0 to 2"),
            (96, 1, "recording 1: term length 65537: must be a power of two"),
            (FIXED_LENGTH + 3, 1, "texts longer than the entry"),
        ];
        for (offset, byte, reason) in reasons {
            let mut bytes = content(&three_recordings());
            bytes[SECOND + offset] = byte;
            let storage = with_content(&bytes);
            let mut catalog = open(&storage, &settings()).expect("a catalog");
            let [error] = catalog.set_aside().collect::<Vec<_>>()[..] else { panic!("{offset}") };
            let text = error.to_string();
            assert!(text.contains(&format!("corrupt at byte 224: {reason}")), "{text}");
            assert_eq!(catalog.get(1), None);
            assert_eq!(catalog.add(NEW, 0).expect("a recording"), 3);
            assert_eq!(content(&storage)[SECOND..][..192], bytes[SECOND..][..192]);
        }
    }

    #[test]
    fn entry_that_its_checksum_contradicts_is_set_aside() {
        const STOP_POSITION: usize = 80;
        let settings = CatalogSettings { checksum: Some(Checksum::Crc32), ..settings() };
        let storage = FaultyStorage::default();
        let mut catalog = open(&storage, &settings).expect("a catalog");
        for id in 0..3 {
            catalog.add(NEW, 1).expect("a recording");
            catalog.set_stopped(id, 640, 2).expect("an edit");
        }
        let mut bytes = content(&storage);
        bytes[SECOND + STOP_POSITION] ^= 0x20;
        let storage = with_content(&bytes);
        let catalog = open(&storage, &settings).expect("a catalog");
        let [error] = catalog.set_aside().collect::<Vec<_>>()[..] else { panic!("one recording") };
        let text = error.to_string();
        assert!(text.contains("recording 1 is not served: catalog checksum="), "{text}");
        assert!(text.contains("`rusteron archive verify 1 --repair`"), "{text}");
        let ids: Vec<_> = catalog.descriptors_from(0).map(|known| known.recording_id).collect();
        assert_eq!(ids, [0, 2]);
        assert_eq!(content(&storage)[SECOND..][..192], bytes[SECOND..][..192]);
        // Another kind of checksum than the one that the archive was configured with before.
        let other = CatalogSettings { checksum: Some(Checksum::Crc32c), ..settings };
        assert_eq!(open(&storage, &other).expect("a catalog").descriptors_from(0).count(), 2);
        // An archive without checksums leaves none that would be wrong.
        let without = CatalogSettings { checksum: None, ..other.clone() };
        let mut catalog = open(&storage, &without).expect("a catalog");
        catalog.set_stopped(0, 64, 3).expect("an edit");
        let catalog = open(&storage, &other).expect("a catalog");
        assert_eq!(catalog.get(0).map(|known| known.stop_position), Some(64));
        assert_eq!(catalog.set_aside().count(), 1);
    }

    /// Java's archive finds ends without a new checksum.
    #[test]
    fn checksum_of_the_active_entry_is_right() {
        let settings = CatalogSettings { checksum: Some(Checksum::Crc32), ..settings() };
        let storage = FaultyStorage::default();
        open(&storage, &settings).and_then(|mut catalog| catalog.add(NEW, 1)).expect("one");
        let checksum = content(&storage)[FIRST + CHECKSUM_OFFSET..][..4].to_vec();
        let mut catalog = open(&storage, &settings).expect("a catalog");
        catalog.set_stopped(0, 640, 2).expect("an edit");
        let mut bytes = content(&storage);
        bytes[FIRST + CHECKSUM_OFFSET..][..4].copy_from_slice(&checksum);
        let catalog = open(&with_content(&bytes), &settings).expect("a catalog");
        assert_eq!(catalog.get(0).map(|known| known.stop_position), Some(640));
    }

    #[test]
    fn hostile_bytes_are_refused_or_served() {
        let mut random = Random::new(31);
        let good = content(&three_recordings());
        for _ in 0..3000 {
            let mut bytes = good.clone();
            bytes.truncate(if random.percent(20) { random.below(700) } else { 4096 });
            for _ in 0..random.below(8) {
                let value = [0, 1, 0x7f, 0x80, 0xff, random.next() as u8][random.below(6)];
                let offset = random.below(bytes.len().min(640));
                if let Some(byte) = bytes.get_mut(offset) {
                    *byte = value;
                }
            }
            let storage = with_content(&bytes);
            let Ok(mut catalog) = open(&storage, &settings()) else { continue };
            let known: Vec<_> = catalog.descriptors_from(i64::MIN).copied().collect();
            for descriptor in &known {
                let id = descriptor.recording_id;
                assert!(catalog.descriptor_bytes(id).is_some());
                catalog.channel_contains(id, b"ipc");
                catalog.set_extended(id, 1, 2, 3).expect("an edit");
                catalog.set_stopped(id, descriptor.start_position, 4).expect("an edit");
                catalog.update_channel(id, "aeron:ipc", "aeron:ipc").expect("an edit");
            }
            catalog.find_last(0, 5, sample::STREAM_ID, b"a");
            if let Ok(id) = catalog.add(NEW, 9) {
                let catalog = open(&storage, &settings()).expect("the catalog again");
                assert_eq!(catalog.descriptors_from(i64::MIN).count(), known.len() + 1);
                assert_eq!(catalog.get(id).map(|added| added.start_timestamp), Some(9));
            }
        }
    }

    #[test]
    fn updated_channel_moves_later_entries() {
        let storage = three_recordings();
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        let third = catalog.descriptor_bytes(2).expect("its bytes").to_vec();
        let channel = format!("aeron:ipc?alias={}", "x".repeat(200));
        catalog.update_channel(1, "aeron:ipc", &channel).expect("an edit");
        assert_eq!(catalog.descriptor_bytes(2), Some(&third[..]));
        assert!(catalog.channel_contains(1, b"xxx"));
        let length = content(&storage).len();
        catalog.update_channel(1, "aeron:ipc", "aeron:ipc").expect("an edit");
        assert_eq!(catalog.descriptor_bytes(1).map(<[u8]>::len), Some(384 - RECORDING_ID_OFFSET));
        assert_eq!(content(&storage).len(), length);
        let again = open(&storage, &settings()).expect("a catalog");
        assert_eq!(again.descriptor_bytes(2), Some(&third[..]));
        assert!(matches!(
            catalog.update_channel(9, "", ""),
            Err(CatalogError::UnknownRecording(9))
        ));
    }

    /// Writes frames into the first segment of the last recording.
    fn write_segment(storage: &FaultyStorage, bytes: &[u8]) {
        let mut file = storage.create("2-0.rec", 128 << 10).expect("a segment");
        file.write_all_at(bytes, 0).expect("a write");
    }

    #[test]
    fn active_recordings_end_at_their_last_frame() {
        for checksum in [None, Some(Checksum::Crc32)] {
            let storage = three_recordings();
            let first = sample::data(b"first", 7, 0);
            let second = sample::data(&[9; 5000], 7, first.len());
            write_segment(&storage, &[&first[..], &second].concat());
            let settings = CatalogSettings { checksum, ..settings() };
            let catalog = open(&storage, &settings).expect("a catalog");
            let end = |id| {
                let known = catalog.get(id).expect("a recording");
                (known.stop_position, known.stop_timestamp)
            };
            assert_eq!(end(0), (64, 5));
            assert_eq!(end(1), (0, settings.now_ms));
            assert_eq!(end(2), ((first.len() + second.len()) as i64, settings.now_ms));
            if let Some(checksum) = checksum {
                let entry = &content(&storage)[SECOND..][..192];
                let expected = checksum.of(&entry[32..]).to_le_bytes();
                assert_eq!(entry[CHECKSUM_OFFSET..][..4], expected);
            }
            assert_eq!(open(&storage, &settings).expect("it again").get(2), catalog.get(2));
        }
    }

    #[test]
    fn torn_frame_is_cut_off() {
        let storage = three_recordings();
        let first = sample::data(b"first", 7, 0);
        let torn = sample::data(&[9; 9000], 7, first.len());
        write_segment(&storage, &[&first[..], &torn].concat()[..PAGE_LENGTH]);
        let catalog = open(&storage, &settings()).expect("a catalog");
        assert_eq!(catalog.get(2).map(|known| known.stop_position), Some(first.len() as i64));
        let segment = storage.content("2-0.rec").expect("the segment");
        assert_eq!(segment.len(), 128 << 10);
        assert!(segment[first.len()..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn doubtful_frame_follows_the_position_of_the_killed_archive() {
        let first = sample::data(b"first", 7, 0);
        let zeros = sample::data(&[0; 9000], 7, first.len());
        let (before, behind) = (first.len() as i64, (first.len() + zeros.len()) as i64);
        // Nothing tells holes where there are none.
        let written = [first, zeros, vec![0; 120 << 10]].concat();
        for (position, expected, is_original) in [
            (before, before, true),
            (behind, behind, true),
            // The position may be that of an earlier copy, so the frame is kept.
            (before, before, false),
            (behind, behind, false),
        ] {
            let storage = three_recordings();
            write_segment(&storage, &written[..128 << 10]);
            let catalog = open(&storage, &settings()).expect("the others");
            let text = catalog.why_set_aside(2).expect("a reason").to_string();
            assert!(text.contains("may be incomplete"), "{text}");
            let positions = HashMap::from([(1, 0), (2, position)]);
            let settings = CatalogSettings { positions, is_original, ..settings() };
            let catalog = open(&storage, &settings).expect("a catalog");
            assert_eq!(catalog.get(2).map(|known| known.stop_position), Some(expected));
            let segment = storage.content("2-0.rec").expect("the segment");
            let end = expected as usize;
            assert!(segment[end..].iter().all(|&byte| byte == 0));
            let kept = storage.content("2-0.rec.del");
            assert_eq!(kept.is_some(), !is_original && expected == before);
            assert!(kept.is_none_or(|kept| kept[end..] == written[end..128 << 10]));
        }
    }

    #[test]
    fn recording_with_an_unclear_end_is_set_aside() {
        let storage = three_recordings();
        let frame = sample::data(b"first", 7, 0);
        let wrong = sample::data(b"first", 9, frame.len());
        write_segment(&storage, &[frame, wrong].concat());
        let before = storage.content("2-0.rec");
        let mut catalog = open(&storage, &settings()).expect("the others");
        assert_eq!(
            catalog.set_aside().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "archive.catalog: the end of recording 2 is unknown: 2-0.rec, position 64: damaged: wrong term id 9: \
              decide by `rusteron archive verify 2 --repair --last-fragment`, `truncate`"
            ]
        );
        assert_eq!(catalog.get(1).map(|known| known.stop_position), Some(0));
        assert_eq!(catalog.get(2), None);
        assert_eq!(catalog.add(NEW, 9).expect("another id"), 3);
        assert_eq!(storage.content("2-0.rec"), before);
    }

    #[test]
    fn unreadable_file_is_refused() {
        let storage = three_recordings();
        storage.fail_reads(Some(std::io::ErrorKind::PermissionDenied));
        let error = open(&storage, &settings()).expect_err("no rights");
        assert!(
            error.to_string().starts_with("archive.catalog: cannot read the file: "),
            "{error}"
        );
        assert!(!error.is_storage_full());
    }
}
