use std::io;

use super::*;
use crate::catalog::NewRecording;
use crate::catalog::model::{open, settings};
use crate::segment::geometry::segment_name;
use crate::storage::faulty::{Change, FaultyStorage};

const TERM: i32 = 64 << 10;
const SEGMENT: i64 = 128 << 10;
/// The recording with the earlier frames, and the one with the later ones.
const FIRST: i64 = 0;
const SECOND: i64 = 1;
const BORDER: i64 = 2 * SEGMENT;
const END: i64 = 3 * SEGMENT + 64;

/// Two recordings, of which the second begins where the first ends. Each segment has its base in it.
fn recordings(level: SyncLevel) -> FaultyStorage {
    let storage = FaultyStorage::default();
    let mut catalog = open(&storage, &at(level)).expect("a catalog");
    for (start, end) in [(32, BORDER), (BORDER, END)] {
        let new = NewRecording {
            start_position: start,
            initial_term_id: 7,
            segment_length: SEGMENT as i32,
            term_length: TERM,
            mtu: 1408,
            session_id: 5,
            stream_id: 10,
            stripped_channel: "aeron:ipc",
            original_channel: "aeron:ipc",
            source_identity: "aeron:ipc",
        };
        let id = catalog.add(new, 1).expect("a recording");
        catalog.set_stopped(id, end, 2).expect("an edit");
        let geometry = catalog.get(id).expect("a recording").geometry();
        let mut base = geometry.first_base();
        while base < end {
            let name = geometry.name(base);
            let mut file = storage.create(&name, SEGMENT as u64).expect("a segment");
            file.write_all_at(&base.to_le_bytes(), 0).expect("a write");
            file.sync(level).expect("a sync");
            base += SEGMENT;
        }
    }
    storage.sync_dir().expect("a sync");
    storage
}

fn at(level: SyncLevel) -> crate::catalog::CatalogSettings {
    crate::catalog::CatalogSettings { sync_level: level, ..settings() }
}

/// In front of the second, or behind the first.
fn migrations() -> [Migration; 2] {
    [
        Migration {
            source: FIRST.into(),
            destination: SECOND.into(),
            source_start: 32,
            source_stop: BORDER,
            join: BORDER,
        },
        Migration {
            source: SECOND.into(),
            destination: FIRST.into(),
            source_start: BORDER,
            source_stop: END,
            join: BORDER,
        },
    ]
}

/// Checks that no edge is where there is no file, and returns whether the migration has happened.
fn check(storage: &FaultyStorage, level: SyncLevel, migration: &Migration, context: &str) -> bool {
    let catalog = open(storage, &at(level)).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(storage.length(INTENT_NAME).expect("a length"), None, "{context}");
    let has_frames = |it: &&Descriptor| it.start_position < it.stop_position;
    for descriptor in catalog.descriptors_from(0.into()).filter(has_frames) {
        let geometry = descriptor.geometry();
        let mut base = geometry.first_base();
        while base < descriptor.stop_position {
            let content = storage.content(&geometry.name(base));
            let content = content.unwrap_or_else(|| panic!("{context}: {descriptor:?}: {base}"));
            assert_eq!(content[..8], base.to_le_bytes(), "{context}");
            base += SEGMENT;
        }
    }
    let edges = |id| {
        let descriptor = catalog.get(id).expect("a recording");
        (descriptor.start_position, descriptor.stop_position)
    };
    let has_moved = edges(migration.destination) == (32, END);
    let stop = if has_moved { migration.source_start } else { migration.source_stop };
    assert_eq!(edges(migration.source), (migration.source_start, stop), "{context}");
    has_moved
}

#[test]
fn failure_of_any_change_is_undone_or_finished_later() {
    for migration in migrations() {
        for level in [SyncLevel::None, SyncLevel::Data] {
            for failing in 0..20 {
                let storage = recordings(level);
                let mut catalog = open(&storage, &at(level)).expect("a catalog");
                storage.fail_after(failing, io::ErrorKind::PermissionDenied);
                let outcome = catalog.migrate(&storage, &migration);
                storage.fail_after(usize::MAX, io::ErrorKind::Other);
                let context = format!("{failing}: {outcome:?}");
                if let Err(text) = &outcome {
                    assert!(text.contains("permission denied"), "{text}");
                    assert!(!text.contains("nor undo it"), "{text}");
                }
                let has_moved =
                    check(&storage.after_kill(storage.log().len(), 0), level, &migration, &context);
                assert_eq!(has_moved, outcome.is_ok(), "{context}");
                let again = catalog.migrate(&storage, &migration);
                assert!(outcome.is_ok() || again.is_ok(), "{context}: {again:?}");
            }
        }
    }
}

