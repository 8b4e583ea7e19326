//! Migrations: the segments of one recording become those of another one.
//!
//! A migration renames files and edits two entries. A crash in between would leave both recordings with edges where there
//! are no files. So a record of the intent is in the directory first, and the next start finishes what it says. Java's
//! archive ignores the file.

use std::io;

use crate::catalog::{Catalog, CatalogError, Descriptor};
use crate::ids::RecordingId;
use crate::segment::Geometry;
use crate::segment::checksum::Checksum;
use crate::storage::{Storage, SyncLevel};

pub(crate) const INTENT_NAME: &str = "archive-migration.intent";
const MAGIC: [u8; 8] = *b"MIGRATE1";
const LENGTH: usize = MAGIC.len() + 5 * size_of::<i64>() + size_of::<i32>();

/// The segments of `source` become those of `destination`, which begins where they end, or ends where they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Migration {
    pub(crate) source: RecordingId,
    pub(crate) destination: RecordingId,
    /// The edges of the source before. Then it ends where it begins.
    pub(crate) source_start: i64,
    pub(crate) source_stop: i64,
    /// The edge of the destination before: one of the two.
    pub(crate) join: i64,
}

/// The state of a segment that is being moved, as the directory shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Source,
    Destination,
    Both,
    Neither,
}

impl Migration {
    fn is_in_front(&self) -> bool {
        self.join == self.source_stop
    }

    /// The edge of the destination that moves.
    fn edge(&self, destination: &Descriptor) -> i64 {
        if self.is_in_front() { destination.start_position } else { destination.stop_position }
    }

    /// Where the edge of the destination moves to.
    fn new_edge(&self) -> i64 {
        if self.is_in_front() { self.source_start } else { self.source_stop }
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let fields = [
            self.source.get(),
            self.destination.get(),
            self.source_start,
            self.source_stop,
            self.join,
        ];
        fields.iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
        let checksum = Checksum::Crc32.of(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a record. Without a result, a crash came before it was complete, and so before the first rename.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let (content, checksum) = bytes.split_last_chunk()?;
        let fields = content.strip_prefix(&MAGIC)?;
        if Checksum::Crc32.of(content) != i32::from_le_bytes(*checksum) {
            return None;
        }
        let mut fields = fields.chunks_exact(8).map(|field| {
            let mut number = [0; 8];
            number.copy_from_slice(field);
            i64::from_le_bytes(number)
        });
        Some(Self {
            source: RecordingId::new(fields.next()?),
            destination: RecordingId::new(fields.next()?),
            source_start: fields.next()?,
            source_stop: fields.next()?,
            join: fields.next()?,
        })
    }

    /// Returns the bases of the segments that have frames, by the source's geometry.
    pub(crate) fn bases(&self, geometry: &Geometry) -> impl Iterator<Item = i64> {
        let geometry = Geometry { start_position: self.source_start, ..*geometry };
        let (length, stop) = (i64::from(geometry.segment_length), self.source_stop);
        std::iter::successors(Some(geometry.first_base()), move |base| base.checked_add(length))
            .take_while(move |&base| base < stop)
    }

    /// Tells whether the record is of the catalog as it is: the edges are still those of before, or those of after.
    fn fits(&self, source: &Descriptor, destination: &Descriptor) -> bool {
        let edge = self.edge(destination);
        source.start_position == self.source_start
            && [self.source_stop, self.source_start].contains(&source.stop_position)
            && [self.join, self.new_edge()].contains(&edge)
    }
}

fn place(storage: &dyn Storage, source: &str, destination: &str) -> io::Result<Place> {
    Ok(match (storage.length(source)?, storage.length(destination)?) {
        (Some(_), None) => Place::Source,
        (None, Some(_)) => Place::Destination,
        (Some(_), Some(_)) => Place::Both,
        (None, None) => Place::Neither,
    })
}

impl Catalog {
    /// Moves the segments, then the edges of both recordings. After an error, everything is as before, or the text says that
    /// it is not yet: then [`settle`](Self::settle) tries again, and the next start of the archive finishes the migration.
    ///
    /// The caller has checked that each of the segments has the source's name only.
    pub(crate) fn migrate(
        &mut self,
        storage: &dyn Storage,
        migration: &Migration,
    ) -> Result<(), String> {
        self.undo(storage)?;
        self.unfinished = Some(*migration);
        let written = self.write_intent(storage, migration);
        let written = written.map_err(|error| format!("cannot write {INTENT_NAME}: {error}"));
        let Err(text) = written.and_then(|()| self.complete(storage, migration)) else {
            self.unfinished = None;
            if let Err(error) = self.remove_intent(storage) {
                // It says nothing that is not so already.
                log::warn!("{INTENT_NAME}: cannot be removed: {error}");
            }
            return Ok(());
        };
        Err(match self.undo(storage) {
            Ok(()) => text,
            Err(error) => format!(
                "{text}, nor undo it: {error}: the next request for one of the two tries again"
            ),
        })
    }

    /// Undoes a migration of this recording that could not be undone before. As long as that fails, segments of each of the
    /// two may have the name of the other one.
    pub(crate) fn settle(&mut self, storage: &dyn Storage, id: RecordingId) -> Result<(), String> {
        match self.unfinished {
            Some(unfinished) if [unfinished.source, unfinished.destination].contains(&id) => self
                .undo(storage)
                .map_err(|error| format!("an earlier migration cannot be undone: {error}")),
            _ => Ok(()),
        }
    }

