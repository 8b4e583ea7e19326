//! Tests of replays.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{CloseCause, OfferError, Position};
use rusteron_core::log_buffer::{HEADER_LENGTH, TYPE_DATA, align};
use rusteron_test_support::{DEADLINE, Random};

use crate::conductor::effect::{Progress, RegistrationId, ReplayLimit, StartReplay};
use crate::protocol::error_code::ErrorCode;
use crate::recorder::sample::{MTU, Stream, StreamSource};
use crate::recorder::{BlockWriter, Recording};
use crate::replayer::replay::{LimitCounters, Replay, ReplayEnd};
use crate::replayer::{BlockReader, BlockSink};
use crate::segment::checksum::Checksum;
use crate::segment::frame::{self, FrameCheck};
use crate::segment::{Geometry, sample};
use crate::storage::faulty::FaultyStorage;
use crate::storage::{Directory, Storage, SyncLevel};

const TERM: i32 = 64 << 10;
const FILE_IO_MAX: usize = 64 << 10;
const SESSION_ID: i32 = -77;
const STREAM_ID: i32 = 1002;
const SMALL_SEGMENTS: Geometry = Geometry { segment_length: TERM, ..sample::GEOMETRY };

/// A publication that stands at a position, and checks what it is offered.
struct Sink {
    geometry: Geometry,
    position: i64,
    is_connected: bool,
    max_message_length: usize,
    /// Attempts in a hundred that are accepted.
    acceptance: usize,
    random: Random,
    /// Data frames with their positions.
    frames: Vec<(i64, Vec<u8>)>,
}

impl Sink {
    fn new(geometry: Geometry, position: i64) -> Self {
        Self {
            geometry,
            position,
            is_connected: true,
            max_message_length: TERM as usize / 8,
            acceptance: 100,
            random: Random::new(position as u64),
            frames: Vec::new(),
        }
    }

    fn attempt(&mut self) -> Result<(), OfferError> {
        if !self.is_connected {
            return Err(OfferError::NotConnected);
        }
        let errors = [OfferError::BackPressured, OfferError::AdminAction];
        let error = errors[self.random.below(2)];
        if self.random.percent(self.acceptance) { Ok(()) } else { Err(error) }
    }
}

impl BlockSink for Sink {
    fn session_id(&self) -> i32 {
        SESSION_ID
    }

    fn stream_id(&self) -> i32 {
        STREAM_ID
    }

    fn channel(&self) -> &str {
        "aeron:ipc"
    }

    fn is_connected(&self) -> bool {
        self.is_connected
    }

    fn has_window(&self) -> bool {
        true
    }

    fn max_message_length(&self) -> usize {
        self.max_message_length
    }

    fn offer_block(&mut self, block: &[u8]) -> Result<Position, OfferError> {
        self.attempt()?;
        let term_length = self.geometry.term_length as usize;
        let check = FrameCheck { stream_id: STREAM_ID, term_length, max_data_length: MTU };
        let term_id = self.geometry.term_id(self.position);
        let mut offset = 0;
        while offset < block.len() {
            let rest = &block[offset..];
            let term_offset = self.geometry.term_offset(self.position);
            assert_eq!(self.geometry.term_id(self.position), term_id, "beyond the term");
            let frame = check.check(rest.first_chunk().unwrap(), term_id, term_offset).unwrap();
            assert_eq!(frame::frame_type(rest), TYPE_DATA);
            assert_eq!(frame::session_id(rest), SESSION_ID);
            let length = frame.aligned_length();
            self.frames.push((self.position, rest[..length].to_vec()));
            self.position += length as i64;
            offset += length;
        }
        assert!(offset > 0);
        Ok(self.position)
    }

    fn append_padding(&mut self, length: usize) -> Result<Position, OfferError> {
        self.attempt()?;
        assert!(length <= self.max_message_length);
        self.position += align(HEADER_LENGTH + length) as i64;
        Ok(self.position)
    }
}

