//! A stream that is recorded: what was sent, what the archive has announced, and whether it is there.

use std::iter;
use std::thread;
use std::time::Instant;

use rusteron_archive::{
    Archive, ArchiveError, RecordingDescriptor, RecordingPos, ReplayLength, ReplayParams,
    SourceLocation,
};
use rusteron_client::{ExclusivePublication, Subscription};
use rusteron_test_support::{DEADLINE, udp_channel};

use super::message::Message;
use super::server::TERM_LENGTH;

/// A recording is followed by another one when it has this length, in bytes.
const LENGTH: i64 = 8 << 20;
/// The length of a frame's header.
const HEADER_LENGTH: i64 = 32;
/// Messages that are sent at once.
const BATCH: usize = 20;
/// Streams of publications begin here.
const FIRST_STREAM_ID: i32 = 1001;
/// The stream of replays. Each has a session of its own.
const REPLAY_STREAM_ID: i32 = 2001;

/// How a stream gets to the archive.
#[derive(Debug, Clone, Copy)]
enum Path {
    Ipc,
    /// Over UDP, and recorded by a spy on the publication.
    Spy,
    /// Over UDP, and received by the archive.
    Remote,
}

/// A stream, whose recordings follow each other.
#[derive(Debug)]
pub(super) struct Stream {
    number: usize,
    path: Path,
    term_length: usize,
    mtu: usize,
    recordings: Vec<Recording>,
    publication: Option<ExclusivePublication>,
    counter: Option<RecordingPos>,
    buffer: Vec<u8>,
    /// The message in the buffer, by index and life.
    buffered: Option<(usize, u64)>,
}

/// A recording as it should be.
#[derive(Debug, Default)]
pub(super) struct Recording {
    id: i64,
    /// The positions behind the messages, and the lives in which they were sent.
    sent: Vec<(i64, u64)>,
    /// The highest position that the archive has announced.
    announced: i64,
    /// The position at which the recording has ended, as the archive has announced it.
    stopped: Option<i64>,
    /// The end that a check has found, which can be within a message.
    end: i64,
    /// Messages that a replay has shown after they were recorded.
    checked: usize,
}

