use rusteron_core::log_buffer::{HEADER_LENGTH, align};

use super::*;
use crate::segment::sample::{self, GEOMETRY};
use crate::storage::faulty::{Change, FaultyStorage};

const PAGE: i64 = PAGE_LENGTH as i64;
const SEGMENT: i64 = GEOMETRY.segment_length as i64;
const TERM: i64 = GEOMETRY.term_length as i64;
/// Nothing but the files that the archive wrote.
const ORIGINAL: Evidence = Evidence { checksum: None, position: None, is_original: true };
const NAME: &str = "3-0.rec";

/// Writes a recording as the archive does: one write for each frame, and the next file as soon as one is full.
struct Writer<'a> {
    storage: &'a FaultyStorage,
    geometry: Geometry,
    checksum: Option<Checksum>,
    file: Box<dyn StorageFile>,
    position: i64,
}

impl<'a> Writer<'a> {
    fn new(storage: &'a FaultyStorage, geometry: Geometry) -> Self {
        let file = Self::create(storage, &geometry, geometry.start_position);
        Self { storage, geometry, checksum: None, file, position: geometry.start_position }
    }

    fn create(storage: &FaultyStorage, geometry: &Geometry, position: i64) -> Box<dyn StorageFile> {
        let name = geometry.name(geometry.base(position));
        storage.create(&name, geometry.segment_length as u64).unwrap()
    }

    fn term(&self) -> (i32, usize) {
        (self.geometry.term_id(self.position), self.geometry.term_offset(self.position))
    }

    fn write(&mut self, bytes: &[u8], length: usize) {
        self.file.write_all_at(bytes, self.geometry.offset(self.position)).unwrap();
        let base = self.geometry.base(self.position);
        self.position += length as i64;
        if self.geometry.base(self.position) != base {
            self.file = Self::create(self.storage, &self.geometry, self.position);
        }
    }

    /// Fills the rest of the term if the message does not fit into it.
    fn message(&mut self, payload: &[u8]) {
        let length = align(HEADER_LENGTH + payload.len());
        if self.term().1 + length > self.geometry.term_length as usize {
            self.padding(self.geometry.term_length as usize - self.term().1);
        }
        let (term_id, term_offset) = self.term();
        let mut frame = sample::data(payload, term_id, term_offset);
        if let Some(checksum) = self.checksum {
            sample::put_checksum(&mut frame, checksum);
        }
        self.write(&frame, length);
    }

    fn padding(&mut self, length: usize) {
        let (term_id, term_offset) = self.term();
        self.write(&sample::padding(length, term_id, term_offset), length);
    }
}

fn find(storage: &FaultyStorage, geometry: &Geometry) -> Found {
    find_with(storage, geometry, None)
}

fn find_with(storage: &FaultyStorage, geometry: &Geometry, checksum: Option<Checksum>) -> Found {
    let highest = highest_segments(storage.names().unwrap());
    let highest = highest.get(&geometry.recording_id).copied();
    find_end(storage, geometry, highest, Evidence { checksum, position: None, is_original: true })
        .unwrap()
}

fn clean(end: i64) -> Found {
    Found { end, segment: Some(GEOMETRY.base(end)), tail: Tail::Clean }
}

/// A recording whose last frame begins 128 bytes before a page ends and has 2 pages of payload. Pages of the file from
/// `lost` on are holes.
fn recording_with_lost_pages(payload: u8, lost: usize) -> FaultyStorage {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    writer.message(&[1; PAGE_LENGTH - 128 - 32]);
    writer.message(&[payload; 2 * PAGE_LENGTH]);
    // The frame lies on pages 0 to 2.
    storage.after_kill(2, lost)
}

#[test]
fn recording_without_segments_is_empty() {
    let storage = FaultyStorage::default();
    let geometry = Geometry { start_position: 4_096, ..GEOMETRY };
    let expected = Found { end: 4_096, segment: None, tail: Tail::Clean };
    assert_eq!(find(&storage, &geometry), expected);
    repair(&storage, &geometry, &expected, SyncLevel::All).unwrap();
    assert!(storage.log().is_empty());
}

