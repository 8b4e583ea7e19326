//! The state machine of one replay: from segment files to the blocks of a publication.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, CounterState, OfferError, Position, StreamPositions};
use rusteron_core::log_buffer::{FRAME_ALIGNMENT, HEADER_LENGTH, align};

use crate::conductor::effect::{Failure, RegistrationId, ReplayLimit, ReplayProgress, StartReplay};
use crate::ids::ReplaySessionId;
use crate::protocol::error_code::ErrorCode;
use crate::replayer::{BlockReader, BlockSink};
use crate::segment::Geometry;
use crate::segment::block::{BlockCheck, CheckedBlock};
use crate::segment::frame::{FrameCheck, FrameFault};
use crate::storage::StorageFile;

/// The most bytes of a read, below the setting's default: what is read is still in the processor's cache when its frames
/// are checked and received.
const MAX_BLOCK_LENGTH: usize = 256 << 10;

/// How long a failed replay waits for its subscribers, which lose what they have not received when
/// its publication is revoked: as long as drivers keep closed publications by default.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The counters that bound replays.
pub(crate) trait LimitCounters {
    /// Tells whether there is a counter with the id.
    fn is_allocated(&self, id: i32) -> bool;

    /// Returns the value of the counter with this registration id, the last one if it has been freed. `None` once another
    /// counter has the id.
    fn value(&self, id: i32, registration_id: RegistrationId) -> Option<i64>;

    /// Tells whether the subscribers of a stream have come to a position, as far as the driver
    /// knows of any.
    fn have_received(&self, session_id: i32, stream_id: i32, position: i64) -> bool;
}

impl LimitCounters for Aeron {
    fn is_allocated(&self, id: i32) -> bool {
        self.counters_reader().state(id) == Some(CounterState::Allocated)
    }

    fn value(&self, id: i32, registration_id: RegistrationId) -> Option<i64> {
        self.counters_reader().last_value(id, registration_id.get())
    }

    fn have_received(&self, session_id: i32, stream_id: i32, position: i64) -> bool {
        let streams = self.counters_reader().stream_positions();
        let mut positions = streams
            .iter()
            .filter(|stream| (stream.session_id, stream.stream_id) == (session_id, stream_id))
            .flat_map(StreamPositions::subscriber_positions)
            .peekable();
        positions.peek().is_some() && positions.all(|received| received >= position)
    }
}

/// A replay in progress.
#[derive(Debug)]
pub(crate) struct Replay {
    geometry: Geometry,
    /// The session id that clients see.
    session_id: ReplaySessionId,
    /// Where the recording reached when the replay was requested.
    stop_position: i64,
    limit: ReplayLimit,
    mtu: usize,
    file_io_max: usize,
    /// `None` is never.
    connect_deadline: Option<Instant>,
    position: i64,
    /// Where to end. The limit can pull it back.
    end_position: i64,
    /// Up to where there are frames to read.
    available: i64,
    segment_base: i64,
    progress: Arc<ReplayProgress>,
    /// The open segment. `None` until the first one is there.
    file: Option<Box<dyn StorageFile>>,
    /// The rest of padding that was not appended at once, header included.
    padding: usize,
    has_started: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Waits for the first segment, then for a subscriber.
    Init,
    Replaying,
    /// Waits until the subscribers have what was offered before.
    Failing(Failure, Instant),
    Done(ReplayEnd),
}

/// How a replay ended. Unless it is complete, its publication is revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplayEnd {
    Complete,
    /// Aborted, or without a subscriber.
    Incomplete,
    Failed(Failure),
}

impl Replay {
    /// `publication_session` is the session id of the sink.
    pub(crate) fn new(
        start: StartReplay,
        publication_session: i32,
        connect_deadline: Option<Instant>,
    ) -> Self {
        Self {
            geometry: start.geometry,
            session_id: start.replay.session_id(publication_session),
            stop_position: start.stop_position,
            limit: start.limit,
            mtu: usize::try_from(start.mtu).unwrap_or(0),
            file_io_max: usize::try_from(start.file_io_max).unwrap_or(0),
            connect_deadline,
            position: start.position,
            end_position: start.end_position,
            available: start.stop_position,
            segment_base: start.geometry.base(start.position),
            progress: start.progress,
            file: None,
            padding: 0,
            has_started: false,
            state: State::Init,
        }
    }

