//! The catalog: what the archive knows of its recordings.

mod copies;
mod descriptor;
mod edges;
mod entries;
mod error;
mod file;
mod header;
mod migration;
pub(crate) mod recovery;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use descriptor::RecordingState;
pub(crate) use descriptor::{Descriptor, NULL_POSITION};
pub use entries::RecordingEntry;
pub(crate) use entries::{Entries, EntryOffset};
pub(crate) use error::CatalogError;
pub(crate) use file::CATALOG_NAME;
pub(crate) use migration::{INTENT_NAME, Migration};

use crate::catalog::descriptor::{
    NULL_TIMESTAMP, RECORDING_ID_OFFSET, Texts, check_checksum, stated_end, stated_id,
};
use crate::catalog::file::CatalogFile;
use crate::catalog::header::NEXT_ID_OFFSET;
use crate::ids::{ControlSessionId, CorrelationId, RecordingId};
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
    /// The level for segment files.
    pub(crate) file_sync_level: SyncLevel,
    /// The checksum of recorded frames and of entries.
    pub(crate) checksum: Option<Checksum>,
    /// The time at which recordings end that an earlier archive left active, in milliseconds since
    /// 1970.
    pub(crate) now_ms: i64,
    /// The positions that recordings had when that archive was killed, by id, as far as they are
    /// known for certain.
    pub(crate) positions: HashMap<RecordingId, i64>,
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
    fn descriptor(&self, id: RecordingId) -> Descriptor {
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

    /// Checks what arithmetic on positions depends on, of a recording that another archive
    /// describes.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.descriptor(RecordingId::new(0)).check()
    }

    fn texts(&self) -> Texts<'a> {
        Texts {
            stripped_channel: self.stripped_channel.as_bytes(),
            original_channel: self.original_channel.as_bytes(),
            source_identity: self.source_identity.as_bytes(),
        }
    }
}

/// The recordings of an archive. An edit is in the file when its method returns, and durable as far
/// as the settings ask for it. After a failed edit, the catalog is as before.
#[derive(Debug)]
pub(crate) struct Catalog {
    file: CatalogFile,
    checksum: Option<Checksum>,
    next_id: RecordingId,
    /// Valid recordings, by ascending id.
    recordings: Vec<Recording>,
    /// Why valid recordings are not served, by the ids that their entries have: see
    /// [`set_aside`](Self::set_aside).
    set_aside: Vec<(RecordingId, CatalogError)>,
    /// A migration that neither succeeded nor could be undone.
    unfinished: Option<Migration>,
}

#[derive(Debug, Clone, Copy)]
struct Recording {
    /// Where its entry begins in the file, in bytes.
    offset: usize,
    descriptor: Descriptor,
}

impl Catalog {
    /// Opens the catalog of a directory, or makes one. Recordings without an end get the one that
    /// their frames tell.
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
    pub(crate) fn why_set_aside(&self, recording: RecordingId) -> Option<&CatalogError> {
        self.set_aside.iter().find(|(id, _)| *id == recording).map(|(_, error)| error)
    }