#[test]
fn segments_before_the_start_do_not_count() {
    let storage = FaultyStorage::default();
    storage.create(NAME, SEGMENT as u64).unwrap();
    let geometry = Geometry { start_position: SEGMENT, ..GEOMETRY };
    let expected = Found { end: SEGMENT, segment: None, tail: Tail::Clean };
    assert_eq!(find(&storage, &geometry), expected);
}

#[test]
fn segment_without_frames_ends_at_its_start() {
    // Java's archive takes a start at a page boundary for a torn frame.
    for start_position in [0, 96, PAGE, TERM, TERM + PAGE, 5 * SEGMENT + TERM + 32] {
        let storage = FaultyStorage::default();
        let geometry = Geometry { start_position, ..GEOMETRY };
        Writer::new(&storage, geometry);
        let found = find(&storage, &geometry);
        assert_eq!((found.end, found.tail), (start_position, Tail::Clean));
    }
}

#[test]
fn files_that_are_empty_or_short_end_early() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    writer.message(&[1; 68]);
    writer.message(&[1; 68]);
    let torn = Found { tail: Tail::Torn, ..clean(128) };
    let cases = [
        (0, clean(0)),
        (31, clean(0)),
        (32, Found { tail: Tail::Torn, ..clean(0) }),
        (127, Found { tail: Tail::Torn, ..clean(0) }),
        (128, clean(128)),
        (159, clean(128)),
        (160, torn),
        (255, torn),
        (256, clean(256)),
    ];
    for (length, expected) in cases {
        let copy = storage.after_kill(3, 0);
        copy.open(NAME).unwrap().set_length(length).unwrap();
        assert_eq!(find(&copy, &GEOMETRY), expected, "{length} bytes");
        repair(&copy, &GEOMETRY, &expected, SyncLevel::Data).unwrap();
        assert_eq!(copy.length(NAME).unwrap(), Some(SEGMENT as u64));
        assert_eq!(find(&copy, &GEOMETRY), clean(expected.end));
    }
}

#[test]
fn empty_file_behind_a_full_segment_is_the_end() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    writer.padding(TERM as usize);
    writer.padding(TERM as usize);
    assert_eq!(writer.position, SEGMENT);
    assert_eq!(find(&storage, &GEOMETRY), clean(SEGMENT));

    // The process ended before it made the file.
    let copy = storage.after_kill(3, 0);
    assert_eq!(copy.names().unwrap(), [NAME]);
    let found = find(&copy, &GEOMETRY);
    assert_eq!(found, Found { segment: Some(0), ..clean(SEGMENT) });
    repair(&copy, &GEOMETRY, &found, SyncLevel::Data).unwrap();
    assert_eq!(copy.length("3-131072.rec").unwrap(), Some(SEGMENT as u64));
    assert_eq!(copy.log().last(), Some(&Change::SyncDir));
    assert_eq!(find(&copy, &GEOMETRY), clean(SEGMENT));
}

#[test]
fn frames_behind_a_hole_are_not_found() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    let payload = [1; PAGE_LENGTH - HEADER_LENGTH];
    (0..3).for_each(|_| writer.message(&payload));
    // Power fails, and the second page is lost.
    let mut pages = [1, 1, 0, 1, 1].into_iter();
    let cut = storage.after_power_cut(4, &mut |_| pages.next().unwrap());
    assert_eq!(find(&cut, &GEOMETRY), clean(PAGE));
}