/// What is wrong: a condition of the campaign, and how it is violated.
#[derive(Debug)]
pub(super) struct Fault(pub(super) &'static str, pub(super) String);

impl From<ArchiveError> for Fault {
    fn from(error: ArchiveError) -> Self {
        Self("refused", format!("{error} ({:?})", error.kind()))
    }
}

impl From<rusteron_client::Error> for Fault {
    fn from(error: rusteron_client::Error) -> Self {
        Self("refused", error.to_string())
    }
}

impl Stream {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            path: [Path::Ipc, Path::Remote, Path::Spy][number % 3],
            // Half of the streams have messages of several fragments, the others long frames.
            term_length: if number % 2 == 0 { TERM_LENGTH } else { 4 * TERM_LENGTH },
            mtu: if number % 2 == 0 { 1408 } else { 16 * 1024 },
            recordings: Vec::new(),
            publication: None,
            counter: None,
            buffer: Vec::new(),
            buffered: None,
        }
    }

    /// Lets the archive record the stream, from where its recording has ended if there is one.
    ///
    /// `is_over` says that the archive has been killed. Then the stream may be left without a publication.
    pub(super) fn start(
        &mut self,
        archive: &Archive,
        session_id: i32,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Fault> {
        let aeron = archive.aeron();
        // Each publication has a channel of its own: subscriptions of killed servers would hold it back.
        let (channel, source) = match self.path {
            Path::Ipc => (format!("aeron:ipc?session-id={session_id}"), SourceLocation::Local),
            Path::Spy => (udp_channel() + "|ssc=true", SourceLocation::Local),
            Path::Remote => (udp_channel(), SourceLocation::Remote),
        };
        let stream_id = FIRST_STREAM_ID + self.number as i32;
        let continued = self.recordings.last().filter(|it| it.end() < LENGTH).map(|it| it.id);
        let publication = match continued {
            Some(id) => {
                let no_end = || Fault("missing", format!("recording {id} has no end"));
                let continuation = descriptor(archive, id)?.continuation(&channel)?;
                let publication =
                    aeron.add_exclusive_publication(continuation.ok_or_else(no_end)?, stream_id)?;
                archive.extend_recording(id, channel, stream_id, source, true)?;
                publication
            }
            None => {
                let (term_length, mtu) = (self.term_length, self.mtu);
                let lengths = format!("{channel}|term-length={term_length}|mtu={mtu}");
                let publication = aeron.add_exclusive_publication(lengths, stream_id)?;
                archive.start_recording(channel, stream_id, source, true)?;
                publication
            }
        };
        let session_id = publication.session_id();
        let deadline = Instant::now() + DEADLINE;
        let counter = loop {
            if let Some(counter) =
                RecordingPos::find_by_session_id(aeron, session_id, archive.archive_id())
            {
                break counter;
            }
            if is_over() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let text = format!("stream {}: its recording has no counter", self.number);
                return Err(Fault("stuck", text));
            }
            thread::yield_now();
        };
        match continued {
            None => {
                let id = counter.recording_id();
                self.recordings.push(Recording { id, ..Recording::default() });
            }
            Some(id) if id != counter.recording_id() => {
                let text =
                    format!("recording {id}, but its counter is of {}", counter.recording_id());
                return Err(Fault("corrupted", text));
            }
            Some(_) => {}
        }
        self.publication = Some(publication);
        self.counter = Some(counter);
        if let Some(recording) = self.recordings.last_mut() {
            recording.stopped = None;
        }
        self.read_counter();
        Ok(())
    }

    /// Sends messages as long as there is space, and returns how many.
    pub(super) fn send(&mut self, life: u64) -> Result<usize, Fault> {
        let max_length = self.max_length();
        let (Some(publication), Some(recording)) =
            (&mut self.publication, self.recordings.last_mut())
        else {
            return Ok(0);
        };
        for count in 0..BATCH {
            let index = recording.sent.len();
            if self.buffered != Some((index, life)) {
                let message = Message {
                    stream: self.number as u64,
                    recording: recording.id as u64,
                    index: index as u64,
                    life,
                };
                message.write(max_length, &mut self.buffer);
                self.buffered = Some((index, life));
            }
            match publication.offer(&self.buffer) {
                Ok(position) => recording.sent.push((position, life)),
                Err(error) if error.is_retryable() => return Ok(count),
                Err(error) => return Err(Fault("refused", format!("a message: {error}"))),
            }
        }
        Ok(BATCH)
    }

    /// Ends the publication, so that its recording ends.
    pub(super) fn end_publication(&mut self) {
        self.publication = None;
    }

    /// The archive has been killed.
    pub(super) fn leave(&mut self) {
        self.publication = None;
        self.counter = None;
        self.buffered = None;
    }

    /// Notes the position in the counter, which stays there when the archive is killed.
    pub(super) fn read_counter(&mut self) {
        let position = self.counter.as_ref().and_then(RecordingPos::position);
        if let (Some(position), Some(recording)) = (position, self.recordings.last_mut()) {
            recording.announced = recording.announced.max(position);
        }
    }

    /// Notes a position that the archive has announced in another way, and whether the recording has ended there.
    pub(super) fn note(&mut self, id: i64, position: i64, has_stopped: bool) {
        if let Some(recording) = self.recordings.last_mut().filter(|it| it.id == id) {
            recording.announced = recording.announced.max(position);
            if has_stopped {
                recording.stopped = Some(position);
            }
        }
    }

    pub(super) fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// Checks that the end of the recording is there, and returns how many messages were looked at. `all` looks at former
    /// recordings and at messages that were checked before, too. Ends early if the archive is killed meanwhile.
    pub(super) fn check(
        &mut self,
        archive: &Archive,
        all: bool,
        is_over: &dyn Fn() -> bool,
    ) -> Result<usize, Fault> {
        let last = self.recordings.len().saturating_sub(1);
        let max_length = self.max_length();
        let mut count = 0;
        for recording in &mut self.recordings[if all { 0 } else { last }..] {
            if all {
                recording.checked = 0;
            }
            recording.check_end(self.term_length, archive)?;
            count += recording.check_messages(self.number, max_length, archive, is_over)?;
        }
        Ok(count)
    }

    /// Replays the recording while it goes on, from its last message.
    pub(super) fn follow(&self, archive: &Archive) -> Result<Option<Follower>, Fault> {
        let Some(recording) = self.recordings.last().filter(|_| self.publication.is_some()) else {
            return Ok(None);
        };
        let index = recording.sent.len();
        let params = ReplayParams::new().position(recording.start_of(index));
        let subscription = archive.replay(recording.id, "aeron:ipc", REPLAY_STREAM_ID, params)?;
        Ok(Some(Follower { subscription, index, number: self.number }))
    }

    /// The longest message, which is the longest that a publication takes.
    fn max_length(&self) -> usize {
        self.term_length / 8
    }
}

impl Recording {
    /// The position behind the last message that was sent.
    fn end(&self) -> i64 {
        self.sent.last().map_or(0, |(position, _)| *position)
    }

    /// A position at which the message of this index can be looked for.
    fn start_of(&self, index: usize) -> i64 {
        index.checked_sub(1).map_or(0, |index| self.sent[index].0)
    }

    /// Returns the position of the first byte of the last short message that was announced as a whole.
    pub(super) fn payload(&self) -> Option<i64> {
        const SHORT: i64 = 256;
        let starts = iter::once(0).chain(self.sent.iter().map(|(end, _)| *end));
        let messages = starts.zip(&self.sent).map(|(start, (end, _))| (start, *end));
        // One that is longer can be several fragments, or begin behind padding.
        messages
            .filter(|(start, end)| end - start < SHORT && *end <= self.announced)
            .last()
            .map(|(start, _)| start + HEADER_LENGTH)
    }