#[test]
fn storage_that_stops_leaves_all_or_nothing() {
    for migration in migrations() {
        for last in 0..20 {
            let storage = recordings(SyncLevel::None);
            let mut catalog = open(&storage, &settings()).expect("a catalog");
            storage.stop_after(last);
            let outcome = catalog.migrate(&storage, &migration);
            let context = format!("{last}: {outcome:?}");
            if outcome.is_err() {
                let refusal = catalog.migrate(&storage, &migration).expect_err("a stopped storage");
                assert!(refusal.contains("has stopped"), "{refusal}");
            }
            let killed = storage.after_kill(storage.log().len(), 0);
            check(&killed, SyncLevel::None, &migration, &context);
            storage.resume();
            for id in [FIRST, SECOND] {
                assert_eq!(catalog.settle(&storage, id.into()), Ok(()), "{context}");
            }
            if outcome.is_err() {
                let undone = storage.after_kill(storage.log().len(), 0);
                assert!(!check(&undone, SyncLevel::None, &migration, &context), "{context}");
                catalog.migrate(&storage, &migration).expect("a migration");
            }
        }
    }
}

/// Otherwise a kill while a migration is being finished would leave half of it.
#[test]
fn recovery_removes_the_intent_last() {
    for migration in migrations() {
        let storage = recordings(SyncLevel::None);
        let mut file = storage.create(INTENT_NAME, 0).expect("a file");
        file.write_all_at(&migration.to_bytes(), 0).expect("a write");
        let before = storage.changes();
        open(&storage, &settings()).expect("a catalog");
        let is_removal = |it: &Change| matches!(it, Change::Remove { name } if name == INTENT_NAME);
        let log = &storage.log()[before..];
        let removal = log.iter().position(is_removal).expect("a removal");
        let is_sync = |it: &Change| matches!(it, Change::Sync { .. } | Change::SyncDir);
        assert!(removal > 3 && log[removal + 1..].iter().all(is_sync), "{log:?}");
    }
}

#[test]
fn intent_of_other_files_is_dropped() {
    let [migration, _] = migrations();
    let intents = [
        Migration { source_stop: BORDER - 32, join: BORDER - 32, ..migration },
        Migration { source: 9.into(), ..migration },
        Migration { destination: 9.into(), ..migration },
    ];
    for intent in intents {
        let storage = recordings(SyncLevel::None);
        let mut file = storage.create(INTENT_NAME, 0).expect("a file");
        file.write_all_at(&intent.to_bytes(), 0).expect("a write");
        assert!(!check(&storage, SyncLevel::None, &migration, "another"));
    }
    for length in 0..LENGTH + 2 {
        let storage = recordings(SyncLevel::None);
        let mut file = storage.create(INTENT_NAME, 0).expect("a file");
        let bytes = [migration.to_bytes(), vec![0]].concat();
        file.write_all_at(&bytes[..length], 0).expect("a write");
        assert_eq!(check(&storage, SyncLevel::None, &migration, "cut"), length == LENGTH);
    }
    // Both names are in use, so no rename was interrupted.
    let storage = recordings(SyncLevel::None);
    let mut file = storage.create(INTENT_NAME, 0).expect("a file");
    file.write_all_at(&migration.to_bytes(), 0).expect("a write");
    storage.create("1-0.rec", SEGMENT as u64).expect("a segment");
    assert!(!check(&storage, SyncLevel::None, &migration, "both"));
}

#[test]
fn missing_segment_of_an_interrupted_migration_is_named() {
    let [migration, _] = migrations();
    let storage = recordings(SyncLevel::None);
    let mut file = storage.create(INTENT_NAME, 0).expect("a file");
    file.write_all_at(&migration.to_bytes(), 0).expect("a write");
    storage.remove("0-131072.rec").expect("a segment");
    let error = open(&storage, &settings()).expect_err("a segment is missing").to_string();
    assert!(error.contains("neither 0-131072.rec nor 1-131072.rec is there"), "{error}");
    assert!(error.contains("remove archive-migration.intent"), "{error}");
}

/// A record that could not be removed must not keep the archive from starting when the segments are deleted later.
#[test]
fn intent_of_a_finished_migration_asks_for_no_segment() {
    for migration in migrations() {
        let storage = (0..20).find_map(|failing| {
            let storage = recordings(SyncLevel::None);
            let mut catalog = open(&storage, &settings()).expect("a catalog");
            storage.fail_after(failing, io::ErrorKind::PermissionDenied);
            let is_moved = catalog.migrate(&storage, &migration).is_ok();
            storage.fail_after(usize::MAX, io::ErrorKind::Other);
            let is_left = storage.length(INTENT_NAME).expect("a length").is_some();
            (is_moved && is_left).then_some(storage)
        });
        let storage = storage.expect("a record that is left");
        let name = segment_name(migration.destination, migration.source_start / SEGMENT * SEGMENT);
        storage.remove(&name).expect("a segment");
        let catalog = open(&storage, &settings()).expect("a catalog");
        assert_eq!(storage.length(INTENT_NAME).expect("a length"), None);
        let source = catalog.get(migration.source).expect("a recording");
        assert_eq!(source.stop_position, migration.source_start);
    }
}
