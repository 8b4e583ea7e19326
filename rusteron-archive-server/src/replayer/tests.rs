//! Tests of replays of what is recorded.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusteron_client::{CloseCause, OfferError, Position};
use rusteron_core::log_buffer::{HEADER_LENGTH, TYPE_DATA};
use rusteron_test_support::Random;

use crate::conductor::effect::{RegistrationId, StartReplay};
use crate::protocol::error_code::ErrorCode;
use crate::recorder::sample::{MTU, Stream};
use crate::replayer::block_sink::Fill;
use crate::replayer::replay::{LimitCounters, Replay, ReplayEnd};
use crate::replayer::sample::{
    FILE_IO_MAX, NO_COUNTER, SESSION_ID, SMALL_SEGMENTS, Sink, TERM, assert_replayed, failed,
    failure, reader, record_with, recorded, replay, run, start,
};
use crate::replayer::{BlockReader, BlockSink};
use crate::segment::checksum::Checksum;
use crate::segment::{Geometry, frame, sample};
use crate::storage::Storage;
use crate::storage::faulty::FaultyStorage;

#[test]
fn replay_equals_the_recording() {
    let mut random = Random::new(1);
    for (seed, start_position) in [0, 96, 65_536, 3 * 65_536 + 65_504].into_iter().enumerate() {
        for segment_length in [TERM, 4 * TERM] {
            let geometry = Geometry { start_position, segment_length, ..sample::GEOMETRY };
            let (storage, stream) = recorded(seed as u64, geometry, 5 * TERM as usize);
            let frames = stream.frames();
            for file_io_max in [MTU, 4096, FILE_IO_MAX, 4 * FILE_IO_MAX] {
                let first = random.below(frames.len());
                let last = first + random.below(frames.len() - first);
                // The start, anywhere between frames, and the end within the last frame.
                let from = if random.percent(30) { start_position } else { frames[first].0 };
                let end_position = frames[last].0 + 1;
                let file_io_max = file_io_max as i32;
                let start = StartReplay { end_position, file_io_max, ..start(&stream, from) };
                let mut sink = Sink::new(geometry, from);
                sink.acceptance = 10 + random.below(91);
                let end = run(&mut replay(start), &mut sink, &mut reader(&storage));
                assert_eq!(end, ReplayEnd::Complete);
                assert_replayed(&sink, &stream, from, end_position);
                let next = frames.get(last + 1).map_or(stream.end(), |frame| frame.0);
                assert_eq!(sink.position, next);
            }
        }
    }
}

#[test]
fn extended_recording_is_replayed_as_one() {
    let (storage, mut stream) = recorded(2, SMALL_SEGMENTS, 100_000);
    let extension =
        Stream::random(&mut Random::new(3), SMALL_SEGMENTS, stream.end(), 2 * TERM as usize);
    record_with(&storage, &extension, None);
    stream.bytes.extend(&extension.bytes);
    let mut sink = Sink::new(SMALL_SEGMENTS, 0);
    let end = run(&mut replay(start(&stream, 0)), &mut sink, &mut reader(&storage));
    assert_eq!(end, ReplayEnd::Complete);
    assert_replayed(&sink, &stream, 0, stream.end());
}

#[test]
fn reads_are_counted() {
    let (storage, stream) = recorded(4, sample::GEOMETRY, 10_000);
    let mut reader = reader(&storage);
    run(&mut replay(start(&stream, 0)), &mut Sink::new(stream.geometry, 0), &mut reader);
    assert!(reader.totals.bytes >= stream.end());
    assert!(reader.totals.max_time_ns <= reader.totals.time_ns);
}

#[test]
fn start_within_a_frame_is_invalid() {
    let (storage, stream) = recorded(5, sample::GEOMETRY, 10_000);
    let frames = stream.frames();
    let (position, _) = frames.iter().find(|(_, bytes)| bytes.len() > 64).unwrap();
    let position = position + 32;
    let (code, text) = failed(start(&stream, position), &stream, &mut reader(&storage));
    assert_eq!(code, ErrorCode::InvalidPosition);
    let session_id = (1_i64 << 32) | i64::from(SESSION_ID as u32);
    assert_eq!(
        text,
        format!(
            "replayPosition={position} (segmentFilePosition=0, segmentOffset=0, \
             termOffset={position}, frameOffset=0) does not point to a valid frame, recordingId=3, \
             replaySessionId={session_id}, segmentFile=3-0.rec"
        )
    );
    // A frame of another stream is none, either.
    let geometry = Geometry { stream_id: 9, ..stream.geometry };
    let start = StartReplay { geometry, ..start(&stream, frames[1].0) };
    assert_eq!(failed(start, &stream, &mut reader(&storage)).0, ErrorCode::InvalidPosition);
}