    /// Tells whether the first segment has been opened. The client is told then, before there is a
    /// subscriber.
    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Returns the outcome, once there is one.
    pub(crate) fn end(&self) -> Option<&ReplayEnd> {
        match &self.state {
            State::Done(end) => Some(end),
            State::Init | State::Replaying | State::Failing(..) => None,
        }
    }

    pub(crate) fn abort(&mut self) {
        match &self.state {
            State::Init | State::Replaying => self.finish(ReplayEnd::Incomplete),
            State::Failing(failure, _) => self.finish(ReplayEnd::Failed(failure.clone())),
            State::Done(_) => {}
        }
    }

    /// Waits, or offers what one read gives. Returns 0 if there was nothing to do.
    pub(crate) fn do_work(
        &mut self,
        sink: &mut dyn BlockSink,
        reader: &mut BlockReader,
        counters: &dyn LimitCounters,
        now: Instant,
    ) -> usize {
        let failure = match &self.state {
            State::Init => match self.init(sink, reader, now) {
                Ok(work_count) => return work_count,
                Err(failure) => failure,
            },
            State::Replaying => match self.replay(sink, reader, counters) {
                Ok(work_count) => return work_count,
                Err(failure) => {
                    self.state = State::Failing(failure, now + DRAIN_TIMEOUT);
                    return 1;
                }
            },
            State::Failing(failure, deadline) => {
                let (session_id, stream_id) = (sink.session_id(), sink.stream_id());
                let is_waiting = sink.is_connected()
                    && now < *deadline
                    && !counters.have_received(session_id, stream_id, self.position);
                if is_waiting {
                    return 0;
                }
                failure.clone()
            }
            State::Done(_) => return 0,
        };
        self.finish(ReplayEnd::Failed(failure));
        1
    }

    fn init(
        &mut self,
        sink: &dyn BlockSink,
        reader: &BlockReader,
        now: Instant,
    ) -> Result<usize, Failure> {
        let is_late = self.connect_deadline.is_some_and(|deadline| now > deadline);
        if self.file.is_none() {
            self.geometry.check().map_err(|fault| self.failure(&fault))?;
            let Some(file) = self.open(reader)? else {
                if is_late {
                    return Err(self.failure("recording segment file not created"));
                }
                return Ok(0);
            };
            // There may be no frame where the recording ends.
            if self.position > self.geometry.start_position && self.position != self.stop_position {
                self.check_first_frame(file.as_ref())?;
            }
            self.file = Some(file);
            self.has_started = true;
            return Ok(1);
        }
        if sink.is_connected() {
            self.progress.is_connected.store(true, Ordering::Release);
            self.state = State::Replaying;
            return Ok(1);
        }
        if is_late {
            let (channel, stream_id) = (sink.channel(), sink.stream_id());
            return Err(self.failure(&format!(
                "no connection established for replayChannel={channel}, replayStreamId={stream_id}"
            )));
        }
        Ok(0)
    }

    /// Opens the segment with the current base. Returns `None` if the file does not exist.
    fn open(&self, reader: &BlockReader) -> Result<Option<Box<dyn StorageFile>>, Failure> {
        let name = self.geometry.name(self.segment_base);
        reader.open(&name).map_err(|error| self.failure(&error.to_string()))
    }

    /// A position within a frame would replay payload as frames.
    fn check_first_frame(&self, file: &dyn StorageFile) -> Result<(), Failure> {
        let mut header = [0; HEADER_LENGTH];
        let offset = self.geometry.offset(self.position);
        let read =
            file.read_at(&mut header, offset).map_err(|error| self.failure(&error.to_string()))?;
        if read < HEADER_LENGTH {
            return Err(self.failure("failed to read fragment header"));
        }
        let term_offset = self.geometry.term_offset(self.position);
        let term_id = self.geometry.term_id(self.position);
        self.frame_check().check_place(&header, term_id, term_offset).map_err(|_| {
            let place = self.place();
            let text = format!("replayPosition={place} does not point to a valid frame");
            Failure::new(ErrorCode::InvalidPosition, self.failure(&text).text)
        })
    }