    pub(super) fn id(&self) -> i64 {
        self.id
    }

    /// Checks the stop position, and forgets messages that were not recorded as a whole.
    fn check_end(&mut self, term_length: usize, archive: &Archive) -> Result<(), Fault> {
        let Self { id, announced, stopped, .. } = *self;
        let Some(end) = descriptor(archive, id)?.stop_position else {
            return Err(Fault("missing", format!("recording {id} has no end")));
        };
        if end < announced {
            let text = format!("recording {id} was announced up to {announced}, and ends at {end}");
            return Err(Fault("missing", text));
        }
        if let Some(stopped) = stopped.filter(|&stopped| stopped != end) {
            let text = format!("recording {id} was said to end at {stopped}, and ends at {end}");
            return Err(Fault("missing", text));
        }
        // Padding may follow up to the end of the term.
        let (sent, padded) = (self.end().max(self.end), end % term_length as i64 == 0);
        if end > sent && !(padded && end - sent < term_length as i64) {
            let text = format!("recording {id} ends at {end}, and was sent up to {sent}");
            return Err(Fault("corrupted", text));
        }
        self.sent.truncate(self.sent.partition_point(|(position, _)| *position <= end));
        self.end = end;
        Ok(())
    }

    /// Replays the messages that were not checked yet.
    fn check_messages(
        &mut self,
        number: usize,
        max_length: usize,
        archive: &Archive,
        is_over: &dyn Fn() -> bool,
    ) -> Result<usize, Fault> {
        let first = self.checked;
        if first == self.sent.len() {
            return Ok(0);
        }
        let params = ReplayParams::new()
            .position(self.start_of(self.checked))
            .length(ReplayLength::Recorded);
        let mut replay = archive.replay(self.id, "aeron:ipc", REPLAY_STREAM_ID, params)?;
        let (mut fault, mut was_connected, deadline) = (None, false, Instant::now() + DEADLINE);
        while self.checked < self.sent.len() && fault.is_none() {
            let polled = replay.poll(
                |message, _| {
                    let error = self.compare(self.checked, number, max_length, message).err();
                    self.checked += usize::from(error.is_none());
                    fault = fault.take().or(error);
                },
                100,
            );
            if polled.map_err(|error| Fault("refused", format!("a replay: {error}")))? > 0 {
                continue;
            }
            if is_over() {
                return Ok(self.checked - first);
            }
            was_connected |= replay.is_connected();
            if was_connected && !replay.is_connected() {
                let text = format!("ends before message {}", self.checked);
                fault =
                    Some(Fault("missing", format!("the replay of recording {} {text}", self.id)));
            } else if Instant::now() > deadline {
                let text = format!("stands at message {}", self.checked);
                fault = Some(Fault("stuck", format!("the replay of recording {} {text}", self.id)));
            }
            thread::yield_now();
        }
        fault.map_or(Ok(self.checked - first), Err)
    }

    fn compare(
        &self,
        index: usize,
        number: usize,
        max_length: usize,
        message: &[u8],
    ) -> Result<(), Fault> {
        let id = self.id;
        let Some(&(_, life)) = self.sent.get(index) else {
            let text = format!("recording {id} has a message {index}, which was not sent");
            return Err(Fault("corrupted", text));
        };
        let (stream, recording) = (number as u64, id as u64);
        let mut expected = Vec::new();
        Message { stream, recording, index: index as u64, life }.write(max_length, &mut expected);
        if message == expected {
            return Ok(());
        }
        let differs = message.iter().zip(&expected).position(|(is, should)| is != should);
        Err(Fault(
            "corrupted",
            format!(
                "recording {id}, message {index} of life {life}: {} bytes instead of {}, differing from {differs:?} on",
                message.len(),
                expected.len()
            ),
        ))
    }
}

/// A replay that follows a recording in progress.
#[derive(Debug)]
pub(super) struct Follower {
    subscription: Subscription,
    /// The next message.
    index: usize,
    number: usize,
}

impl Follower {
    /// Compares what has arrived, and returns how many messages that were.
    pub(super) fn poll(&mut self, streams: &[Stream]) -> Result<usize, Fault> {
        let stream = &streams[self.number];
        let Some(recording) = stream.recordings.last() else { return Ok(0) };
        let (first, mut fault) = (self.index, None);
        let polled = self.subscription.poll(
            |message, _| {
                let max_length = stream.max_length();
                let error = recording.compare(self.index, self.number, max_length, message).err();
                self.index += 1;
                fault = fault.take().or(error);
            },
            20,
        );
        polled.map_err(|error| Fault("refused", format!("a replay: {error}")))?;
        fault.map_or(Ok(self.index - first), Err)
    }
}

fn descriptor(archive: &Archive, id: i64) -> Result<RecordingDescriptor, Fault> {
    let missing = || Fault("missing", format!("recording {id} is not in the catalog"));
    archive.recording(id)?.ok_or_else(missing)
}