#[test]
fn first_segment_is_awaited_until_the_deadline() {
    let geometry = sample::GEOMETRY;
    let stream = Stream::random(&mut Random::new(6), geometry, 0, 10_000);
    let storage = FaultyStorage::default();
    let (mut reader, mut sink) = (reader(&storage), Sink::new(geometry, 0));
    let now = Instant::now();
    let deadline = now + Duration::from_secs(5);
    let mut late = Replay::new(start(&stream, 0), SESSION_ID, Some(deadline));
    let mut timely = Replay::new(start(&stream, 0), SESSION_ID, Some(deadline));
    for replay in [&mut late, &mut timely] {
        assert_eq!(replay.do_work(&mut sink, &mut reader, &NO_COUNTER, deadline), 0);
        assert!(!replay.has_started());
    }
    let after = deadline + Duration::from_nanos(1);
    assert_eq!(late.do_work(&mut sink, &mut reader, &NO_COUNTER, after), 1);
    let (code, text) = failure(late.end());
    assert_eq!(code, ErrorCode::Generic);
    assert!(text.starts_with("recording segment file not created, recordingId=3, "), "{text}");
    assert!(!late.has_started());

    record_with(&storage, &stream, None);
    assert_eq!(run(&mut timely, &mut sink, &mut reader), ReplayEnd::Complete);
    assert_replayed(&sink, &stream, 0, stream.end());
}

#[test]
fn subscriber_is_awaited_until_the_deadline() {
    let (storage, stream) = recorded(7, sample::GEOMETRY, 10_000);
    let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
    sink.is_connected = false;
    let deadline = Instant::now() + Duration::from_secs(5);
    let start = start(&stream, 0);
    let progress = Arc::clone(&start.progress);
    let mut replay = Replay::new(start, SESSION_ID, Some(deadline));
    assert_eq!(replay.do_work(&mut sink, &mut reader, &NO_COUNTER, deadline), 1);
    // The client learns of the replay before it subscribes.
    assert!(replay.has_started());
    assert_eq!(replay.do_work(&mut sink, &mut reader, &NO_COUNTER, deadline), 0);
    let after = deadline + Duration::from_nanos(1);
    assert_eq!(replay.do_work(&mut sink, &mut reader, &NO_COUNTER, after), 1);
    let (code, text) = failure(replay.end());
    assert_eq!(code, ErrorCode::Generic);
    let expected = "no connection established for replayChannel=aeron:ipc, replayStreamId=1002, ";
    assert!(text.starts_with(expected), "{text}");
    assert!(replay.has_started() && !progress.is_connected.load(Ordering::Relaxed));
}

#[test]
fn replay_without_its_subscriber_is_incomplete() {
    let (storage, stream) = recorded(8, sample::GEOMETRY, 100_000);
    let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
    let start = StartReplay { file_io_max: 4096, ..start(&stream, 0) };
    let progress = Arc::clone(&start.progress);
    let mut replay = replay(start);
    while sink.frames.is_empty() {
        replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now());
    }
    assert!(progress.is_connected.load(Ordering::Relaxed));
    sink.is_connected = false;
    assert_eq!(run(&mut replay, &mut sink, &mut reader), ReplayEnd::Incomplete);
}

/// A closed publication, and one that has reached its last position.
#[test]
fn refused_blocks_end_the_replay() {
    struct Refusing(OfferError, Sink);
    impl BlockSink for Refusing {
        fn session_id(&self) -> i32 {
            self.1.session_id()
        }
        fn stream_id(&self) -> i32 {
            self.1.stream_id()
        }
        fn channel(&self) -> &str {
            self.1.channel()
        }
        fn is_connected(&self) -> bool {
            true
        }
        fn has_window(&self) -> bool {
            true
        }
        fn max_message_length(&self) -> usize {
            self.1.max_message_length()
        }
        fn max_data_length(&self) -> usize {
            self.1.max_data_length()
        }
        unsafe fn fill_block(
            &mut self,
            _: usize,
            _: &mut Fill<'_>,
        ) -> Result<Position, OfferError> {
            Err(self.0)
        }
        fn append_padding(&mut self, _length: usize) -> Result<Position, OfferError> {
            Err(self.0)
        }
    }
    let (storage, stream) = recorded(9, sample::GEOMETRY, 10_000);
    let end = |error| {
        let mut sink = Refusing(error, Sink::new(stream.geometry, 0));
        let mut replay = replay(start(&stream, 0));
        for _ in 0..4 {
            replay.do_work(&mut sink, &mut reader(&storage), &NO_COUNTER, Instant::now());
        }
        replay.end().cloned()
    };
    assert_eq!(end(OfferError::Closed(CloseCause::Handle)), Some(ReplayEnd::Incomplete));
    assert_eq!(end(OfferError::NotConnected), Some(ReplayEnd::Incomplete));
    assert_eq!(end(OfferError::BackPressured), None);
    let (_, text) = failure(end(OfferError::MaxPositionExceeded).as_ref());
    assert!(text.starts_with("cannot publish at position=0 "), "{text}");
}