    /// Moves the next id above those of segments that no entry has, of which the catalog is an
    /// older copy, or new.
    fn skip_unknown_segments(&mut self, names: &[String]) -> Result<(), CatalogError> {
        let known: HashSet<RecordingId> =
            self.file.offsets().map(|offset| stated_id(self.file.entry(offset))).collect();
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
        if highest.get() == i64::MAX {
            // The archive serves what it has, and adds no recording.
            self.next_id = *highest;
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
    fn free_id(&mut self, new: &NewRecording<'_>) -> Result<RecordingId, CatalogError> {
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
    pub(crate) fn next_id(&self) -> RecordingId {
        self.next_id
    }

    /// Returns a valid recording.
    pub(crate) fn get(&self, id: RecordingId) -> Option<&Descriptor> {
        self.recording(id).map(|recording| &recording.descriptor)
    }

    /// Returns the valid recordings from an id on, by ascending id.
    pub(crate) fn descriptors_from(&self, id: RecordingId) -> impl Iterator<Item = &Descriptor> {
        let first = self.recordings.partition_point(|known| known.descriptor.recording_id < id);
        self.recordings[first..].iter().map(|recording| &recording.descriptor)
    }

    /// Returns what the message of a recording descriptor (template 22) has behind session and
    /// correlation id: the entry's bytes from the recording id on, padding included.
    pub(crate) fn descriptor_bytes(&self, id: RecordingId) -> Option<&[u8]> {
        let entry = self.file.entry(self.recording(id)?.offset);
        entry.get(RECORDING_ID_OFFSET..stated_end(entry))
    }

    /// Tells whether a recording's channel, as the client wrote it, contains a text.
    pub(crate) fn channel_contains(&self, id: RecordingId, fragment: &[u8]) -> bool {
        self.recording(id).is_some_and(|recording| self.contains(recording, fragment))
    }

    /// Returns the highest id, `min_id` at least, of a recording that has the session id and the
    /// stream id, and whose channel contains a text.
    pub(crate) fn find_last(
        &self,
        min_id: RecordingId,
        session_id: i32,
        stream_id: i32,
        fragment: &[u8],
    ) -> Option<RecordingId> {
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
    pub(crate) fn add(
        &mut self,
        new: NewRecording<'_>,
        now_ms: i64,
    ) -> Result<RecordingId, CatalogError> {
        let descriptor = Descriptor {
            start_timestamp: now_ms,
            stop_timestamp: NULL_TIMESTAMP,
            stop_position: NULL_POSITION,
            ..new.descriptor(self.free_id(&new)?)
        };
        self.append(descriptor, &new.texts())
    }

    /// Adds an entry with the next id, which it returns.
    fn append(
        &mut self,
        descriptor: Descriptor,
        texts: &Texts<'_>,
    ) -> Result<RecordingId, CatalogError> {
        let id = descriptor.recording_id;
        let entry = descriptor.to_entry(texts, 0, self.checksum);
        self.file.reserve(entry.len())?;
        // Before the entry: Java refuses a catalog whose last entry has the next id. A failure
        // behind this skips an id.
        self.set_last_id(id)?;
        let offset = self.file.append(&entry)?;
        self.recordings.push(Recording { offset, descriptor });
        Ok(id)
    }

    /// Ends a recording.
    pub(crate) fn set_stopped(
        &mut self,
        id: RecordingId,
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
        id: RecordingId,
        control_session_id: ControlSessionId,
        correlation_id: CorrelationId,
        session_id: i32,
    ) -> Result<(), CatalogError> {
        self.edit(id, |descriptor| {
            descriptor.control_session_id = control_session_id.get();
            descriptor.correlation_id = correlation_id.get();
            descriptor.stop_timestamp = NULL_TIMESTAMP;
            descriptor.stop_position = NULL_POSITION;
            descriptor.session_id = session_id;
        })
    }

    /// Reads all entries, and returns the highest id, of entries that are not valid, too.
    fn read_entries(&mut self) -> Result<Option<RecordingId>, CatalogError> {
        let mut highest: Option<RecordingId> = None;
        for offset in self.file.offsets() {
            let corrupt = |reason: String| CatalogError::Corrupt { offset, reason };
            let entry = self.file.entry(offset);
            let stated_id = stated_id(entry);
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

    fn recording(&self, id: RecordingId) -> Option<&Recording> {
        self.index(id).map(|index| &self.recordings[index])
    }

    fn index(&self, id: RecordingId) -> Option<usize> {
        self.recordings.binary_search_by_key(&id, |known| known.descriptor.recording_id).ok()
    }

    fn set_last_id(&mut self, id: RecordingId) -> Result<(), CatalogError> {
        let next = id
            .get()
            .checked_add(1)
            .ok_or_else(|| CatalogError::Full(format!("no recording id after {id}")))?;
        self.file.overwrite(NEXT_ID_OFFSET, &next.to_le_bytes())?;
        self.next_id = RecordingId::new(next);
        Ok(())
    }
}
