//! Catalogs are opened, edited and found damaged.

use std::collections::HashMap;

use super::*;
use crate::catalog::descriptor::{
    CHECKSUM_OFFSET, FIXED_LENGTH, RECORDING_ID_OFFSET, STATE_OFFSET,
};
use crate::catalog::header::{self, NEXT_ID_OFFSET};
use crate::catalog::model::{open, settings};
use crate::catalog::{CATALOG_NAME, CatalogError};
use crate::segment::checksum::Checksum;
use crate::segment::sample;
use crate::storage::faulty::FaultyStorage;
use crate::storage::{PAGE_LENGTH, Storage};

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
    catalog.set_stopped(0.into(), 64, 5).expect("an edit");
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
    let storage = with_content(&content);
    let error = open(&storage, &settings()).expect_err("a wrong catalog").to_string();
    assert!(self::content(&storage) == content, "a refused catalog is left alone");
    error
}

const FIRST: usize = 32;
const SECOND: usize = FIRST + 192;

#[test]
fn fragment_is_searched_in_the_original_channel() {
    let storage = three_recordings();
    let catalog = open(&storage, &settings()).expect("a catalog");
    assert!(catalog.channel_contains(0.into(), b"alias=a|mtu"));
    assert!(catalog.channel_contains(0.into(), b""));
    assert!(!catalog.channel_contains(0.into(), b"alias=b"));
    assert!(!catalog.channel_contains(3.into(), b""));
    assert_eq!(catalog.find_last(0.into(), 5, sample::STREAM_ID, b"mtu"), Some(2.into()));
    assert_eq!(catalog.find_last(3.into(), 5, sample::STREAM_ID, b"mtu"), None);
    assert_eq!(catalog.find_last(0.into(), 6, sample::STREAM_ID, b"mtu"), None);
}

#[test]
fn same_edit_changes_no_byte() {
    let storage = three_recordings();
    let mut catalog = open(&storage, &settings()).expect("a catalog");
    let before = content(&storage);
    catalog.set_stopped(0.into(), 64, 5).expect("an edit");
    assert_eq!(content(&storage), before);
}