#[test]
fn torn_frame_is_cut_off() {
    let end = PAGE - 128;
    for lost in 1..3 {
        let storage = recording_with_lost_pages(1, lost);
        let found = find(&storage, &GEOMETRY);
        assert_eq!(found, Found { tail: Tail::Torn, ..clean(end) });
        repair(&storage, &GEOMETRY, &found, SyncLevel::None).unwrap();
        assert_eq!(find(&storage, &GEOMETRY), clean(end));
        let content = storage.content(NAME).unwrap();
        assert_eq!(content.len(), SEGMENT as usize);
        assert!(content[end as usize..].iter().all(|&byte| byte == 0));
    }
    let whole = align(HEADER_LENGTH + 2 * PAGE_LENGTH) as i64;
    assert_eq!(find(&recording_with_lost_pages(1, 3), &GEOMETRY), clean(end + whole));
}

/// Power fails while a block of several frames is written, and a page in the middle is lost.
#[test]
fn torn_frame_before_whole_ones_is_cut_off() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    (0..3).for_each(|_| writer.message(&[1; 3 * PAGE_LENGTH]));
    let mut frames = storage.content(NAME).unwrap();
    frames.truncate(writer.position as usize);
    let end = (writer.position / 3, writer.position);
    for lost in 0..frames.len().div_ceil(PAGE_LENGTH) {
        let storage = FaultyStorage::default();
        let mut file = storage.create(NAME, SEGMENT as u64).unwrap();
        for (number, page) in frames.chunks(PAGE_LENGTH).enumerate() {
            if number != lost {
                file.write_all_at(page, (number * PAGE_LENGTH) as u64).unwrap();
            }
        }
        let found = find(&storage, &GEOMETRY);
        let whole = lost as i64 * PAGE / end.0 * end.0;
        assert_eq!(found.end, whole, "{lost}: {found:?}");
        repair(&storage, &GEOMETRY, &found, SyncLevel::Data).unwrap();
        assert_eq!(find(&storage, &GEOMETRY).end, whole);
    }
    assert_eq!(find(&storage, &GEOMETRY), clean(end.1));
}

#[test]
fn zeros_before_the_last_frame_are_whole_where_holes_are_told() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    writer.message(&[0; 3 * PAGE_LENGTH]);
    writer.message(&[1; 40]);
    let end = writer.position;
    assert_eq!(find(&storage, &GEOMETRY), clean(end));
    // Pages of a block whose other pages are lost.
    let mut file = storage.open(NAME).unwrap();
    file.write_all_at(&[1; 2 * PAGE_LENGTH], 4 * PAGE as u64).unwrap();
    assert_eq!(find(&storage, &GEOMETRY), Found { tail: Tail::Doubtful { end }, ..clean(0) });
    file.write_all_at(&[1; PAGE_LENGTH], 6 * PAGE as u64).unwrap();
    assert_eq!(find(&storage, &GEOMETRY), clean(end));

    storage.hide_holes();
    assert_eq!(find(&storage, &GEOMETRY), Found { tail: Tail::Doubtful { end }, ..clean(0) });
    // A killed process has written its pages in order.
    let evidence = Evidence { checksum: None, position: Some(end), is_original: true };
    assert_eq!(find_end(&storage, &GEOMETRY, Some(0), evidence).unwrap(), clean(end));
}

#[test]
fn page_of_zeros_that_was_written_is_whole() {
    let end = PAGE - 128;
    let whole = end + align(HEADER_LENGTH + 2 * PAGE_LENGTH) as i64;
    let storage = recording_with_lost_pages(0, 3);
    assert_eq!(find(&storage, &GEOMETRY), clean(whole));
    for lost in 1..3 {
        let torn = Found { tail: Tail::Torn, ..clean(end) };
        assert_eq!(find(&recording_with_lost_pages(0, lost), &GEOMETRY), torn);
    }
    let doubtful = Found { tail: Tail::Doubtful { end: whole }, ..clean(end) };
    // The hole begins a page later, as if holes were told in units of several pages.
    let mut file = storage.open(NAME).unwrap();
    file.write_all_at(&[0; PAGE_LENGTH], 3 * PAGE as u64).unwrap();
    assert_eq!(find(&storage, &GEOMETRY), doubtful);
    // Nothing tells holes where there are none.
    let rest = 3 * PAGE_LENGTH..SEGMENT as usize;
    file.write_all_at(&vec![0; rest.len()], rest.start as u64).unwrap();
    assert_eq!(find(&storage, &GEOMETRY), doubtful);
    // Neither does the end of the file.
    let storage = recording_with_lost_pages(0, 3);
    storage.open(NAME).unwrap().set_length(3 * PAGE as u64).unwrap();
    assert_eq!(find(&storage, &GEOMETRY), doubtful);
}