    fn replay(
        &mut self,
        sink: &mut dyn BlockSink,
        reader: &mut BlockReader,
        counters: &dyn LimitCounters,
    ) -> Result<usize, Failure> {
        if !sink.is_connected() {
            self.finish(ReplayEnd::Incomplete);
            return Ok(1);
        }
        self.follow_limit(counters);
        if self.position >= self.end_position {
            self.finish(ReplayEnd::Complete);
            return Ok(1);
        }
        if self.padding > 0 {
            return self.append_padding(sink);
        }
        if self.position >= self.available || !sink.has_window() {
            return Ok(0);
        }
        self.open_next(reader)?;
        self.offer_block(sink, reader)
    }

    /// Finds out up to where there are frames to read, and whether that is the end.
    fn follow_limit(&mut self, counters: &dyn LimitCounters) {
        let is_final = match &self.limit {
            ReplayLimit::None => true,
            ReplayLimit::Recording(_) if self.position < self.available => false,
            ReplayLimit::Recording(progress) => {
                // The flag first: once it is set, the position stays.
                let has_ended = progress.has_ended.load(Ordering::Acquire);
                self.available = progress.position.load(Ordering::Acquire);
                has_ended
            }
            // In each turn, as the value goes with the next counter. As in Java, a smaller value
            // takes nothing back.
            ReplayLimit::Counter { id, registration_id } => {
                // The state first: once the counter is freed, its value stays.
                let is_there = counters.is_allocated(*id);
                let value = counters.value(*id, *registration_id);
                self.available = self.available.max(value.unwrap_or(i64::MIN));
                !is_there || value.is_none()
            }
        };
        if is_final {
            self.limit = ReplayLimit::None;
            self.end_position = self.end_position.min(self.available);
        }
    }

    /// Opens the segment of the position, unless it is open.
    fn open_next(&mut self, reader: &BlockReader) -> Result<(), Failure> {
        let base = self.geometry.base(self.position);
        if base != self.segment_base {
            self.segment_base = base;
            self.progress.segment_base.store(base, Ordering::Release);
            let file = self.open(reader)?;
            self.file = Some(file.ok_or_else(|| self.failure("recording segment not found"))?);
        }
        Ok(())
    }

    /// Reads frames from the position on into the sink, with its ids, and offers them. Returns 0 while the first one is not
    /// available as a whole, or is not accepted.
    fn offer_block(
        &mut self,
        sink: &mut dyn BlockSink,
        reader: &mut BlockReader,
    ) -> Result<usize, Failure> {
        let Some(file) = &self.file else { return Ok(0) };
        let distance = |end: i64| usize::try_from(end - self.position).unwrap_or(usize::MAX);
        let available = distance(self.available);
        let offset = self.geometry.offset(self.position);
        // A frame that begins before the end is replayed as a whole, as Java does it.
        let limit = distance(self.end_position);
        let recorded = self.frame_check();
        let check = BlockCheck {
            recorded: FrameCheck {
                max_data_length: recorded.max_data_length.min(sink.max_data_length()),
                ..recorded
            },
            session_id: sink.session_id(),
            stream_id: sink.stream_id(),
            checksum: reader.checksum,
        };
        let max_length = self.file_io_max.min(MAX_BLOCK_LENGTH);
        let mut read = Ok(0);
        let mut checked = Ok(CheckedBlock { data_length: 0, padding_length: None });
        let mut fill = |block: &mut [u8], term_id, term_offset| {
            let start = Instant::now();
            if block.len() < HEADER_LENGTH {
                read = Ok(block.len());
                checked = Err(FrameFault::Incomplete);
                return (0, 0);
            }
            let mut first_length = [0; 4];
            let (_, rest) = block.split_at_mut(first_length.len());
            read = file.read_both_at(&mut first_length, rest, offset);
            let Ok(length) = read else { return (0, 0) };
            checked = check.check(first_length, &mut block[..length], limit, term_id, term_offset);
            reader.totals.add(length, start.elapsed());
            match checked {
                Ok(block) => (block.data_length, i32::from_ne_bytes(first_length)),
                Err(_) => (0, 0),
            }
        };
        // SAFETY: the first four bytes are passed by. All frames are checked to be data of the sink at this place.
        let offered = unsafe { sink.fill_block(max_length.min(available), &mut fill) };
        if offered.is_err() {
            self.advance(offered, 0)?;
            return Ok(0);
        }
        let read = read.map_err(|error| self.failure(&error.to_string()))?;
        let block = match checked {
            Ok(CheckedBlock { data_length: 0, padding_length: None }) => {
                return Err(self.block_failure(FrameFault::Missing));
            }
            Ok(block) => block,
            Err(FrameFault::Incomplete) if read == available => {
                if matches!(self.limit, ReplayLimit::None) {
                    self.finish(ReplayEnd::Complete);
                }
                return Ok(0);
            }
            Err(fault) => return Err(self.block_failure(fault)),
        };
        let mut work_count = 0;
        if block.data_length > 0 {
            self.advance(offered, block.data_length)?;
            work_count += 1;
        }
        if let Some(length) = block.padding_length {
            self.padding = align(length);
            work_count += self.append_padding(sink)?;
        }
        Ok(work_count)
    }