/// A counter with registration id 5.
struct OneCounter(Option<i64>);

impl LimitCounters for OneCounter {
    fn value(&self, id: i32, registration_id: RegistrationId) -> Option<i64> {
        assert_eq!(id, 4);
        self.0.filter(|_| registration_id == 5)
    }
}

const NO_COUNTER: OneCounter = OneCounter(None);

fn reader(storage: &FaultyStorage) -> BlockReader {
    BlockReader::new(Arc::new(storage.clone()), None)
}

fn record_with(storage: &FaultyStorage, stream: &Stream, checksum: Option<Checksum>) {
    let mut writer = BlockWriter::new(Arc::new(storage.clone()), SyncLevel::None, checksum);
    let mut recording = Recording::new(&stream.start_recording(), FILE_IO_MAX);
    let mut source = StreamSource::new(stream.clone());
    while recording.do_work(Some(&mut source), &mut writer) > 0 {}
    assert_eq!(recording.position(), stream.end());
}

/// Returns a random stream from the start of a recording, and where it is recorded.
fn recorded(seed: u64, geometry: Geometry, length: usize) -> (FaultyStorage, Stream) {
    let random = &mut Random::new(seed);
    let stream = Stream::random(random, geometry, geometry.start_position, length);
    let storage = FaultyStorage::default();
    record_with(&storage, &stream, None);
    (storage, stream)
}

/// Replays a stopped recording up to its end.
fn start(stream: &Stream, position: i64) -> StartReplay {
    let geometry = &stream.geometry;
    StartReplay {
        replay: 1,
        recording: geometry.recording_id,
        channel: "aeron:ipc".to_owned(),
        stream_id: STREAM_ID,
        start_position: geometry.start_position,
        position,
        end_position: stream.end(),
        stop_position: stream.end(),
        limit: ReplayLimit::None,
        initial_term_id: geometry.initial_term_id,
        term_length: geometry.term_length,
        segment_length: geometry.segment_length,
        mtu: MTU as i32,
        recorded_stream_id: geometry.stream_id,
        file_io_max: FILE_IO_MAX as i32,
    }
}

/// Replays what lies behind the start, with a limit.
fn follow(stream: &Stream, stop_position: i64, limit: ReplayLimit) -> StartReplay {
    let position = stream.geometry.start_position;
    StartReplay { end_position: i64::MAX, stop_position, limit, ..start(stream, position) }
}

fn replay(start: StartReplay) -> Replay {
    Replay::new(start, SESSION_ID, None)
}

/// Replays until the end.
fn run(replay: &mut Replay, sink: &mut Sink, reader: &mut BlockReader) -> ReplayEnd {
    loop {
        replay.do_work(sink, reader, &NO_COUNTER, Instant::now());
        if let Some(end) = replay.end() {
            return end.clone();
        }
    }
}

fn failure(end: Option<&ReplayEnd>) -> (ErrorCode, String) {
    match end {
        Some(ReplayEnd::Failed(failure)) => (failure.code, failure.text.clone()),
        other => panic!("{other:?}"),
    }
}

/// Replays until it fails.
fn failed(start: StartReplay, stream: &Stream, reader: &mut BlockReader) -> (ErrorCode, String) {
    let mut sink = Sink::new(stream.geometry, start.position);
    failure(Some(&run(&mut replay(start), &mut sink, reader)))
}

/// Asserts that a sink got the data frames that begin from one position to another, with its ids.
#[track_caller]
fn assert_replayed(sink: &Sink, stream: &Stream, from: i64, to: i64) {
    let mut expected = Vec::new();
    for (position, bytes) in stream.frames() {
        if (from..to).contains(&position) && frame::frame_type(bytes) == TYPE_DATA {
            let mut bytes = bytes.to_vec();
            frame::set_session_id(&mut bytes, SESSION_ID);
            frame::set_stream_id(&mut bytes, STREAM_ID);
            expected.push((position, bytes));
        }
    }
    assert_eq!(sink.frames.len(), expected.len());
    assert!(sink.frames == expected);
}

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
    let start = StartReplay { recorded_stream_id: 9, ..start(&stream, frames[1].0) };
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
    let mut replay = Replay::new(start(&stream, 0), SESSION_ID, Some(deadline));
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
    assert!(replay.has_started());
}

