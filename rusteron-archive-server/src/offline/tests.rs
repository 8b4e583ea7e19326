//! Tests: damaged catalogs and segments, and repairs of them.

use std::collections::HashMap;
use std::sync::Arc;

use rusteron_test_support::Random;

use super::*;
use crate::catalog::{CATALOG_NAME, Catalog, CatalogSettings, NewRecording};
use crate::ids::RecordingId;
use crate::mark_file::Guard;
use crate::segment::checksum::Checksum;
use crate::segment::sample;
use crate::storage::faulty::FaultyStorage;
use crate::storage::{Storage, SyncLevel};

const NEW: NewRecording<'static> = NewRecording {
    start_position: 0,
    initial_term_id: 7,
    segment_length: 64 << 10,
    term_length: 64 << 10,
    mtu: 1408,
    session_id: 5,
    stream_id: sample::STREAM_ID,
    stripped_channel: "aeron:ipc",
    original_channel: "aeron:ipc?mtu=1408",
    source_identity: "aeron:ipc",
};
const END: i64 = 128 + 1024;

fn settings(checksum: Option<Checksum>) -> CatalogSettings {
    CatalogSettings {
        capacity: 4096,
        sync_level: SyncLevel::None,
        file_sync_level: SyncLevel::None,
        checksum,
        now_ms: 9,
        positions: HashMap::new(),
        is_original: true,
    }
}

/// Three recordings of two frames, with checksums. The last one is active.
fn three_recordings(checksum: Checksum) -> FaultyStorage {
    let storage = FaultyStorage::default();
    let settings = settings(Some(checksum));
    let mut catalog = Catalog::open(Arc::new(storage.clone()), &settings).expect("a catalog");
    for id in 0..3 {
        assert_eq!(catalog.add(NEW, 1).expect("a recording"), id);
        let mut first = sample::data(&[1; 96], 7, 0);
        let mut second = sample::data(&[2; 992], 7, first.len());
        sample::put_checksum(&mut first, checksum);
        sample::put_checksum(&mut second, checksum);
        let mut file = storage.create(&format!("{id}-0.rec"), 64 << 10).expect("a segment");
        file.write_all_at(&[first, second].concat(), 0).expect("a write");
    }
    catalog.set_stopped(0.into(), END, 5).expect("an end");
    catalog.set_stopped(1.into(), END, 5).expect("an end");
    storage
}

fn files(storage: &FaultyStorage) -> crate::error::Result<ArchiveFiles> {
    ArchiveFiles::from_storage(Arc::new(storage.clone()), HashMap::new(), true)
}

/// An editor, and the directory of its guard.
fn editor(storage: &FaultyStorage) -> Option<(ArchiveEditor, tempfile::TempDir)> {
    let dir = tempfile::tempdir().expect("a directory");
    let guard = Guard::new(dir.path()).expect("no archive");
    Some((ArchiveEditor::with_guard(files(storage).ok()?, guard), dir))
}

fn options(checksum: Checksum) -> VerifyOptions {
    VerifyOptions { all_segments: true, checksum: Some(checksum), last_fragment: None }
}

#[test]
fn repaired_end_keeps_the_checksum_right() {
    for checksum in [Checksum::Crc32, Checksum::Crc32c] {
        let storage = three_recordings(checksum);
        let (mut editor, _dir) = editor(&storage).expect("an editor");
        let verified = editor.files().verify(&editor.files().recordings()[2], &options(checksum));
        assert_eq!((verified.stop_position, verified.end_position), (None, Some(END)));
        assert_eq!(verified.findings, []);
        let repair = editor.repair(&verified).expect("a repair");
        assert_eq!((repair.state, repair.stop_position), (None, Some(END)));
        let files = files(&storage).expect("the files");
        let again = files.verify(&files.recordings()[2], &options(checksum));
        assert_eq!((again.stop_position, again.findings), (Some(END), vec![]));
        let other = [Checksum::Crc32, Checksum::Crc32c].into_iter().find(|it| *it != checksum);
        let wrong = files.verify(&files.recordings()[0], &options(other.expect("another")));
        assert!(wrong.findings[0].text.starts_with("catalog checksum="), "{wrong:?}");
    }
}