    /// Appends padding. It can be longer than a publication takes at once: the driver makes one
    /// frame of all that dead publishers left behind.
    fn append_padding(&mut self, sink: &mut dyn BlockSink) -> Result<usize, Failure> {
        let max = sink.max_message_length() / FRAME_ALIGNMENT * FRAME_ALIGNMENT + HEADER_LENGTH;
        let mut work_count = 0;
        while self.padding > 0 && self.end().is_none() {
            let length = self.padding.min(max);
            let appended = sink.append_padding(length - HEADER_LENGTH);
            if !self.advance(appended, length)? {
                break;
            }
            self.padding -= length;
            work_count += 1;
        }
        Ok(work_count)
    }

    /// Moves the position if `length` bytes were accepted, and tells whether they were.
    fn advance(
        &mut self,
        offered: Result<Position, OfferError>,
        length: usize,
    ) -> Result<bool, Failure> {
        match offered {
            Ok(_) => {
                self.position += length as i64;
                if self.position >= self.end_position {
                    self.finish(ReplayEnd::Complete);
                }
                Ok(true)
            }
            Err(OfferError::NotConnected | OfferError::Closed(_)) => {
                self.finish(ReplayEnd::Incomplete);
                Ok(false)
            }
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => {
                let place = self.place();
                Err(self.failure(&format!("cannot publish at position={place}: {error}")))
            }
        }
    }

    fn finish(&mut self, end: ReplayEnd) {
        log::debug!("replay {}: {end:?} at position {}", self.session_id, self.position);
        self.state = State::Done(end);
    }

    fn frame_check(&self) -> FrameCheck {
        FrameCheck { max_data_length: self.mtu, ..self.geometry.frame_check() }
    }

    fn block_failure(&self, fault: FrameFault) -> Failure {
        let place = self.place();
        let mut failure = self.failure(&match fault {
            FrameFault::Missing | FrameFault::Incomplete => {
                format!("unexpected end of recording at position={place}")
            }
            FrameFault::Checksum { .. } => {
                format!("CRC checksum mismatch at position={place}: {fault}")
            }
            _ => format!("invalid frame at position={place}: {fault}"),
        });
        // A client's counter can promise more than is recorded.
        let is_end = matches!(fault, FrameFault::Missing | FrameFault::Incomplete);
        if is_end && matches!(self.limit, ReplayLimit::Counter { .. }) {
            failure.is_mistake = true;
        } else {
            failure.text += ": `rusteron archive verify --all-segments` finds all that is damaged";
        }
        failure
    }

    /// Returns a position in Java's words.
    fn place(&self) -> String {
        let term_offset = self.geometry.term_offset(self.position);
        format!(
            "{} (segmentFilePosition={}, segmentOffset={}, termOffset={term_offset}, \
             frameOffset=0)",
            self.position,
            self.segment_base,
            self.geometry.offset(self.position) - term_offset as u64,
        )
    }

    fn failure(&self, text: &str) -> Failure {
        let (id, name) = (self.geometry.recording_id, self.geometry.name(self.segment_base));
        let session_id = self.session_id;
        Failure::generic(format!(
            "{text}, recordingId={id}, replaySessionId={session_id}, segmentFile={name}"
        ))
    }
}
