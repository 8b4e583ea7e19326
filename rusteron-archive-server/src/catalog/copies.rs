//! Edits of whole entries: their texts, and copies of another archive's entries.

use crate::catalog::Recording;
use crate::catalog::descriptor::{Descriptor, Texts};
use crate::catalog::{Catalog, CatalogError, NewRecording};
use crate::ids::RecordingId;

impl Catalog {
    /// Adds the entry of a recording of another archive. It is stopped, and empty.
    pub(crate) fn add_copy(
        &mut self,
        source: NewRecording<'_>,
        start_ms: i64,
    ) -> Result<RecordingId, CatalogError> {
        let id = self.free_id(&source)?;
        self.append(copied(&source, id, start_ms), &source.texts())
    }

    /// Makes an empty recording a copy of another archive's, of which nothing is there either.
    pub(crate) fn replace_by_copy(
        &mut self,
        id: RecordingId,
        source: NewRecording<'_>,
        start_ms: i64,
    ) -> Result<(), CatalogError> {
        let index = self.index(id).ok_or(CatalogError::UnknownRecording(id))?;
        let Recording { offset, descriptor: old } = self.recordings[index];
        let new = Descriptor {
            control_session_id: old.control_session_id,
            correlation_id: old.correlation_id,
            ..copied(&source, id, start_ms)
        };
        // Like Java's, the entry does not get shorter.
        let length = self.file.entry(offset).len();
        self.replace_entry(index, &new.to_entry(&source.texts(), length, self.checksum))
    }

    /// Replaces the channels of a recording. Like Java's, its entry does not get shorter.
    pub(crate) fn update_channel(
        &mut self,
        id: RecordingId,
        stripped_channel: &str,
        original_channel: &str,
    ) -> Result<(), CatalogError> {
        let index = self.index(id).ok_or(CatalogError::UnknownRecording(id))?;
        let Recording { offset, descriptor } = self.recordings[index];
        let old = self.file.entry(offset);
        let texts = Texts {
            stripped_channel: stripped_channel.as_bytes(),
            original_channel: original_channel.as_bytes(),
            source_identity: Texts::read(old).map_or(&[][..], |texts| texts.source_identity),
        };
        let entry = descriptor.to_entry(&texts, old.len(), self.checksum);
        self.replace_entry(index, &entry)
    }

    /// Replaces an entry by one that is not shorter.
    fn replace_entry(&mut self, index: usize, entry: &[u8]) -> Result<(), CatalogError> {
        let offset = self.recordings[index].offset;
        let content = self.file.content();
        let behind = offset + self.file.entry(offset).len();
        let (length, behind) = (content.len(), &content[behind..]);
        let content = [&content[..offset], entry, behind].concat();
        let replaced = self.file.replace(content);
        // Also if the file was replaced and only the sync of its name failed.
        let shift = self.file.content().len() - length;
        for recording in self.recordings.iter_mut().filter(|behind| behind.offset > offset) {
            recording.offset += shift;
        }
        if let Ok(descriptor) = Descriptor::read(self.file.entry(offset)) {
            self.recordings[index].descriptor = descriptor;
        }
        replaced
    }
}

fn copied(source: &NewRecording<'_>, id: RecordingId, start_ms: i64) -> Descriptor {
    Descriptor { start_timestamp: start_ms, stop_timestamp: start_ms, ..source.descriptor(id) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::model::{open, settings};
    use crate::segment::checksum::Checksum;
    use crate::storage::faulty::FaultyStorage;

    const SOURCE: NewRecording<'static> = NewRecording {
        start_position: 1024,
        initial_term_id: 7,
        segment_length: 128 << 10,
        term_length: 64 << 10,
        mtu: 1408,
        session_id: 5,
        stream_id: 10,
        stripped_channel: "aeron:ipc?alias=b",
        original_channel: "aeron:ipc?alias=a|mtu=1408",
        source_identity: "aeron:ipc",
    };

    #[test]
    fn copy_is_stopped_and_empty() {
        let storage = FaultyStorage::default();
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        assert_eq!(catalog.add_copy(SOURCE, 4000).expect("a copy"), 0);
        let copy = *catalog.get(0.into()).expect("the copy");
        assert_eq!((copy.start_position, copy.stop_position), (1024, 1024));
        assert_eq!((copy.start_timestamp, copy.stop_timestamp), (4000, 4000));
        assert_eq!(open(&storage, &settings()).expect("it again").get(0.into()), Some(&copy));
    }

    #[test]
    fn empty_recording_becomes_a_copy() {
        for checksum in [None, Some(Checksum::Crc32)] {
            let storage = FaultyStorage::default();
            let settings = crate::catalog::CatalogSettings { checksum, ..settings() };
            let mut catalog = open(&storage, &settings).expect("a catalog");
            for _ in 0..2 {
                catalog.add(NewRecording { source_identity: "x", ..SOURCE }, 1).expect("an entry");
            }
            catalog.set_extended(0.into(), 55.into(), 66.into(), 5).expect("an edit");
            catalog.set_stopped(0.into(), 1024, 2).expect("an edit");
            let second = catalog.descriptor_bytes(1.into()).expect("its bytes").to_vec();
            let channel = format!("aeron:ipc?alias={}", "y".repeat(300));
            let source = NewRecording {
                start_position: 64,
                term_length: 128 << 10,
                original_channel: &channel,
                ..SOURCE
            };
            catalog.replace_by_copy(0.into(), source, 4000).expect("a copy");
            for catalog in [&catalog, &open(&storage, &settings).expect("it again")] {
                let copy = *catalog.get(0.into()).expect("the copy");
                assert_eq!((copy.start_position, copy.stop_position), (64, 64));
                assert_eq!((copy.term_length, copy.start_timestamp), (128 << 10, 4000));
                assert_eq!((copy.control_session_id, copy.correlation_id), (55, 66));
                assert!(catalog.channel_contains(0.into(), b"yyy"));
            }
            assert_eq!(catalog.descriptor_bytes(1.into()), Some(&second[..]));
            let unknown = catalog.replace_by_copy(9.into(), SOURCE, 1);
            assert!(matches!(unknown, Err(CatalogError::UnknownRecording(id)) if id == 9));
        }
    }
}