#[test]
fn deleted_segment_ends_the_replay_with_its_name() {
    let (storage, stream) = recorded(10, SMALL_SEGMENTS, 3 * TERM as usize);
    let (mut reader, mut sink) = (reader(&storage), Sink::new(SMALL_SEGMENTS, 0));
    let mut replay = replay(start(&stream, 0));
    while sink.frames.is_empty() {
        replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now());
    }
    // The open one is still there for those who have it.
    storage.remove("3-0.rec").unwrap();
    storage.remove("3-131072.rec").unwrap();
    let end = run(&mut replay, &mut sink, &mut reader);
    let (code, text) = failure(Some(&end));
    assert_eq!(code, ErrorCode::Generic);
    assert!(text.starts_with("recording segment not found, recordingId=3, "), "{text}");
    assert!(text.ends_with(", segmentFile=3-131072.rec"), "{text}");
    assert_replayed(&sink, &stream, 0, 131_072);
}

#[test]
fn failing_read_ends_the_replay() {
    let (storage, stream) = recorded(11, sample::GEOMETRY, 100_000);
    let text = |steps: usize| {
        let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
        let mut replay = replay(start(&stream, stream.frames()[1].0));
        sink.position = stream.frames()[1].0;
        for _ in 0..steps {
            replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now());
        }
        storage.fail_reads(Some(ErrorKind::PermissionDenied));
        let end = run(&mut replay, &mut sink, &mut reader);
        storage.fail_reads(None);
        failure(Some(&end)).1
    };
    for steps in 0..3 {
        assert!(text(steps).starts_with("permission denied, recordingId=3, "));
    }
}

#[test]
fn damaged_frames_end_the_replay() {
    let (storage, stream) = recorded(12, sample::GEOMETRY, 10_000);
    let frames = stream.frames();
    let third = frames[2].0;
    let text_after = |offset: u64, bytes: &[u8]| {
        let mut file = storage.open("3-0.rec").unwrap();
        let content = storage.content("3-0.rec").unwrap();
        file.write_all_at(bytes, third as u64 + offset).unwrap();
        let mut sink = Sink::new(stream.geometry, 0);
        let end = run(&mut replay(start(&stream, 0)), &mut sink, &mut reader(&storage));
        let (code, text) = failure(Some(&end));
        assert_eq!(code, ErrorCode::Generic);
        // What is whole before it comes first.
        assert_replayed(&sink, &stream, 0, third);
        file.write_all_at(&content, 0).unwrap();
        text
    };
    let place = format!(
        "position={third} (segmentFilePosition=0, segmentOffset=0, termOffset={third}, \
         frameOffset=0)"
    );
    let text = text_after(0, &[0; 4]);
    assert!(text.starts_with(&format!("unexpected end of recording at {place}")), "{text}");
    for (offset, bytes) in [(0, [0xff, 0xff, 0, 0]), (6, [7, 0, 0, 0]), (16, [1, 2, 3, 4])] {
        let text = text_after(offset, &bytes);
        assert!(text.starts_with(&format!("invalid frame at {place}: ")), "{text}");
    }
    // A file that is shorter than the recording.
    storage.open("3-0.rec").unwrap().set_length(third as u64).unwrap();
    let start = StartReplay { end_position: stream.end(), ..start(&stream, third) };
    let text = failed(start, &stream, &mut reader(&storage)).1;
    assert!(text.starts_with("failed to read fragment header, "), "{text}");
}

/// The end of a failed replay revokes its publication, and takes from subscribers what they have
/// not received.
#[test]
fn failed_replay_waits_for_its_subscribers() {
    struct Received(bool);
    impl LimitCounters for Received {
        fn is_allocated(&self, _id: i32) -> bool {
            false
        }
        fn value(&self, _id: i32, _registration_id: RegistrationId) -> Option<i64> {
            None
        }
        fn have_received(&self, _session_id: i32, _stream_id: i32, position: i64) -> bool {
            assert!(position > 0);
            self.0
        }
    }
    let (storage, stream) = recorded(16, sample::GEOMETRY, 10_000);
    storage.open("3-0.rec").unwrap().set_length(stream.frames()[2].0 as u64).unwrap();
    let now = Instant::now();
    for end in 0..4 {
        let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
        let mut replay = replay(start(&stream, 0));
        while replay.do_work(&mut sink, &mut reader, &Received(false), now) > 0 {}
        assert_eq!(replay.end(), None);
        let later = now + if end == 0 { Duration::from_secs(60) } else { Duration::ZERO };
        sink.is_connected = end != 1;
        if end == 2 {
            replay.abort();
        }
        replay.do_work(&mut sink, &mut reader, &Received(end == 3), later);
        let (_, text) = failure(replay.end());
        assert!(text.starts_with("unexpected end of recording"), "{text}");
    }
}

