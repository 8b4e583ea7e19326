//! Files that another archive, or a crash, has left.

use std::collections::HashMap;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use crate::catalog::{Catalog, CatalogSettings, Descriptor, NewRecording};
use crate::context::ArchiveServerContext;
use crate::mark_file::MarkFile;
use crate::offline::{ArchiveFiles, VerifyOptions};
use crate::segment::Geometry;
use crate::segment::block::BlockCheck;
use crate::segment::checksum::Checksum;
use crate::segment::frame::FrameCheck;
use crate::segment::scan::{self, Evidence, Tail};
use crate::storage::faulty::FaultyStorage;
use crate::storage::{Storage, SyncLevel};

const CHECKSUMS: [Option<Checksum>; 3] = [None, Some(Checksum::Crc32), Some(Checksum::Crc32c)];
const TERM_LENGTH: i32 = 64 << 10;
const SEGMENT_LENGTH: i32 = 128 << 10;

fn add_file(storage: &dyn Storage, name: &str, bytes: &[u8]) {
    let mut file = storage.create(name, bytes.len() as u64).expect("a file");
    file.write_all_at(bytes, 0).expect("a write");
}

/// A choice, the length of a segment of recording 0, the segment, and a catalog: opened, edited, opened again.
pub fn catalog(bytes: &[u8]) {
    let Some((&[choice, low, high], rest)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
    let (segment, content) = rest.split_at(length);
    let storage = FaultyStorage::default();
    add_file(&storage, "archive.catalog", content);
    if !segment.is_empty() {
        add_file(&storage, "0-0.rec", segment);
    }
    let shared: Arc<FaultyStorage> = Arc::new(storage.clone());
    if let Ok(files) = ArchiveFiles::from_storage(shared.clone(), HashMap::new(), choice < 128) {
        let mut options = VerifyOptions::default();
        options.all_segments = true;
        options.checksum = CHECKSUMS[usize::from(choice) % 3];
        for recording in files.recordings() {
            black_box(files.verify(recording, &options));
        }
        black_box((files.compaction(), files.unknown_segments()));
        files.orphaned_segments(None).expect("segments of all recordings");
    }
    let settings = CatalogSettings {
        capacity: 256,
        sync_level: SyncLevel::None,
        file_sync_level: SyncLevel::None,
        checksum: CHECKSUMS[usize::from(choice) % 3],
        now_ms: 9,
        positions: HashMap::new(),
        is_original: choice < 128,
    };
    let open = || Catalog::open(shared.clone(), &settings);
    let mut catalog = match open() {
        Ok(catalog) => catalog,
        Err(error) => {
            black_box(error.to_string());
            return;
        }
    };
    let known: Vec<Descriptor> = catalog.descriptors_from(i64::MIN.into()).copied().collect();
    for descriptor in &known {
        let id = descriptor.recording_id;
        assert!(!descriptor.is_active(), "the end was not found");
        assert!(catalog.descriptor_bytes(id).is_some_and(|bytes| bytes.len() >= 80 - 16));
        black_box((catalog.channel_contains(id, b"ipc"), descriptor.geometry().check().is_ok()));
        black_box(catalog.find_last(
            0.into(),
            descriptor.session_id,
            descriptor.stream_id,
            b"aeron",
        ));
    }
    let new = NewRecording {
        start_position: 0,
        initial_term_id: 7,
        segment_length: SEGMENT_LENGTH,
        term_length: TERM_LENGTH,
        mtu: 1408,
        session_id: 5,
        stream_id: 10,
        stripped_channel: "aeron:ipc",
        original_channel: "aeron:ipc?alias=a",
        source_identity: "aeron:ipc",
    };
    if let Ok(id) = catalog.add(new, 10) {
        assert!(known.iter().all(|known| known.recording_id < id));
        catalog.set_stopped(id, 0, 11).expect("an edit");
    }
    for descriptor in &known {
        let Descriptor { recording_id, start_position, stop_position, .. } = *descriptor;
        catalog.set_extended(recording_id, 1.into(), 2.into(), 3).expect("an edit");
        catalog.set_stopped(recording_id, stop_position, 12).expect("an edit");
        catalog.set_stop_position(recording_id, start_position).expect("an edit");
        catalog.set_start_position(recording_id, start_position).expect("an edit");
        if recording_id.get() % 2 == 1 {
            catalog.delete(recording_id).expect("an edit");
        }
    }
    let descriptors = |catalog: &Catalog| -> Vec<Descriptor> {
        catalog.descriptors_from(i64::MIN.into()).copied().collect()
    };
    let after = descriptors(&catalog);
    let again = open().expect("a catalog that was open before");
    assert_eq!(descriptors(&again), after);
}

/// Choices, and a segment: its end, repaired, and its blocks on their way to a replay.
pub fn segment(bytes: &[u8]) {
    let Some((&[choice, base, start, stream], content)) = bytes.split_first_chunk() else { return };
    let geometry = Geometry {
        recording_id: 0.into(),
        start_position: i64::from(start) * 32,
        initial_term_id: 7,
        term_length: TERM_LENGTH,
        segment_length: SEGMENT_LENGTH,
        stream_id: stream.into(),
    };
    let base = i64::from(base % 3) * i64::from(SEGMENT_LENGTH);
    let storage = FaultyStorage::default();
    add_file(&storage, &geometry.name(base), content);
    let checksum = CHECKSUMS[usize::from(choice) % 3];
    let evidence = Evidence { checksum, position: None, is_original: choice < 128 };
    let find = || scan::find_end(&storage, &geometry, Some(base), evidence).expect("an end");
    let found = find();
    assert!(found.end >= geometry.start_position);
    if matches!(found.tail, Tail::Clean | Tail::Torn) {
        scan::repair(&storage, &geometry, &found, SyncLevel::None).expect("a repaired segment");
        let again = find();
        assert_eq!((again.end, again.tail), (found.end, Tail::Clean));
    }
    let check = BlockCheck {
        recorded: FrameCheck { max_data_length: 1408, ..geometry.frame_check() },
        session_id: 11,
        stream_id: 12,
        checksum,
    };
    let mut block = content.to_vec();
    let limit = block.len();
    let first_length = block.first_chunk().copied().unwrap_or_default();
    if let Ok(checked) = check.check(first_length, &mut block, limit, 7, 0) {
        assert!(checked.data_length <= block.len());
        assert!(checked.padding_length.is_none_or(|length| length <= TERM_LENGTH as usize));
        let rest = checked.data_length..;
        assert_eq!(block[rest.clone()], content[rest]);
    }
}

/// A mark file, which a server takes over. The directory is one for this process.
pub fn mark_file(bytes: &[u8], dir: &Path) {
    let path = dir.join("archive-mark.dat");
    fs::create_dir_all(dir).expect("a directory");
    fs::write(&path, bytes).expect("a file");
    let mut settings = ArchiveServerContext::new();
    settings
        .set_archive_dir(dir)
        .and_then(|it| it.set_control_channel("aeron:udp?endpoint=localhost:8010"))
        .expect("settings");
    match MarkFile::activate(&settings, dir, 5, 4096) {
        Ok(file) => {
            file.ready();
            file.record_error("an error");
        }
        Err(error) => {
            black_box(error.to_string());
        }
    }
    fs::remove_dir_all(dir).expect("a directory that is not in use");
}
