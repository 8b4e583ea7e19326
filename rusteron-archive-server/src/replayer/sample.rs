//! Sinks and recordings for tests of replays.

use std::sync::Arc;
use std::time::Instant;

use rusteron_client::{OfferError, Position};
use rusteron_core::log_buffer::{HEADER_LENGTH, TYPE_DATA, align};
use rusteron_test_support::Random;

use crate::conductor::effect::{RegistrationId, ReplayLimit, ReplayProgress, StartReplay};
use crate::protocol::error_code::ErrorCode;
use crate::recorder::sample::{MTU, Stream, StreamSource};
use crate::recorder::{BlockWriter, Recording};
use crate::replayer::block_sink::Fill;
use crate::replayer::replay::{LimitCounters, Replay, ReplayEnd};
use crate::replayer::{BlockReader, BlockSink};
use crate::segment::checksum::Checksum;
use crate::segment::frame::{self, FrameCheck};
use crate::segment::{Geometry, sample};
use crate::storage::SyncLevel;
use crate::storage::faulty::FaultyStorage;

pub(super) const TERM: i32 = 64 << 10;
pub(super) const FILE_IO_MAX: usize = 64 << 10;
pub(super) const SESSION_ID: i32 = -77;
pub(super) const STREAM_ID: i32 = 1002;
pub(super) const SMALL_SEGMENTS: Geometry = Geometry { segment_length: TERM, ..sample::GEOMETRY };

/// A publication that stands at a position, and checks what it is offered.
pub(super) struct Sink {
    pub(super) geometry: Geometry,
    pub(super) position: i64,
    pub(super) is_connected: bool,
    pub(super) max_message_length: usize,
    /// Attempts in a hundred that are accepted.
    pub(super) acceptance: usize,
    pub(super) random: Random,
    /// Data frames with their positions.
    pub(super) frames: Vec<(i64, Vec<u8>)>,
}

impl Sink {
    pub(super) fn new(geometry: Geometry, position: i64) -> Self {
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

    fn max_data_length(&self) -> usize {
        MTU
    }

    unsafe fn fill_block(
        &mut self,
        length: usize,
        fill: &mut Fill<'_>,
    ) -> Result<Position, OfferError> {
        self.attempt()?;
        let term_length = self.geometry.term_length as usize;
        let term_offset = self.geometry.term_offset(self.position);
        let mut block = vec![0; length.min(term_length - term_offset)];
        let (used, first) = fill(&mut block, self.geometry.term_id(self.position), term_offset);
        let is_visible = block.iter().take(4).any(|byte| *byte != 0);
        assert!(!is_visible, "the block would be visible too early");
        block.truncate(used);
        if used == 0 {
            return Ok(self.position);
        }
        block[..4].copy_from_slice(&first.to_ne_bytes());
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

/// A counter with id 4 and registration id 5.
pub(super) enum OneCounter {
    Allocated(i64),
    /// With its last value.
    Freed(i64),
}

impl LimitCounters for OneCounter {
    fn is_allocated(&self, _id: i32) -> bool {
        matches!(self, Self::Allocated(_))
    }

    fn value(&self, id: i32, registration_id: RegistrationId) -> Option<i64> {
        assert_eq!(id, 4);
        let (Self::Allocated(value) | Self::Freed(value)) = self;
        (registration_id == 5).then_some(*value)
    }

    fn have_received(&self, session_id: i32, stream_id: i32, _position: i64) -> bool {
        assert_eq!((session_id, stream_id), (SESSION_ID, STREAM_ID));
        true
    }
}

pub(super) const NO_COUNTER: OneCounter = OneCounter::Freed(0);

pub(super) fn reader(storage: &FaultyStorage) -> BlockReader {
    BlockReader::new(Arc::new(storage.clone()), None)
}

pub(super) fn record_with(storage: &FaultyStorage, stream: &Stream, checksum: Option<Checksum>) {
    let mut writer = BlockWriter::new(Arc::new(storage.clone()), SyncLevel::None, checksum);
    let mut recording = Recording::new(&stream.start_recording(), FILE_IO_MAX);
    let mut source = StreamSource::new(stream.clone());
    while recording.do_work(Some(&mut source), &mut writer) > 0 {}
    assert_eq!(recording.position(), stream.end());
}

/// Returns a random stream from the start of a recording, and where it is recorded.
pub(super) fn recorded(seed: u64, geometry: Geometry, length: usize) -> (FaultyStorage, Stream) {
    let random = &mut Random::new(seed);
    let stream = Stream::random(random, geometry, geometry.start_position, length);
    let storage = FaultyStorage::default();
    record_with(&storage, &stream, None);
    (storage, stream)
}

/// Replays a stopped recording up to its end.
pub(super) fn start(stream: &Stream, position: i64) -> StartReplay {
    StartReplay {
        replay: 1.into(),
        geometry: stream.geometry,
        channel: "aeron:ipc".to_owned(),
        stream_id: STREAM_ID,
        position,
        progress: ReplayProgress::new(0),
        end_position: stream.end(),
        stop_position: stream.end(),
        limit: ReplayLimit::None,
        mtu: MTU as i32,
        file_io_max: FILE_IO_MAX as i32,
    }
}

/// Replays what lies behind the start, with a limit.
pub(super) fn follow(stream: &Stream, stop_position: i64, limit: ReplayLimit) -> StartReplay {
    let position = stream.geometry.start_position;
    StartReplay { end_position: i64::MAX, stop_position, limit, ..start(stream, position) }
}

pub(super) fn replay(start: StartReplay) -> Replay {
    Replay::new(start, SESSION_ID, None)
}

/// Replays until the end.
pub(super) fn run(replay: &mut Replay, sink: &mut Sink, reader: &mut BlockReader) -> ReplayEnd {
    loop {
        replay.do_work(sink, reader, &NO_COUNTER, Instant::now());
        if let Some(end) = replay.end() {
            return end.clone();
        }
    }
}

pub(super) fn failure(end: Option<&ReplayEnd>) -> (ErrorCode, String) {
    match end {
        Some(ReplayEnd::Failed(failure)) => (failure.code, failure.text.clone()),
        other => panic!("{other:?}"),
    }
}

/// Replays until it fails.
pub(super) fn failed(
    start: StartReplay,
    stream: &Stream,
    reader: &mut BlockReader,
) -> (ErrorCode, String) {
    let mut sink = Sink::new(stream.geometry, start.position);
    failure(Some(&run(&mut replay(start), &mut sink, reader)))
}

/// Asserts that a sink got the data frames that begin from one position to another, with its ids.
#[track_caller]
pub(super) fn assert_replayed(sink: &Sink, stream: &Stream, from: i64, to: i64) {
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