    /// Finishes a migration that a crash has interrupted.
    pub(super) fn finish_migration(&mut self, storage: &dyn Storage) -> Result<(), CatalogError> {
        let io = CatalogError::io("finish a migration");
        let Some(length) = storage.length(INTENT_NAME).map_err(&io)? else { return Ok(()) };
        let mut bytes = vec![0; LENGTH + 1];
        let read = storage.open(INTENT_NAME).and_then(|file| file.read_at(&mut bytes, 0));
        bytes.truncate(read.map_err(&io)?);
        let migration = Migration::from_bytes(&bytes).filter(|_| length == LENGTH as u64);
        if let Some(migration) = migration {
            if self.is_pending(storage, &migration)? {
                self.complete(storage, &migration).map_err(|reason| CatalogError::Recovery {
                    recording: migration.source,
                    reason,
                })?;
                log::info!("{INTENT_NAME}: {migration:?} has been finished");
            } else {
                log::warn!("{INTENT_NAME}: {migration:?} does not fit the catalog, and is dropped");
            }
        }
        self.remove_intent(storage).map_err(&io)
    }

    /// Tells whether the record is of this catalog and of these files. Another archive may have used the directory since.
    fn is_pending(
        &self,
        storage: &dyn Storage,
        migration: &Migration,
    ) -> Result<bool, CatalogError> {
        let (Some(source), Some(destination)) =
            (self.get(migration.source), self.get(migration.destination))
        else {
            return Ok(false);
        };
        if !migration.fits(source, destination) {
            return Ok(false);
        }
        // The source's edge is the last one to move.
        let is_finished = source.stop_position == migration.source_start;
        let (source, destination) = (source.geometry(), destination.geometry());
        for base in migration.bases(&source) {
            let names = [source.name(base), destination.name(base)];
            match place(storage, &names[0], &names[1])
                .map_err(CatalogError::io("finish a migration"))?
            {
                Place::Source | Place::Destination => {}
                Place::Both => return Ok(false),
                // It was finished, and deleted since.
                Place::Neither if is_finished => return Ok(false),
                Place::Neither => {
                    let reason = format!(
                        "a migration was interrupted, and neither {} nor {} is there: restore it, or remove \
                         {INTENT_NAME}",
                        names[0], names[1]
                    );
                    return Err(CatalogError::Recovery { recording: migration.source, reason });
                }
            }
        }
        Ok(true)
    }

    /// Does what is left to do, in any state of a migration.
    fn complete(&mut self, storage: &dyn Storage, migration: &Migration) -> Result<(), String> {
        self.move_segments(storage, migration, Place::Source)?;
        self.move_edge(migration, migration.new_edge())?;
        self.set_stop_position(migration.source, migration.source_start)
            .map_err(|error| error.to_string())
    }

    /// Does the reverse if a migration is unfinished. The source's edge was the last one to move, so it has not.
    fn undo(&mut self, storage: &dyn Storage) -> Result<(), String> {
        let Some(migration) = self.unfinished else { return Ok(()) };
        self.move_edge(&migration, migration.join)?;
        self.move_segments(storage, &migration, Place::Destination)?;
        self.remove_intent(storage).map_err(|error| format!("{INTENT_NAME}: {error}"))?;
        self.unfinished = None;
        Ok(())
    }

    fn move_edge(&mut self, migration: &Migration, edge: i64) -> Result<(), String> {
        let id = migration.destination;
        // Also if it is there already: a failed edit may have left another one in the file.
        let moved = match migration.is_in_front() {
            true => self.set_start_position(id, edge),
            false => self.set_stop_position(id, edge),
        };
        moved.map_err(|error| error.to_string())
    }

    /// Renames those segments that are still in a place.
    fn move_segments(
        &self,
        storage: &dyn Storage,
        migration: &Migration,
        from: Place,
    ) -> Result<(), String> {
        let geometry = |id| self.get(id).map(Descriptor::geometry);
        let (Some(source), Some(destination)) =
            (geometry(migration.source), geometry(migration.destination))
        else {
            return Ok(());
        };
        for base in migration.bases(&source) {
            let (source, destination) = (source.name(base), destination.name(base));
            let [old, new] = match from {
                Place::Source => [&source, &destination],
                _ => [&destination, &source],
            };
            let failed = |error| {
                let [old, new] = [old, new].map(|name| storage.path(name));
                format!("failed to rename {old} to {new}: {error}")
            };
            if place(storage, &source, &destination).map_err(failed)? == from {
                storage.rename(old, new).map_err(failed)?;
            }
        }
        self.sync_names(storage).map_err(|error| format!("failed to sync the directory: {error}"))
    }

    /// Makes changes of names durable, as far as those of the catalog are.
    pub(crate) fn sync_names(&self, storage: &dyn Storage) -> io::Result<()> {
        if self.sync_level() == SyncLevel::None { Ok(()) } else { storage.sync_dir() }
    }

    fn write_intent(&self, storage: &dyn Storage, migration: &Migration) -> io::Result<()> {
        // Of a migration that has succeeded.
        self.remove_intent(storage)?;
        let mut file = storage.create(INTENT_NAME, 0)?;
        file.write_all_at(&migration.to_bytes(), 0)?;
        file.sync(self.sync_level())?;
        self.sync_names(storage)
    }

    fn remove_intent(&self, storage: &dyn Storage) -> io::Result<()> {
        if storage.length(INTENT_NAME)?.is_some() {
            storage.remove(INTENT_NAME)?;
        }
        self.sync_names(storage)
    }
}

#[cfg(test)]
mod tests;