#[test]
fn file_cut_under_a_replay_ends_it() {
    let (storage, stream) = recorded(13, sample::GEOMETRY, 100_000);
    let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
    let mut replay = replay(StartReplay { file_io_max: 4096, ..start(&stream, 0) });
    while sink.frames.is_empty() {
        replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now());
    }
    storage.open("3-0.rec").unwrap().set_length(sink.position as u64).unwrap();
    let (_, text) = failure(Some(&run(&mut replay, &mut sink, &mut reader)));
    let expected = format!("unexpected end of recording at position={} ", sink.position);
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.contains("`rusteron archive verify --all-segments`"), "{text}");
}

#[test]
fn checksums_are_verified() {
    for checksum in [Checksum::Crc32, Checksum::Crc32c] {
        let stream = Stream::random(&mut Random::new(14), sample::GEOMETRY, 0, 100_000);
        let storage = FaultyStorage::default();
        record_with(&storage, &stream, Some(checksum));
        let mut reader = BlockReader::new(Arc::new(storage.clone()), Some(checksum));
        let mut sink = Sink::new(stream.geometry, 0);
        let end = run(&mut replay(start(&stream, 0)), &mut sink, &mut reader);
        assert_eq!(end, ReplayEnd::Complete);
        assert_replayed(&sink, &stream, 0, stream.end());

        let frames = stream.frames();
        let is_long = |frame: &&(i64, &[u8])| {
            frame::frame_type(frame.1) == TYPE_DATA && frame.1.len() > HEADER_LENGTH
        };
        let (position, bytes) = frames.iter().find(is_long).unwrap();
        let mut file = storage.open("3-0.rec").unwrap();
        let payload = *position as u64 + HEADER_LENGTH as u64;
        file.write_all_at(&[!bytes[HEADER_LENGTH]], payload).unwrap();
        let text = failed(start(&stream, 0), &stream, &mut reader).1;
        let expected = format!("CRC checksum mismatch at position={position} ");
        assert!(text.starts_with(&expected), "{text}");
    }
}

/// All that dead publishers left behind becomes one frame of padding.
#[test]
fn long_padding_is_appended_in_parts() {
    let geometry = sample::GEOMETRY;
    for padding_length in [32, 8192, 8224, 8256, 65_472] {
        let mut stream = Stream { geometry, position: 0, bytes: sample::data(b"before", 7, 0) };
        stream.bytes.extend(sample::padding(padding_length, 7, 64));
        stream.bytes.resize(64 + padding_length, 0);
        let after = stream.end() as usize;
        let (term_id, term_offset) = (7 + (after >> 16) as i32, after & 0xffff);
        stream.bytes.extend(sample::data(b"after", term_id, term_offset));
        let storage = FaultyStorage::default();
        record_with(&storage, &stream, None);
        let mut sink = Sink::new(geometry, 0);
        sink.acceptance = 50;
        let end = run(&mut replay(start(&stream, 0)), &mut sink, &mut reader(&storage));
        assert_eq!(end, ReplayEnd::Complete);
        assert_replayed(&sink, &stream, 0, stream.end());
    }
}

#[test]
fn abort_is_incomplete_at_every_step() {
    let (storage, stream) = recorded(15, SMALL_SEGMENTS, 2 * TERM as usize);
    for steps in 0.. {
        let mut sink = Sink::new(SMALL_SEGMENTS, 0);
        let mut reader = reader(&storage);
        let mut replay = replay(StartReplay { file_io_max: 16 << 10, ..start(&stream, 0) });
        for _ in 0..steps {
            replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now());
        }
        let end = replay.end().cloned();
        replay.abort();
        assert_eq!(replay.has_started(), steps > 0);
        assert_eq!(replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now()), 0);
        if end.is_some() {
            assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
            break;
        }
        assert_eq!(replay.end(), Some(&ReplayEnd::Incomplete));
        let replayed = sink.frames.last().map_or(0, |(position, _)| position + 1);
        assert_replayed(&sink, &stream, 0, replayed);
    }
}

#[test]
fn impossible_geometry_is_an_error() {
    let (storage, stream) = recorded(21, sample::GEOMETRY, 1000);
    for (term_length, segment_length) in [(0, TERM), (TERM, 0), (i32::MIN, -1), (TERM, TERM / 2)] {
        let geometry = Geometry { term_length, segment_length, ..stream.geometry };
        let start = StartReplay { geometry, ..start(&stream, 0) };
        let (code, text) = failed(start, &stream, &mut reader(&storage));
        assert_eq!(code, ErrorCode::Generic);
        assert!(text.contains("must be a power of two"), "{text}");
    }
}
