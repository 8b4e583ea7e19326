//! A stream that is recorded: what was sent, what the archive has announced, and whether it is there.

use std::iter;
use std::thread;
use std::time::Instant;

use rusteron_archive::{
    Archive, ArchiveError, RecordingDescriptor, RecordingId, RecordingPos, ReplayLength,
    ReplayParams, SourceLocation,
};
use rusteron_client::{ExclusivePublication, Subscription};
use rusteron_test_support::{DEADLINE, udp_channel};

use super::server::{Server, TERM_LENGTH};
use crate::message::Message;
use crate::report::Finding;

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
    pub(super) recordings: Vec<Recording>,
    publication: Option<ExclusivePublication>,
    counter: Option<RecordingPos>,
    buffer: Vec<u8>,
    /// The message in the buffer, by index and life.
    buffered: Option<(usize, u64)>,
}

/// A recording as it should be.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) id: RecordingId,
    /// The number of the stream.
    number: usize,
    term_length: usize,
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

impl From<ArchiveError> for Finding {
    fn from(error: ArchiveError) -> Self {
        Self::new("refused", format!("{error} ({:?})", error.kind()))
    }
}

impl From<rusteron_client::Error> for Finding {
    fn from(error: rusteron_client::Error) -> Self {
        Self::new("refused", error.to_string())
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
    /// If the server is killed meanwhile, the stream may be left without a publication.
    pub(super) fn start(
        &mut self,
        archive: &Archive,
        session_id: i32,
        server: &Server,
    ) -> Result<(), Finding> {
        let aeron = archive.aeron();
        // Each publication has a channel of its own: subscriptions of killed servers would hold it back.
        let (channel, source) = match self.path {
            Path::Ipc => (format!("aeron:ipc?session-id={session_id}"), SourceLocation::Local),
            Path::Spy => (udp_channel() + "|ssc=true", SourceLocation::Local),
            Path::Remote => (udp_channel(), SourceLocation::Remote),
        };
        let stream_id = FIRST_STREAM_ID + self.number as i32;
        let continued = self.recordings.last().filter(|it| it.end() < LENGTH).map(|it| it.id);
        let publication = if let Some(id) = continued {
            let continuation = descriptor(archive, id)?.continuation(&channel)?;
            let no_end = || Finding::new("missing", format!("recording {id} has no end"));
            let continuation = continuation.ok_or_else(no_end)?;
            let publication = aeron.add_exclusive_publication(continuation, stream_id)?;
            archive.extend_recording(id, channel, stream_id, source, true)?;
            publication
        } else {
            let (term_length, mtu) = (self.term_length, self.mtu);
            let lengths = format!("{channel}|term-length={term_length}|mtu={mtu}");
            let publication = aeron.add_exclusive_publication(lengths, stream_id)?;
            archive.start_recording(channel, stream_id, source, true)?;
            publication
        };
        let session_id = publication.session_id();
        let deadline = Instant::now() + DEADLINE;
        let counter = loop {
            if let Some(counter) =
                RecordingPos::find_by_session_id(aeron, session_id, archive.archive_id())
            {
                break counter;
            }
            if server.was_killed() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let text = format!("stream {}: its recording has no counter", self.number);
                return Err(Finding::new("stuck", text));
            }
            thread::yield_now();
        };
        let id = counter.recording_id();
        match continued {
            None => self.recordings.push(Recording::new(id, self.number, self.term_length)),
            Some(continued) if continued == id => {}
            Some(continued) => {
                let text = format!("recording {continued}, but its counter is of {id}");
                return Err(Finding::new("corrupted", text));
            }
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
    pub(super) fn send(&mut self, life: u64) -> Result<usize, Finding> {
        let (Some(publication), Some(recording)) =
            (&mut self.publication, self.recordings.last_mut())
        else {
            return Ok(0);
        };
        for count in 0..BATCH {
            let index = recording.sent.len();
            if self.buffered != Some((index, life)) {
                self.buffer = recording.message(index, life);
                self.buffered = Some((index, life));
            }
            match publication.offer(&self.buffer) {
                Ok(position) => recording.sent.push((position, life)),
                Err(error) if error.is_retryable() => return Ok(count),
                Err(error) => return Err(Finding::new("refused", format!("a message: {error}"))),
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
    pub(super) fn note(&mut self, id: RecordingId, position: i64, has_stopped: bool) {
        if let Some(recording) = self.recordings.last_mut().filter(|it| it.id == id) {
            recording.announced = recording.announced.max(position);
            if has_stopped {
                recording.stopped = Some(position);
            }
        }
    }

    /// Checks that the end of the recording is there, and returns how many messages were looked at. `all` looks at former
    /// recordings and at messages that were checked before, too. Ends early if the archive is killed meanwhile.
    pub(super) fn check(
        &mut self,
        archive: &Archive,
        all: bool,
        server: &Server,
    ) -> Result<usize, Finding> {
        let last = self.recordings.len().saturating_sub(1);
        let mut count = 0;
        for recording in &mut self.recordings[if all { 0 } else { last }..] {
            if all {
                recording.checked = 0;
            }
            recording.check_end(archive)?;
            let first = recording.checked;
            recording.check_messages(archive, server)?;
            count += recording.checked - first;
        }
        Ok(count)
    }

    /// Replays the recording while it goes on, from its last message.
    pub(super) fn follow(&self, archive: &Archive) -> Result<Option<Replay>, Finding> {
        match self.recordings.last().filter(|_| self.publication.is_some()) {
            Some(it) => it.replay(archive, it.sent.len(), ReplayParams::new()).map(Some),
            None => Ok(None),
        }
    }

    /// Compares what a replay that follows has brought, and returns how many messages that were.
    pub(super) fn compare_followed(&self, replay: &mut Replay) -> Result<usize, Finding> {
        self.recordings.last().map_or(Ok(0), |recording| replay.poll(recording))
    }
}

impl Recording {
    fn new(id: RecordingId, number: usize, term_length: usize) -> Self {
        let (sent, stopped) = (Vec::new(), None);
        Self { id, number, term_length, sent, announced: 0, stopped, end: 0, checked: 0 }
    }

    /// The message of an index that is sent in a life. The longest is the longest that a
    /// publication takes.
    fn message(&self, index: usize, life: u64) -> Vec<u8> {
        let message = Message {
            stream_id: self.number as i32,
            session_id: 0,
            publication: self.id.get() as u64,
            sequence: index as u64,
            phase: life,
        };
        message.to_vec(self.term_length / 8, true)
    }

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

    /// Checks the stop position, and forgets messages that were not recorded as a whole.
    fn check_end(&mut self, archive: &Archive) -> Result<(), Finding> {
        let Self { id, announced, stopped, term_length, .. } = *self;
        let Some(end) = descriptor(archive, id)?.stop_position else {
            return Err(Finding::new("missing", format!("recording {id} has no end")));
        };
        if end < announced {
            let text = format!("recording {id} was announced up to {announced}, and ends at {end}");
            return Err(Finding::new("missing", text));
        }
        if let Some(stopped) = stopped.filter(|&stopped| stopped != end) {
            let text = format!("recording {id} was said to end at {stopped}, and ends at {end}");
            return Err(Finding::new("missing", text));
        }
        // Padding may follow up to the end of the term.
        let (sent, padded) = (self.end().max(self.end), end % term_length as i64 == 0);
        if end > sent && !(padded && end - sent < term_length as i64) {
            let text = format!("recording {id} ends at {end}, and was sent up to {sent}");
            return Err(Finding::new("corrupted", text));
        }
        self.sent.truncate(self.sent.partition_point(|(position, _)| *position <= end));
        self.end = end;
        Ok(())
    }

    fn replay(
        &self,
        archive: &Archive,
        index: usize,
        params: ReplayParams,
    ) -> Result<Replay, Finding> {
        let params = params.position(self.start_of(index));
        let subscription = archive.replay(self.id, "aeron:ipc", REPLAY_STREAM_ID, params)?;
        Ok(Replay { subscription, index })
    }

    /// Replays the messages that were not checked yet.
    fn check_messages(&mut self, archive: &Archive, server: &Server) -> Result<(), Finding> {
        if self.checked == self.sent.len() {
            return Ok(());
        }
        let params = ReplayParams::new().length(ReplayLength::Recorded);
        let mut replay = self.replay(archive, self.checked, params)?;
        let (mut was_connected, deadline) = (false, Instant::now() + DEADLINE);
        while self.checked < self.sent.len() {
            let count = replay.poll(self)?;
            self.checked = replay.index;
            if count > 0 {
                continue;
            }
            if server.was_killed() {
                return Ok(());
            }
            let (id, index, is_connected) =
                (self.id, replay.index, replay.subscription.is_connected());
            was_connected |= is_connected;
            if was_connected && !is_connected {
                let text = format!("the replay of recording {id} ends before message {index}");
                return Err(Finding::new("missing", text));
            }
            if Instant::now() > deadline {
                let text = format!("the replay of recording {id} stands at message {index}");
                return Err(Finding::new("stuck", text));
            }
            thread::yield_now();
        }
        Ok(())
    }

    fn compare(&self, index: usize, found: &[u8]) -> Result<(), Finding> {
        let id = self.id;
        let Some(&(_, life)) = self.sent.get(index) else {
            let text = format!("recording {id} has a message {index}, which was not sent");
            return Err(Finding::new("corrupted", text));
        };
        let expected = self.message(index, life);
        if found == expected {
            return Ok(());
        }
        let differs = found.iter().zip(&expected).position(|(is, should)| is != should);
        let lengths = format!("{} bytes instead of {}", found.len(), expected.len());
        let text = format!(
            "recording {id}, message {index} of life {life}: {lengths}, differing from {differs:?} on"
        );
        Err(Finding::new("corrupted", text))
    }
}

/// A replay of a recording, also of one in progress.
#[derive(Debug)]
pub(super) struct Replay {
    subscription: Subscription,
    /// The next message.
    index: usize,
}

impl Replay {
    /// Compares what has arrived, and returns how many messages that were.
    fn poll(&mut self, recording: &Recording) -> Result<usize, Finding> {
        let (first, mut outcome) = (self.index, Ok(()));
        let polled = self.subscription.poll(
            |message, _| {
                if outcome.is_ok() {
                    outcome = recording.compare(self.index, message);
                    self.index += 1;
                }
            },
            50,
        );
        polled.map_err(|error| Finding::new("refused", format!("a replay: {error}")))?;
        outcome.map(|()| self.index - first)
    }
}

fn descriptor(archive: &Archive, id: RecordingId) -> Result<RecordingDescriptor, Finding> {
    let missing = || Finding::new("missing", format!("recording {id} is not in the catalog"));
    archive.recording(id)?.ok_or_else(missing)
}