/// Copying makes holes of zeros, and can end early.
#[test]
fn copy_without_a_position_is_never_cut() {
    let copy = Evidence { is_original: false, ..ORIGINAL };
    let find = |storage: &FaultyStorage, evidence| {
        find_end(storage, &GEOMETRY, Some(0), evidence).expect("an end")
    };
    let end = PAGE - 128;
    let whole = end + align(HEADER_LENGTH + 2 * PAGE_LENGTH) as i64;
    for lost in 1..3 {
        let storage = recording_with_lost_pages(0, lost);
        let doubtful = Found { tail: Tail::Doubtful { end: whole }, ..clean(end) };
        assert_eq!(find(&storage, copy), doubtful);
        // Frames behind the position may be later ones.
        assert_eq!(find(&storage, Evidence { position: Some(end), ..copy }), doubtful);
        assert_eq!(find(&storage, Evidence { position: Some(whole), ..copy }), clean(whole));
        // Another frame behind the zeros proves nothing of them.
        let mut file = storage.open(NAME).unwrap();
        let next = sample::data(&[1; 40], GEOMETRY.term_id(whole), GEOMETRY.term_offset(whole));
        file.write_all_at(&next, whole as u64).unwrap();
        let behind = whole + next.len() as i64;
        let doubtful = Found { tail: Tail::Doubtful { end: behind }, ..clean(end) };
        assert_eq!(find(&storage, copy), doubtful);
        assert_eq!(find(&storage, Evidence { position: Some(behind), ..copy }), clean(behind));
    }
    let storage = recording_with_lost_pages(1, 3);
    for (length, end) in [(whole, whole), (whole - 32, end), (end, end), (0, 0)] {
        storage.open(NAME).unwrap().set_length(length as u64).unwrap();
        assert_eq!(find(&storage, copy), Found { tail: Tail::Cut, ..clean(end) }, "{length}");
    }
}

#[test]
fn end_before_a_known_position_is_a_loss() {
    let storage = recording_with_lost_pages(1, 3);
    let position = find(&storage, &GEOMETRY).end;
    for is_original in [false, true] {
        let find = |storage: &FaultyStorage, highest| {
            let evidence = Evidence { position: Some(position), is_original, ..ORIGINAL };
            find_end(storage, &GEOMETRY, highest, evidence).expect("an end")
        };
        assert_eq!(find(&storage, Some(0)), clean(position));
        let lost = |end| Found { tail: Tail::Lost(position), ..clean(end) };
        let short = recording_with_lost_pages(1, 3);
        for length in [position - 32, PAGE - 128, 0] {
            short.open(NAME).unwrap().set_length(length as u64).unwrap();
            let left = if length == 0 { 0 } else { PAGE - 128 };
            assert_eq!(find(&short, Some(0)), lost(left), "{length}");
        }
        let none = Found { segment: None, ..lost(0) };
        assert_eq!(find(&FaultyStorage::default(), None), none);
    }
}

#[test]
fn checksum_settles_a_page_of_zeros() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    writer.checksum = Some(Checksum::Crc32);
    writer.message(&[0; 2 * PAGE_LENGTH]);
    let whole = writer.position;
    let rest = 3 * PAGE_LENGTH..SEGMENT as usize;
    let mut file = storage.open(NAME).unwrap();
    file.write_all_at(&vec![0; rest.len()], rest.start as u64).unwrap();
    let find = |checksum| find_with(&storage, &GEOMETRY, checksum);
    let doubtful = Found { tail: Tail::Doubtful { end: whole }, ..clean(0) };
    assert_eq!(find(None), doubtful);
    assert_eq!(find(Some(Checksum::Crc32c)), doubtful);
    assert_eq!(find(Some(Checksum::Crc32)), clean(whole));
}

