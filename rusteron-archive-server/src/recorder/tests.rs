//! Tests of recordings.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusteron_core::log_buffer::{
    FRAME_LENGTH, HEADER_LENGTH, SESSION_ID, STREAM_ID, TERM_ID, TERM_OFFSET, TYPE, TYPE_DATA,
    VERSION,
};
use rusteron_test_support::Random;

use crate::conductor::effect::StartRecording;
use crate::protocol::error_code::ErrorCode;
use crate::recorder::BlockWriter;
use crate::recorder::recording::{BlockSource, Recording};
use crate::recorder::sample::{MTU, Stream, StreamSource};
use crate::segment::checksum::Checksum;
use crate::segment::{Geometry, frame, sample};
use crate::storage::faulty::{Change, FaultyStorage};
use crate::storage::{Storage, SyncLevel};

const TERM: i32 = 64 << 10;
const FILE_IO_MAX: usize = 64 << 10;

/// Segments of one, two and four terms; starts at the beginning, within a term and between terms.
fn geometries() -> impl Iterator<Item = Geometry> {
    [TERM, 2 * TERM, 4 * TERM].into_iter().flat_map(|segment_length| {
        [0, 96, 65_536, 3 * 65_536 + 65_504].map(|start_position| Geometry {
            start_position,
            segment_length,
            ..sample::GEOMETRY
        })
    })
}

fn writer(storage: &FaultyStorage, sync_level: SyncLevel) -> BlockWriter {
    BlockWriter::new(Arc::new(storage.clone()), sync_level, None)
}

fn random_stream(random: &mut Random, geometry: Geometry, length: usize) -> Stream {
    Stream::random(random, geometry, geometry.start_position, length)
}

/// Records until there is nothing to do.
fn record(recording: &mut Recording, source: &mut StreamSource, writer: &mut BlockWriter) {
    while recording.do_work(Some(source), writer) > 0 {}
}

/// Records a stream to its end.
fn record_all(storage: &FaultyStorage, stream: &Stream) {
    let mut recording = Recording::new(&stream.start_recording(), FILE_IO_MAX);
    let mut source = StreamSource::new(stream.clone());
    source.is_end_of_stream = true;
    record(&mut recording, &mut source, &mut writer(storage, SyncLevel::None));
    assert_eq!((recording.failure(), recording.position()), (None, stream.end()));
}