/// A copy has holes in place of zeros, and may lack the end.
#[test]
fn repair_takes_no_announced_byte_away() {
    const END: i64 = 96 + 9_024;
    for (stop, length, is_original, findings, expected) in [
        // The catalog's stop position tells that the message of zeros is whole.
        (Some(END), None, false, 0, Repair::default()),
        (Some(END), None, true, 0, Repair::default()),
        // Part of the announced is not there: only an operator gives it up.
        (Some(END), Some(5_000), false, 1, Repair::default()),
        (Some(END), Some(5_000), true, 1, Repair::default()),
        // Nothing tells whether the message is whole, or what followed.
        (None, None, false, 1, Repair::default()),
        (None, Some(5_000), false, 1, Repair::default()),
        // The archive's own files tell it by their holes.
        (
            None,
            None,
            true,
            0,
            Repair { stop_position: Some(96), is_truncated: true, ..Repair::default() },
        ),
    ] {
        let storage = FaultyStorage::default();
        let mut catalog = Catalog::open(Arc::new(storage.clone()), &settings(None)).expect("it");
        let id = catalog.add(NEW, 1).expect("a recording");
        if let Some(stop) = stop {
            catalog.set_stopped(id, stop, 5).expect("an end");
        }
        let mut file = storage.create(&format!("{id}-0.rec"), 64 << 10).expect("a file");
        let first = sample::data(&[1; 64], 7, 0);
        // The rest of the zeros is a hole.
        let zeros = &sample::data(&[0; 8_992], 7, first.len())[..32];
        file.write_all_at(&[&first, zeros].concat(), 0).expect("a write");
        if let Some(length) = length {
            file.set_length(length).expect("a cut");
        }
        let files = || {
            let shared = Arc::new(storage.clone());
            ArchiveFiles::from_storage(shared, HashMap::new(), is_original).expect("files")
        };
        let dir = tempfile::tempdir().expect("a directory");
        let guard = Guard::new(dir.path()).expect("no archive");
        let mut editor = ArchiveEditor::with_guard(files(), guard);
        let mut options = VerifyOptions::default();
        let verified = editor.files().verify(editor.files().recording(id).expect("it"), &options);
        assert_eq!(verified.findings.len(), findings, "{verified:?}");
        assert_eq!(verified.is_end_known, stop.is_some() || is_original);
        let before = storage.content("0-0.rec");
        assert_eq!(editor.repair(&verified).expect("a repair"), expected, "{verified:?}");
        if expected == Repair::default() && findings > 0 {
            assert_eq!(storage.content("0-0.rec"), before);
            options.last_fragment = Some(LastFragment::Truncate);
            let recording = editor.files().recording(id).expect("it");
            let verified = editor.files().verify(recording, &options);
            let repair = editor.repair(&verified).expect("a repair");
            assert_eq!(repair.stop_position, Some(96), "{verified:?}");
        }
    }
}

/// Purges, truncations, detached and migrated segments leave such recordings.
#[test]
fn end_of_a_segment_needs_no_file_behind_it() {
    let segment = 64 << 10;
    for (start, stop, bases, is_valid) in [
        (0, segment, &[0][..], true),
        (0, segment, &[0, segment], true),
        (segment, 2 * segment, &[segment], true),
        (0, 0, &[], true),
        (segment, segment, &[], true),
        // Detached, and nothing is left.
        (segment, segment, &[0], true),
        (2 * segment, 2 * segment, &[0], true),
        (0, segment + 96, &[0], false),
        (segment, segment + 96, &[0], false),
    ] {
        let storage = FaultyStorage::default();
        let mut catalog = Catalog::open(Arc::new(storage.clone()), &settings(None)).expect("it");
        let new = NewRecording { start_position: start, ..NEW };
        let id = catalog.add(new, 1).expect("a recording");
        catalog.set_stopped(id, stop, 5).expect("an end");
        for &base in bases {
            let term_id = 7 + (base / segment) as i32;
            let mut file =
                storage.create(&format!("{id}-{base}.rec"), segment as u64).expect("a file");
            if base < stop {
                let padding = sample::padding(segment as usize, term_id, 0);
                file.write_all_at(&padding, 0).expect("a write");
            }
        }
        let (mut editor, _dir) = editor(&storage).expect("an editor");
        let options = VerifyOptions { all_segments: true, ..VerifyOptions::default() };
        let verified = editor.files().verify(editor.files().recording(id).expect("it"), &options);
        assert_eq!(verified.findings.is_empty(), is_valid, "{verified:?}");
        let repair = editor.repair(&verified).expect("a repair");
        assert_eq!(repair == Repair::default(), is_valid, "{bases:?}: {repair:?}");
    }
}