#[test]
fn checksum_tells_a_sector_that_was_lost() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    writer.checksum = Some(Checksum::Crc32);
    writer.message(&[1; 64]);
    let begin = writer.position;
    writer.message(&[7; 2000]);
    let end = writer.position;
    let find = |checksum| find_with(&storage, &GEOMETRY, checksum);
    assert_eq!(find(Some(Checksum::Crc32)), clean(end));
    let mut file = storage.open("3-0.rec").unwrap();
    file.write_all_at(&[0; 512], 1024).unwrap();
    let doubtful = Found { end: begin, segment: Some(0), tail: Tail::Doubtful { end } };
    assert_eq!(find(Some(Checksum::Crc32)), doubtful);
    // Without a checksum, nothing tells it.
    assert_eq!(find(None), clean(end));
}

#[test]
fn padding_at_the_end_needs_no_pages() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    writer.message(&[1; 100]);
    writer.padding(TERM as usize - 160);
    assert_eq!(find(&storage, &GEOMETRY), clean(TERM));
}

#[test]
fn damaged_frame_ends_the_recording() {
    let storage = FaultyStorage::default();
    let mut writer = Writer::new(&storage, GEOMETRY);
    (0..3).for_each(|_| writer.message(&[1; 32]));
    let mut file = storage.open(NAME).unwrap();
    let mut damage = |offset, bytes: &[u8]| {
        file.write_all_at(bytes, offset).unwrap();
        find(&storage, &GEOMETRY)
    };
    let damaged = |end, fault| Found { tail: Tail::Damaged(fault), ..clean(end) };
    assert_eq!(damage(128 + 8, &[1, 0, 0, 0]), damaged(128, FrameFault::TermOffset(1)));
    assert_eq!(damage(64 + 6, &[9, 0]), damaged(64, FrameFault::Type(9)));
    let length = i32::MAX.to_le_bytes();
    assert_eq!(damage(0, &length), damaged(0, FrameFault::Length(i32::MAX)));
}

#[test]
fn wrong_names_and_geometry_are_errors() {
    let storage = FaultyStorage::default();
    for base in [TERM, SEGMENT + 32, i64::MAX, i64::MAX & !(SEGMENT - 1)] {
        let error = find_end(&storage, &GEOMETRY, Some(base), ORIGINAL).unwrap_err();
        assert!(matches!(error, ScanError::Misplaced { .. }), "{error}");
    }
    let missing = find_end(&storage, &GEOMETRY, Some(0), ORIGINAL).unwrap_err();
    assert!(matches!(&missing, ScanError::Io { name, .. } if name == NAME), "{missing}");
    let geometry = Geometry { term_length: 0, ..GEOMETRY };
    let error = find_end(&storage, &geometry, Some(0), ORIGINAL).unwrap_err();
    assert!(matches!(error, ScanError::Geometry(_)), "{error}");
}

#[test]
fn failed_read_is_an_error() {
    let storage = FaultyStorage::default();
    Writer::new(&storage, GEOMETRY).message(&[1; 32]);
    storage.fail_reads(Some(io::ErrorKind::Other));
    let error = find_end(&storage, &GEOMETRY, Some(0), ORIGINAL).unwrap_err();
    assert!(matches!(error, ScanError::Io { .. }), "{error}");
}

#[test]
fn highest_segments_skip_foreign_names() {
    let names =
        ["1-0.rec", "1-131072.rec", "2-64.rec", "1-9.rec.del", "archive.catalog", "x-1.rec"];
    let highest = highest_segments(names);
    assert_eq!(highest, HashMap::from([(1.into(), 131_072), (2.into(), 64)]));
}