/// Asserts that the segment files hold a stream from its start, and zeros before and after it.
#[track_caller]
fn assert_recorded(storage: &FaultyStorage, stream: &Stream) {
    let geometry = stream.geometry;
    assert_eq!(stream.position, geometry.start_position);
    let first = geometry.first_base();
    let segment_length = i64::from(geometry.segment_length);
    // The file behind a full one is there.
    let last = geometry.base(stream.end());
    let count = (last - first) / segment_length + 1;
    assert_eq!(storage.names().unwrap().len() as i64, count);
    let mut expected = vec![0; (count * segment_length) as usize];
    let start = (stream.position - first) as usize;
    expected[start..][..stream.bytes.len()].copy_from_slice(&stream.bytes);
    for (number, expected) in expected.chunks(segment_length as usize).enumerate() {
        let name = geometry.name(first + number as i64 * segment_length);
        let content = storage.content(&name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(content == expected, "{name} differs");
    }
}

#[test]
fn segments_equal_the_stream() {
    let mut random = Random::new(1);
    for geometry in geometries() {
        for file_io_max in [FILE_IO_MAX, MTU, 3 * FILE_IO_MAX] {
            let storage = FaultyStorage::default();
            let length = 1 + random.below(5 * TERM as usize);
            let stream = random_stream(&mut random, geometry, length);
            let start = stream.start_recording();
            let mut recording = Recording::new(&start, file_io_max);
            let mut writer = writer(&storage, SyncLevel::None);
            let mut source = StreamSource::new(stream.clone());
            record(&mut recording, &mut source, &mut writer);
            assert!(!recording.is_stopped());
            assert_eq!(recording.position(), stream.end());
            assert_eq!(start.progress.position.load(Ordering::Relaxed), stream.end());
            let written: usize = stream.frames().iter().map(|(_, frame)| frame.len()).sum();
            assert_eq!(writer.totals().bytes, written as i64);
            assert_recorded(&storage, &stream);
            for change in storage.log() {
                if let Change::Write { bytes, .. } = change {
                    assert!(bytes.len() <= file_io_max);
                }
            }
        }
    }
}

#[test]
fn full_segment_has_the_next_file_at_once() {
    let storage = FaultyStorage::default();
    let geometry = Geometry { segment_length: TERM, ..sample::GEOMETRY };
    let mut stream = random_stream(&mut Random::new(2), geometry, TERM as usize);
    stream.bytes.truncate(TERM as usize);
    record_all(&storage, &stream);
    assert_eq!(storage.names().unwrap(), ["3-0.rec", "3-65536.rec"]);
    assert_eq!(storage.content("3-65536.rec").unwrap(), vec![0; TERM as usize]);
}

#[test]
fn each_block_is_one_write() {
    let storage = FaultyStorage::default();
    let geometry = sample::GEOMETRY;
    let mut stream = Stream { geometry, position: 0, bytes: Vec::new() };
    for number in 0..100 {
        stream.bytes.extend(sample::data(&[number; 100], 7, stream.bytes.len()));
    }
    record_all(&storage, &stream);
    let writes = storage.log().into_iter().filter(|it| matches!(it, Change::Write { .. })).count();
    assert_eq!(writes, 1);
}

#[test]
fn checksums_replace_session_ids() {
    for checksum in [Checksum::Crc32, Checksum::Crc32c] {
        let storage = FaultyStorage::default();
        let geometry = Geometry { start_position: 96, ..sample::GEOMETRY };
        let mut stream = random_stream(&mut Random::new(3), geometry, 3 * TERM as usize);
        let mut recording = Recording::new(&stream.start_recording(), FILE_IO_MAX);
        let mut writer =
            BlockWriter::new(Arc::new(storage.clone()), SyncLevel::None, Some(checksum));
        record(&mut recording, &mut StreamSource::new(stream.clone()), &mut writer);

        let mut offset = 0;
        while offset < stream.bytes.len() {
            let length = frame::aligned_length(&stream.bytes[offset..]).unwrap();
            let bytes = &mut stream.bytes[offset..][..length];
            if frame::frame_type(bytes) == TYPE_DATA {
                sample::put_checksum(bytes, checksum);
            }
            offset += length;
        }
        assert_recorded(&storage, &stream);
    }
}

#[test]
fn syncs_come_before_the_position() {
    let geometry = Geometry { segment_length: TERM, ..sample::GEOMETRY };
    let stream = random_stream(&mut Random::new(4), geometry, 3 * TERM as usize);
    for level in [SyncLevel::None, SyncLevel::Data, SyncLevel::All] {
        let storage = FaultyStorage::default();
        let start = stream.start_recording();
        let mut recording = Recording::new(&start, FILE_IO_MAX);
        let mut writer = writer(&storage, level);
        let mut source = StreamSource::new(stream.clone());
        while recording.do_work(Some(&mut source), &mut writer) > 0 {
            let log = storage.log();
            if level == SyncLevel::None {
                let is_sync =
                    |change: &Change| matches!(change, Change::Sync { .. } | Change::SyncDir);
                assert!(!log.iter().any(is_sync));
                continue;
            }
            // Every write has its sync, and every file the one of its name.
            let mut changes = log.iter();
            while let Some(change) = changes.next() {
                match change {
                    Change::Write { file, .. } => {
                        assert_eq!(changes.next(), Some(&Change::Sync { file: *file, level }));
                    }
                    Change::Create { .. } => assert_eq!(changes.next(), Some(&Change::SyncDir)),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// Otherwise a power cut could bring back old frames behind new ones.
#[test]
fn extension_syncs_what_it_clears() {
    let storage = FaultyStorage::default();
    let stream = random_stream(&mut Random::new(14), sample::GEOMETRY, 10_000);
    record_all(&storage, &stream);
    let (cleared, start) = (storage.log().len(), stream.from(stream.end()).start_recording());
    let mut recording = Recording::new(&start, FILE_IO_MAX);
    recording.write_block(None, &mut writer(&storage, SyncLevel::Data));
    let offset = sample::GEOMETRY.offset(stream.end());
    assert_eq!(
        storage.log()[cleared..],
        [
            Change::SetLength { file: 0, length: offset },
            Change::SetLength { file: 0, length: sample::GEOMETRY.segment_length as u64 },
            Change::Sync { file: 0, level: SyncLevel::Data },
            Change::SyncDir,
        ]
    );
}

/// A block counts after its sync, and one whose sync fails does not.
#[test]
fn position_waits_for_the_sync() {
    let stream = random_stream(&mut Random::new(13), sample::GEOMETRY, 10_000);
    for fails in [false, true] {
        let storage = FaultyStorage::default();
        let start = stream.start_recording();
        let mut recording = Recording::new(&start, FILE_IO_MAX);
        let mut writer = writer(&storage, SyncLevel::Data);
        let mut source = StreamSource::new(stream.clone());
        while recording.write_block(Some(&mut source), &mut writer) > 0
            && recording.position() == 0
            && storage.log().len() < 3
        {}
        assert_eq!((recording.position(), writer.totals().bytes), (0, 0));
        let file = recording.take_unsynced().expect("a block is written");
        assert!(recording.take_unsynced().is_none());
        // Meanwhile, nothing is polled.
        assert_eq!(recording.write_block(Some(&mut source), &mut writer), 0);
        let synced = if fails { Err(ErrorKind::TimedOut.into()) } else { Ok(file) };
        recording.synced(synced, &mut writer);
        let announced = start.progress.position.load(Ordering::Relaxed);
        assert_eq!(announced, recording.position());
        assert_eq!(recording.is_stopped(), fails);
        assert_eq!(announced, if fails { 0 } else { stream.end() });
    }
}

#[test]
fn full_disk_has_its_own_code() {
    let stream = random_stream(&mut Random::new(6), sample::GEOMETRY, TERM as usize);
    for has_quota in [false, true] {
        let storage = FaultyStorage::default();
        match has_quota {
            true => storage.fail_after(6, ErrorKind::QuotaExceeded),
            false => storage.limit_space(Some(10_000)),
        }
        let mut recording = Recording::new(&stream.start_recording(), 4096);
        let mut source = StreamSource::new(stream.clone());
        record(&mut recording, &mut source, &mut writer(&storage, SyncLevel::None));
        assert_eq!(recording.failure().unwrap().code, ErrorCode::StorageSpace);
        assert!((4096..10_000).contains(&recording.position()), "{}", recording.position());

        storage.limit_space(None);
        record_all(&storage, &stream.from(recording.position()));
        assert_recorded(&storage, &stream);
    }
}

#[test]
fn file_in_the_way_of_a_roll_over_is_an_error() {
    let geometry = Geometry { segment_length: TERM, ..sample::GEOMETRY };
    let stream = random_stream(&mut Random::new(8), geometry, 2 * TERM as usize);
    let storage = FaultyStorage::default();
    storage.create("3-65536.rec", 5).unwrap();
    let mut recording = Recording::new(&stream.start_recording(), 4096);
    let mut source = StreamSource::new(stream);
    record(&mut recording, &mut source, &mut writer(&storage, SyncLevel::None));
    let failure = recording.failure().unwrap();
    assert_eq!(failure.text, "segment file already exists: dir/3-65536.rec");
    // The last block of the full segment is not announced: its recording would end in no file.
    assert!(recording.position() < i64::from(TERM));
    assert_eq!(storage.content("3-65536.rec").unwrap().len(), 5);
}

#[test]
fn new_recording_leaves_an_existing_segment_alone() {
    let stream = random_stream(&mut Random::new(8), sample::GEOMETRY, 1000);
    let storage = FaultyStorage::default();
    record_all(&storage, &stream);
    let recorded = storage.content("3-0.rec");
    let start = StartRecording { is_new: true, ..stream.start_recording() };
    let mut recording = Recording::new(&start, FILE_IO_MAX);
    let mut source = StreamSource::new(stream);
    record(&mut recording, &mut source, &mut writer(&storage, SyncLevel::None));
    let failure = recording.failure().expect("a failure");
    assert_eq!(failure.text, "segment file already exists: dir/3-0.rec");
    assert_eq!(storage.content("3-0.rec"), recorded);
}

#[test]
fn extension_opens_and_clears_what_is_there() {
    let mut random = Random::new(9);
    for geometry in geometries() {
        let storage = FaultyStorage::default();
        let stream = random_stream(&mut random, geometry, 2 * TERM as usize);
        record_all(&storage, &stream);
        // A power cut can leave later bytes and take those before them.
        let name = geometry.name(geometry.base(stream.end()));
        let last = geometry.segment_length as u64 - 5;
        let stale = last.min(geometry.offset(stream.end()) + 4096);
        storage.open(&name).unwrap().write_all_at(b"stale", stale).unwrap();
        let length = random.below(2 * TERM as usize);
        let extension = Stream::random(&mut random, geometry, stream.end(), length);
        record_all(&storage, &extension);
        let mut whole = stream;
        whole.bytes.extend(&extension.bytes);
        assert_recorded(&storage, &whole);
    }
}

#[test]
fn abort_keeps_the_position_at_every_step() {
    let stream = random_stream(&mut Random::new(10), sample::GEOMETRY, 3 * TERM as usize);
    for steps in 0.. {
        let storage = FaultyStorage::default();
        let start = stream.start_recording();
        let mut recording = Recording::new(&start, 16 << 10);
        let mut writer = writer(&storage, SyncLevel::None);
        let mut source = StreamSource::new(stream.clone());
        let work: usize =
            (0..steps).map(|_| recording.do_work(Some(&mut source), &mut writer)).sum();
        let position = recording.position();
        recording.abort();
        assert!(recording.is_stopped());
        assert_eq!(recording.do_work(Some(&mut source), &mut writer), 0);
        assert_eq!((recording.position(), recording.failure()), (position, None));
        assert_eq!(start.progress.position.load(Ordering::Relaxed), position);
        if work < steps {
            assert_eq!(position, stream.end());
            break;
        }
        // Before the first step, nothing is opened.
        assert_eq!(storage.names().unwrap().is_empty(), steps == 0);
    }
}

/// A host can send a datagram whose second frame is another stream's, and a local publisher any
/// bytes.
#[test]
fn recording_stops_before_a_wrong_frame() {
    let mut stream = Stream { geometry: sample::GEOMETRY, position: 0, bytes: Vec::new() };
    for number in 0..250 {
        stream.bytes.extend(sample::data(&[number; 40], 7, stream.bytes.len()));
    }
    let wrong: [(usize, &[u8], &str); 7] = [
        (TERM_ID, &12_i32.to_le_bytes(), "wrong term id 12"),
        (STREAM_ID, &5_i32.to_le_bytes(), "wrong stream id 5"),
        (SESSION_ID, &4_i32.to_le_bytes(), "wrong session id 4"),
        (TYPE, &[0x77, 0], "frame type 119"),
        (TERM_OFFSET, &32_i32.to_le_bytes(), "wrong term offset 32"),
        (VERSION, &[9], "frame version 9"),
        (FRAME_LENGTH, &20_000_i32.to_le_bytes(), "frame length 20000"),
    ];
    for (field, bytes, expected) in wrong {
        for (number, level) in [(0, SyncLevel::None), (4, SyncLevel::None), (4, SyncLevel::Data)] {
            let (mut forged, end) = (stream.clone(), number * 96);
            forged.bytes[end + field..][..bytes.len()].copy_from_slice(bytes);
            let storage = FaultyStorage::default();
            let start = stream.start_recording();
            let mut recording = Recording::new(&start, FILE_IO_MAX);
            let mut source = StreamSource::new(forged);
            source.is_end_of_stream = true;
            record(&mut recording, &mut source, &mut writer(&storage, level));
            let failure = recording.failure().unwrap_or_else(|| panic!("{expected} at {end}"));
            assert!(failure.text.contains(expected), "{}", failure.text);
            let mut recorded = stream.clone();
            recorded.bytes.truncate(end);
            assert_eq!(recording.position(), end as i64, "{expected}");
            assert_eq!(start.progress.position.load(Ordering::Relaxed), end as i64);
            assert_recorded(&storage, &recorded);
        }
    }
}

/// While the process was stopped, the driver gave its client up, and the publisher wrote the next
/// term over the block.
#[test]
fn block_of_a_lost_image_is_not_announced() {
    let stream = random_stream(&mut Random::new(15), sample::GEOMETRY, 10_000);
    for level in [SyncLevel::None, SyncLevel::Data] {
        let storage = FaultyStorage::default();
        let start = stream.start_recording();
        let mut recording = Recording::new(&start, 4096);
        let mut writer = writer(&storage, level);
        let mut source = StreamSource::new(stream.clone());
        for _ in 0..2 {
            recording.do_work(Some(&mut source), &mut writer);
        }
        let position = recording.position();
        assert!(position > 0);
        source.is_lost = true;
        record(&mut recording, &mut source, &mut writer);
        assert_eq!((recording.position(), recording.failure()), (position, None));
        assert_eq!(start.progress.position.load(Ordering::Relaxed), position);
    }
}

#[test]
fn recording_ends_with_its_image() {
    let stream = random_stream(&mut Random::new(11), sample::GEOMETRY, 10_000);
    let run = |end: &dyn Fn(&mut StreamSource) -> bool| {
        let storage = FaultyStorage::default();
        let start = stream.start_recording();
        let mut recording = Recording::new(&start, 4096);
        let mut writer = writer(&storage, SyncLevel::None);
        let mut source = StreamSource::new(stream.clone());
        for _ in 0..2 {
            recording.do_work(Some(&mut source), &mut writer);
        }
        let is_there = end(&mut source);
        while !recording.is_stopped() {
            let image = is_there.then_some(&mut source as &mut dyn BlockSource);
            assert_eq!(recording.do_work(image, &mut writer), 1);
        }
        assert_eq!(recording.failure(), None);
        assert!(!start.progress.has_ended.load(Ordering::Relaxed));
        recording.announce_end();
        assert!(start.progress.has_ended.load(Ordering::Relaxed));
        recording.position()
    };
    // The end of the stream lets the rest be recorded, the other ends do not.
    let end = |source: &mut StreamSource| {
        source.is_end_of_stream = true;
        true
    };
    let closed = |source: &mut StreamSource| {
        source.is_closed = true;
        true
    };
    let gone = |_: &mut StreamSource| false;
    assert_eq!(run(&end), stream.end());
    for position in [run(&closed), run(&gone)] {
        assert!((HEADER_LENGTH as i64..=4096).contains(&position), "{position}");
    }
}