/// A killed archive had recorded a frame that is not its stream's.
#[test]
fn damaged_end_is_cut_off_only_on_demand() {
    let storage = three_recordings(Checksum::Crc32);
    let term_id = 128 + rusteron_core::log_buffer::TERM_ID as u64;
    storage.open("2-0.rec").expect("a file").write_all_at(&[99], term_id).expect("a write");
    let (mut editor, _dir) = editor(&storage).expect("an editor");
    let mut options = options(Checksum::Crc32);
    for (last_fragment, state, end) in [
        (None, Some(RecordingState::Invalid), None),
        (Some(LastFragment::Keep), None, None),
        (Some(LastFragment::Truncate), Some(RecordingState::Valid), Some(128)),
    ] {
        options.last_fragment = last_fragment;
        let verified = editor
            .files()
            .verify(editor.files().recording(RecordingId::new(2)).expect("it"), &options);
        let repair = editor.repair(&verified).expect("a repair");
        assert_eq!((repair.state, repair.stop_position), (state, end), "{verified:?}");
    }
}

#[test]
fn repair_of_hostile_files_is_done_at_once() {
    let mut random = Random::new(7);
    let catalog = three_recordings(Checksum::Crc32).content(CATALOG_NAME).expect("a catalog");
    let (mut repairs, mut findings) = (0, 0);
    for _ in 0..300 {
        let storage = three_recordings(Checksum::Crc32);
        let names = [CATALOG_NAME, "0-0.rec", "1-0.rec", "2-0.rec"];
        for _ in 0..1 + random.below(4) {
            let name = names[random.below(names.len())];
            let length =
                if name == CATALOG_NAME { catalog.len().min(640) } else { END as usize + 64 };
            let value = [0, 1, 0x7f, 0x80, 0xff, random.next() as u8][random.below(6)];
            let mut file = storage.open(name).expect("a file");
            if random.percent(10) {
                file.set_length(random.below(length) as u64).expect("a cut");
            } else {
                file.write_all_at(&[value], random.below(length) as u64).expect("a write");
            }
        }
        let Some((mut editor, _dir)) = editor(&storage) else { continue };
        let options = options(Checksum::Crc32);
        let is_twice = |id: RecordingId, editor: &ArchiveEditor| {
            editor.files().recordings().iter().filter(|it| it.recording_id == id).count() > 1
        };
        for recording in editor.files().recordings().to_vec() {
            let verified = editor.files().verify(&recording, &options);
            findings += verified.findings.len();
            let repair = editor.repair(&verified).expect("a repair");
            repairs += usize::from(repair != Repair::default());
            // A state that is none becomes invalid first.
            if recording.state.is_none() || is_twice(recording.recording_id, &editor) {
                continue;
            }
            let again = editor.files().recording(recording.recording_id).expect("it").clone();
            let again = editor.files().verify(&again, &options);
            assert_eq!(editor.repair(&again).expect("no repair"), Repair::default(), "{again:?}");
        }
        editor.delete_orphaned_segments(None).expect("orphans");
        editor.compact().expect("a compaction");
        let files = files(&storage).expect("a compact catalog");
        assert!(files.recordings().iter().all(RecordingEntry::is_valid));
        assert_eq!(files.compaction(), Compaction::default());
    }
    assert!(repairs > 100 && findings > 100, "{repairs} {findings}");
}

#[test]
fn cut_compaction_is_continued() {
    let compact = |changes: Option<usize>| {
        let storage = three_recordings(Checksum::Crc32);
        let (mut edit, _dir) = editor(&storage).expect("an editor");
        edit.mark_invalid(RecordingId::new(1)).expect("an edit");
        if let Some(changes) = changes {
            storage.fail_after(changes, std::io::ErrorKind::Other);
        }
        let is_done = edit.compact().is_ok();
        drop(edit);
        if !is_done {
            // The storage fails once.
            let (mut edit, _dir) = editor(&storage).expect("an editor");
            edit.compact().expect("a compaction");
        }
        (is_done, storage.names().expect("names"), storage.content(CATALOG_NAME))
    };
    let (_, names, content) = compact(None);
    assert!(!names.contains(&"1-0.rec".to_owned()), "{names:?}");
    let mut changes = 0;
    loop {
        let (is_done, other_names, other_content) = compact(Some(changes));
        assert_eq!(other_names, names);
        assert!(other_content == content, "{changes}");
        changes += 1;
        if is_done {
            break;
        }
    }
    assert!(changes > 4, "{changes}");
}

#[test]
fn errors_of_the_catalog_name_its_path() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("archive.catalog");
    std::fs::write(&path, [7; 100]).expect("a file");
    let error = ArchiveFiles::open(dir.path()).expect_err("no catalog");
    let begin = format!("{}: incompatible catalog file version", path.display());
    assert!(error.message().starts_with(&begin), "{error}");
}