#[test]
fn replay_without_its_subscriber_is_incomplete() {
    let (storage, stream) = recorded(8, sample::GEOMETRY, 100_000);
    let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
    let mut replay = replay(StartReplay { file_io_max: 4096, ..start(&stream, 0) });
    while sink.frames.is_empty() {
        replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now());
    }
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
        fn offer_block(&mut self, _block: &[u8]) -> Result<Position, OfferError> {
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
        for _ in 0..3 {
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
        let (code, text) = failed(start(&stream, 0), &stream, &mut reader(&storage));
        assert_eq!(code, ErrorCode::Generic);
        file.write_all_at(&content, 0).unwrap();
        text
    };
    let place = format!(
        "position={third} (segmentFilePosition=0, segmentOffset=0, termOffset=0, \
         frameOffset={third})"
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
fn recording_in_progress_is_followed() {
    let (storage, stream) = recorded(16, SMALL_SEGMENTS, 3 * TERM as usize);
    let start_recording = stream.start_recording();
    let progress: &Arc<Progress> = &start_recording.progress;
    let (mut reader, mut sink) = (reader(&storage), Sink::new(SMALL_SEGMENTS, 0));
    let mut replay = replay(follow(&stream, 0, ReplayLimit::Recording(Arc::clone(progress))));
    let mut work = |replay: &mut Replay, sink: &mut Sink| {
        while replay.do_work(sink, &mut reader, &NO_COUNTER, Instant::now()) > 0 {}
    };
    let positions: Vec<i64> = stream.frames().iter().map(|(position, _)| *position).collect();
    for &position in positions.iter().step_by(7) {
        progress.position.store(position, Ordering::Release);
        work(&mut replay, &mut sink);
        assert_eq!((sink.position, replay.end()), (position, None));
        assert_replayed(&sink, &stream, 0, position);
    }
    progress.position.store(stream.end(), Ordering::Release);
    progress.has_ended.store(true, Ordering::Release);
    work(&mut replay, &mut sink);
    assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
    assert_replayed(&sink, &stream, 0, stream.end());
}

/// A replay of a certain length does not go beyond it when the recording ends behind it.
#[test]
fn end_of_the_recording_does_not_lengthen_a_replay() {
    let (storage, stream) = recorded(17, sample::GEOMETRY, 10_000);
    let start_recording = stream.start_recording();
    let progress = &start_recording.progress;
    let end_position = stream.frames()[5].0;
    let limit = ReplayLimit::Recording(Arc::clone(progress));
    let start = StartReplay { end_position, ..follow(&stream, 0, limit) };
    progress.position.store(stream.end(), Ordering::Release);
    progress.has_ended.store(true, Ordering::Release);
    let mut sink = Sink::new(stream.geometry, 0);
    let end = run(&mut replay(start), &mut sink, &mut reader(&storage));
    assert_eq!(end, ReplayEnd::Complete);
    assert_replayed(&sink, &stream, 0, end_position);
}

#[test]
fn counter_bounds_the_replay_while_it_is_there() {
    let (storage, stream) = recorded(18, sample::GEOMETRY, 100_000);
    let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
    let limit = ReplayLimit::Counter { id: 4, registration_id: 5 };
    let mut replay = replay(follow(&stream, 0, limit));
    let mut work = |replay: &mut Replay, sink: &mut Sink, value| {
        while replay.do_work(sink, &mut reader, &OneCounter(value), Instant::now()) > 0 {}
    };
    let frames = stream.frames();
    let positions: Vec<i64> = [0, 3, 4, 20, 10].map(|index: usize| frames[index].0).to_vec();
    let mut max = 0;
    for position in positions {
        work(&mut replay, &mut sink, Some(position));
        max = max.max(position);
        assert_eq!((sink.position, replay.end()), (max, None));
    }
    // In the middle of a frame.
    work(&mut replay, &mut sink, Some(frames[22].0 + 1));
    assert_eq!((sink.position, replay.end()), (frames[22].0, None));
    work(&mut replay, &mut sink, None);
    assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
    assert_replayed(&sink, &stream, 0, frames[22].0);
}

/// Another counter has got the id.
#[test]
fn counter_of_another_registration_is_the_end() {
    let (storage, stream) = recorded(19, sample::GEOMETRY, 10_000);
    let limit = ReplayLimit::Counter { id: 4, registration_id: 6 };
    let stop_position = stream.frames()[4].0;
    let mut sink = Sink::new(stream.geometry, 0);
    let mut replay = replay(follow(&stream, stop_position, limit));
    let counters = OneCounter(Some(stream.end()));
    while replay.end().is_none() {
        replay.do_work(&mut sink, &mut reader(&storage), &counters, Instant::now());
    }
    assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
    assert_replayed(&sink, &stream, 0, stop_position);
}

#[test]
fn limit_beyond_the_recording_is_an_error() {
    let (storage, stream) = recorded(20, sample::GEOMETRY, 10_000);
    let limit = ReplayLimit::Counter { id: 4, registration_id: 5 };
    let mut sink = Sink::new(stream.geometry, 0);
    let mut replay = replay(follow(&stream, 0, limit));
    let counters = OneCounter(Some(stream.end() + 4096));
    while replay.end().is_none() {
        replay.do_work(&mut sink, &mut reader(&storage), &counters, Instant::now());
    }
    let (_, text) = failure(replay.end());
    let expected = format!("unexpected end of recording at position={} ", stream.end());
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn impossible_geometry_is_an_error() {
    let (storage, stream) = recorded(21, sample::GEOMETRY, 1000);
    for (term_length, segment_length) in [(0, TERM), (TERM, 0), (i32::MIN, -1), (TERM, TERM / 2)] {
        let start = StartReplay { term_length, segment_length, ..start(&stream, 0) };
        let (code, text) = failed(start, &stream, &mut reader(&storage));
        assert_eq!(code, ErrorCode::Generic);
        assert!(text.contains("must be a power of two"), "{text}");
    }
}

/// The recorder on its thread, the replayer on another, real files between them.
#[test]
fn growing_recording_is_followed_on_another_thread() {
    let dir = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Directory::open(dir.path()).unwrap());
    let geometry = SMALL_SEGMENTS;
    let stream = Stream::random(&mut Random::new(22), geometry, 0, 20 * TERM as usize);
    let start_recording = stream.start_recording();
    let limit = ReplayLimit::Recording(Arc::clone(&start_recording.progress));
    let start = follow(&stream, 0, limit);
    let mut sink = Sink::new(geometry, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = BlockWriter::new(Arc::clone(&storage), SyncLevel::None, None);
            let mut recording = Recording::new(&start_recording, 8192);
            let mut source = StreamSource::new(stream.clone());
            source.is_end_of_stream = true;
            while !recording.is_stopped() {
                recording.do_work(Some(&mut source), &mut writer);
                // The replayer has often nothing to do.
                thread::yield_now();
            }
            recording.announce_end();
        });
        let mut reader = BlockReader::new(Arc::clone(&storage), None);
        let mut replay = replay(start);
        let begin = Instant::now();
        while replay.end().is_none() {
            replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now());
            assert!(begin.elapsed() < DEADLINE);
        }
        assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
    });
    assert_replayed(&sink, &stream, 0, stream.end());
}