#[test]
fn entries_that_are_not_valid_are_skipped_and_kept() {
    for state in [0, 2] {
        let mut bytes = content(&three_recordings());
        bytes[SECOND + STATE_OFFSET] = state;
        let storage = with_content(&bytes);
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        assert_eq!(catalog.get(1.into()), None);
        assert_eq!(catalog.descriptor_bytes(1.into()), None);
        assert!(
            matches!(catalog.set_stopped(1.into(), 0, 0), Err(CatalogError::UnknownRecording(id)) if id == 1)
        );
        assert_eq!(catalog.add(NEW, 0).expect("a recording"), 3);
        assert_eq!(content(&storage)[SECOND..][..192], bytes[SECOND..][..192]);
        let ids: Vec<_> =
            catalog.descriptors_from(0.into()).map(|known| known.recording_id).collect();
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
    assert_eq!(catalog.descriptors_from(0.into()).count(), 3);
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
fn garbage_behind_the_end_is_overwritten() {
    let mut bytes = content(&three_recordings());
    // A length of 0 ends the entries.
    bytes[FIRST + 3 * 192 + 4..][..8192].fill(17);
    let storage = with_content(&bytes);
    for id in 3..6 {
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        assert_eq!(catalog.add(NEW, 9).expect("a recording"), id);
    }
    let catalog = open(&storage, &settings()).expect("a catalog");
    assert_eq!(catalog.descriptors_from(0.into()).count(), 6);
}

#[test]
fn update_that_failed_can_be_repeated() {
    for failing in 0..6 {
        let storage = three_recordings();
        let mut catalog = open(&storage, &settings()).expect("a catalog");
        let channel = format!("aeron:ipc?alias={}", "x".repeat(200));
        storage.fail_after(failing, std::io::ErrorKind::PermissionDenied);
        let _ = catalog.update_channel(1.into(), "aeron:ipc", &channel);
        storage.fail_after(usize::MAX, std::io::ErrorKind::Other);
        catalog.update_channel(1.into(), "aeron:ipc", &channel).expect("another attempt");
        assert!(catalog.channel_contains(1.into(), b"xxx"), "{failing}");
    }
}

#[test]
fn corrupt_entries_are_named() {
    let id = refusal(SECOND + RECORDING_ID_OFFSET, &[0]);
    assert!(id.contains("recording 0 follows recording 0"), "{id}");
    let length = refusal(SECOND + 2, &[1]);
    assert!(length.contains("an entry of 65728 bytes exceeds the file of 16384 bytes"), "{length}");
}

#[test]
fn recordings_between_frames_are_served() {
    let storage = FaultyStorage::default();
    let mut catalog = open(&storage, &settings()).expect("a catalog");
    for start_position in [1, 33, 64] {
        catalog.add(NewRecording { start_position, mtu: 7, ..NEW }, 1).expect("a recording");
    }
    catalog.set_stopped(2.into(), 3, 5).expect("an end before the start");
    let catalog = open(&storage, &settings()).expect("a catalog");
    let edges: Vec<_> = catalog
        .descriptors_from(0.into())
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
        assert_eq!(catalog.get(1.into()), None);
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
        catalog.set_stopped(id.into(), 640, 2).expect("an edit");
    }
    let mut bytes = content(&storage);
    bytes[SECOND + STOP_POSITION] ^= 0x20;
    let storage = with_content(&bytes);
    let catalog = open(&storage, &settings).expect("a catalog");
    let [error] = catalog.set_aside().collect::<Vec<_>>()[..] else { panic!("one recording") };
    let text = error.to_string();
    assert!(text.contains("recording 1 is not served: catalog checksum="), "{text}");
    assert!(text.contains("`rusteron archive verify 1 --repair`"), "{text}");
    let ids: Vec<_> = catalog.descriptors_from(0.into()).map(|known| known.recording_id).collect();
    assert_eq!(ids, [0, 2]);
    assert_eq!(content(&storage)[SECOND..][..192], bytes[SECOND..][..192]);
    // Another kind of checksum than the one that the archive was configured with before.
    let other = CatalogSettings { checksum: Some(Checksum::Crc32c), ..settings };
    assert_eq!(open(&storage, &other).expect("a catalog").descriptors_from(0.into()).count(), 2);
    // An archive without checksums leaves none that would be wrong.
    let without = CatalogSettings { checksum: None, ..other.clone() };
    let mut catalog = open(&storage, &without).expect("a catalog");
    catalog.set_stopped(0.into(), 64, 3).expect("an edit");
    let catalog = open(&storage, &other).expect("a catalog");
    assert_eq!(catalog.get(0.into()).map(|known| known.stop_position), Some(64));
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
    catalog.set_stopped(0.into(), 640, 2).expect("an edit");
    let mut bytes = content(&storage);
    bytes[FIRST + CHECKSUM_OFFSET..][..4].copy_from_slice(&checksum);
    let catalog = open(&with_content(&bytes), &settings).expect("a catalog");
    assert_eq!(catalog.get(0.into()).map(|known| known.stop_position), Some(640));
}

#[test]
fn updated_channel_moves_later_entries() {
    let storage = three_recordings();
    let mut catalog = open(&storage, &settings()).expect("a catalog");
    let third = catalog.descriptor_bytes(2.into()).expect("its bytes").to_vec();
    let channel = format!("aeron:ipc?alias={}", "x".repeat(200));
    catalog.update_channel(1.into(), "aeron:ipc", &channel).expect("an edit");
    assert_eq!(catalog.descriptor_bytes(2.into()), Some(&third[..]));
    assert!(catalog.channel_contains(1.into(), b"xxx"));
    let length = content(&storage).len();
    catalog.update_channel(1.into(), "aeron:ipc", "aeron:ipc").expect("an edit");
    assert_eq!(
        catalog.descriptor_bytes(1.into()).map(<[u8]>::len),
        Some(384 - RECORDING_ID_OFFSET)
    );
    assert_eq!(content(&storage).len(), length);
    let again = open(&storage, &settings()).expect("a catalog");
    assert_eq!(again.descriptor_bytes(2.into()), Some(&third[..]));
    assert!(
        matches!(catalog.update_channel(9.into(), "", ""), Err(CatalogError::UnknownRecording(id)) if id == 9)
    );
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
        assert_eq!(end(0.into()), (64, 5));
        assert_eq!(end(1.into()), (0, settings.now_ms));
        assert_eq!(end(2.into()), ((first.len() + second.len()) as i64, settings.now_ms));
        if let Some(checksum) = checksum {
            let entry = &content(&storage)[SECOND..][..192];
            let expected = checksum.of(&entry[32..]).to_le_bytes();
            assert_eq!(entry[CHECKSUM_OFFSET..][..4], expected);
        }
        assert_eq!(
            open(&storage, &settings).expect("it again").get(2.into()),
            catalog.get(2.into())
        );
    }
}

#[test]
fn torn_frame_is_cut_off() {
    let storage = three_recordings();
    let first = sample::data(b"first", 7, 0);
    let torn = sample::data(&[9; 9000], 7, first.len());
    write_segment(&storage, &[&first[..], &torn].concat()[..PAGE_LENGTH]);
    let catalog = open(&storage, &settings()).expect("a catalog");
    assert_eq!(catalog.get(2.into()).map(|known| known.stop_position), Some(first.len() as i64));
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
        let text = catalog.why_set_aside(2.into()).expect("a reason").to_string();
        assert!(text.contains("may be incomplete"), "{text}");
        let positions = HashMap::from([(1.into(), 0), (2.into(), position)]);
        let settings = CatalogSettings { positions, is_original, ..settings() };
        let catalog = open(&storage, &settings).expect("a catalog");
        assert_eq!(catalog.get(2.into()).map(|known| known.stop_position), Some(expected));
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
    assert_eq!(catalog.get(1.into()).map(|known| known.stop_position), Some(0));
    assert_eq!(catalog.get(2.into()), None);
    assert_eq!(catalog.add(NEW, 9).expect("another id"), 3);
    assert_eq!(storage.content("2-0.rec"), before);
}

#[test]
fn unreadable_file_is_refused() {
    let storage = three_recordings();
    storage.fail_reads(Some(std::io::ErrorKind::PermissionDenied));
    let error = open(&storage, &settings()).expect_err("no rights");
    assert!(error.to_string().starts_with("archive.catalog: cannot read the file: "), "{error}");
    assert!(!error.is_storage_full());
}
