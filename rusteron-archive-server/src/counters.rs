//! The types, keys and labels of an archive's counters, as Java's archive writes them.

use crate::ids::{ArchiveId, ControlSessionId, RecordingId};

use std::time::Duration;

use rusteron_client::{AeronVersion, CountersReader};
use rusteron_core::cnc::counters_reader::{MAX_KEY_LENGTH, MAX_LABEL_LENGTH};
use rusteron_core::cnc::i64_at;
use rusteron_core::scan;

const RECORDING_POSITION: i32 = 100;
const ERRORS: i32 = 101;
const CONTROL_SESSIONS: i32 = 102;
const MAX_CYCLE_TIME: i32 = 103;
const SLOW_CYCLES: i32 = 104;
const MAX_WRITE_TIME: i32 = 105;
const MAX_READ_TIME: i32 = 108;
const RECORDING_SESSIONS: i32 = 111;
const REPLAY_SESSIONS: i32 = 112;
const CONTROL_SESSION: i32 = 113;

/// A counter to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CounterLayout {
    pub(crate) type_id: i32,
    pub(crate) key: Vec<u8>,
    pub(crate) label: String,
}

/// An agent whose cycles are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasuredAgent {
    /// All agents, if one thread runs them.
    Conductor,
    Recorder,
    Replayer,
}

impl MeasuredAgent {
    fn name(self) -> &'static str {
        match self {
            Self::Conductor => "archive-conductor",
            Self::Recorder => "archive-recorder",
            Self::Replayer => "archive-replayer",
        }
    }
}

/// The stream of a recording, for the counter of its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedStream<'a> {
    pub(crate) recording_id: RecordingId,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    /// The channel without what does not identify the stream.
    pub(crate) stripped_channel: &'a str,
    pub(crate) source_identity: &'a str,
}

/// Makes the layouts of an archive's counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArchiveCounters {
    pub(crate) archive_id: ArchiveId,
}

impl ArchiveCounters {
    /// Finds the owner of the counter of errors: the client of an archive of this id that uses the media driver.
    pub(crate) fn find_owner(self, counters: &CountersReader<'_>) -> Option<i64> {
        let is_ours = |key: &[u8]| i64_at(key, 0) == Some(self.archive_id.get());
        let found =
            counters.iter().find(|counter| counter.type_id == ERRORS && is_ours(&counter.key));
        found.map(|counter| counter.owner_id)
    }

    /// Errors, with the version of Aeron.
    pub(crate) fn errors(self) -> CounterLayout {
        let AeronVersion { text, commit, .. } = AeronVersion::linked();
        let mut layout = self.layout(ERRORS, "Archive Errors");
        layout.label += &format!(" version={text} commit={commit}");
        layout
    }

    /// Sessions that are open.
    pub(crate) fn control_sessions(self) -> CounterLayout {
        self.layout(CONTROL_SESSIONS, "Archive Control Sessions")
    }

    /// Recordings that are active.
    pub(crate) fn recording_sessions(self) -> CounterLayout {
        self.layout(RECORDING_SESSIONS, "Archive Recording Sessions")
    }

    /// Replays that are active.
    pub(crate) fn replay_sessions(self) -> CounterLayout {
        self.layout(REPLAY_SESSIONS, "Archive Replay Sessions")
    }

    /// The longest cycle of an agent in nanoseconds, and the number of cycles that took longer than a threshold. `mode` is
    /// the threading mode in capital letters.
    pub(crate) fn cycles(
        self,
        agent: MeasuredAgent,
        threshold: Duration,
        mode: &str,
    ) -> [CounterLayout; 2] {
        let (agent, threshold) = (agent.name(), scan::format_duration(threshold));
        let max = format!("{agent} max cycle time in ns: {mode}");
        let slow = format!("{agent} work cycle time exceeded count: threshold={threshold} {mode}");
        [self.layout(MAX_CYCLE_TIME, &max), self.layout(SLOW_CYCLES, &slow)]
    }

    /// The longest write of the recorder in nanoseconds, the bytes and the time of all.
    pub(crate) fn writes(self) -> [CounterLayout; 3] {
        self.io(MAX_WRITE_TIME, "archive-recorder", "write")
    }

    /// The longest read of the replayer in nanoseconds, the bytes and the time of all.
    pub(crate) fn reads(self) -> [CounterLayout; 3] {
        self.io(MAX_READ_TIME, "archive-replayer", "read")
    }

    /// Types follow each other.
    fn io(self, max_time: i32, agent: &str, name: &str) -> [CounterLayout; 3] {
        [
            self.layout(max_time, &format!("{agent} max {name} time in ns")),
            self.layout(max_time + 1, &format!("{agent} total {name} bytes")),
            self.layout(max_time + 2, &format!("{agent} total {name} time in ns")),
        ]
    }

    /// The position of a recording. The stripped channel and the source identity are cut to fit.
    pub(crate) fn recording_position(self, stream: RecordedStream<'_>) -> CounterLayout {
        let RecordedStream { recording_id, session_id, stream_id, .. } = stream;
        let mut key = recording_id.get().to_le_bytes().to_vec();
        key.extend(session_id.to_le_bytes());
        let lengths = size_of::<i32>() + size_of::<i64>();
        let source = cut(stream.source_identity, MAX_KEY_LENGTH - key.len() - lengths);
        key.extend((source.len() as i32).to_le_bytes());
        key.extend(source.as_bytes());
        key.extend(self.archive_id.get().to_le_bytes());
        let name = format!("rec-pos: {recording_id} {session_id} {stream_id} ");
        let label = self.label(&name, stream.stripped_channel);
        CounterLayout { type_id: RECORDING_POSITION, key, label }
    }

    /// A control session: the value is its id, the reference id that of the response publication.
    ///
    /// `client` is what the client tells of itself, and where it is. It is cut to fit, where Java's archive fails.
    pub(crate) fn control_session(self, session: ControlSessionId, client: &str) -> CounterLayout {
        let key = [self.archive_id.get().to_le_bytes(), session.get().to_le_bytes()].concat();
        let label = self.label("control-session: ", client);
        CounterLayout { type_id: CONTROL_SESSION, key, label }
    }

    fn layout(self, type_id: i32, name: &str) -> CounterLayout {
        let (key, label) = (self.archive_id.get().to_le_bytes().to_vec(), self.label(name, ""));
        CounterLayout { type_id, key, label }
    }

    /// Returns a label of which a part is cut to fit.
    fn label(self, name: &str, text: &str) -> String {
        let suffix = format!(" - archiveId={}", self.archive_id);
        let length = MAX_LABEL_LENGTH.saturating_sub(name.len() + suffix.len());
        format!("{name}{}{suffix}", cut(text, length))
    }
}

/// Returns at most so many characters of a text. Java's tools read ASCII, so others become `?`.
fn cut(text: &str, length: usize) -> String {
    text.chars().take(length).map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: ArchiveCounters = ArchiveCounters { archive_id: ArchiveId::new(-7) };

    fn stream<'a>(stripped_channel: &'a str, source_identity: &'a str) -> RecordedStream<'a> {
        let (recording_id, session_id, stream_id) = (3.into(), -5, 10);
        RecordedStream { recording_id, session_id, stream_id, stripped_channel, source_identity }
    }

    #[test]
    fn key_is_archive_id() {
        let (conductor, recorder) = (MeasuredAgent::Conductor, MeasuredAgent::Recorder);
        let threshold = Duration::from_millis(100);
        let [max_cycle, _] = COUNTERS.cycles(conductor, threshold, "SHARED");
        let [_, slow_cycles] = COUNTERS.cycles(recorder, threshold, "DEDICATED");
        let mut layouts = vec![COUNTERS.errors(), COUNTERS.control_sessions()];
        layouts.extend([max_cycle, slow_cycles]);
        layouts.extend(COUNTERS.writes().into_iter().chain(COUNTERS.reads()));
        layouts.extend([COUNTERS.recording_sessions(), COUNTERS.replay_sessions()]);
        for (layout, type_id) in layouts.iter().zip(101..) {
            assert_eq!((layout.type_id, &*layout.key), (type_id, &(-7_i64).to_le_bytes()[..]));
        }
        let labels: Vec<_> = layouts.into_iter().map(|layout| layout.label).collect();
        let AeronVersion { text, commit, .. } = AeronVersion::linked();
        let expected = [
            &*format!("Archive Errors - archiveId=-7 version={text} commit={commit}"),
            "Archive Control Sessions - archiveId=-7",
            "archive-conductor max cycle time in ns: SHARED - archiveId=-7",
            "archive-recorder work cycle time exceeded count: threshold=100ms DEDICATED - archiveId=-7",
            "archive-recorder max write time in ns - archiveId=-7",
            "archive-recorder total write bytes - archiveId=-7",
            "archive-recorder total write time in ns - archiveId=-7",
            "archive-replayer max read time in ns - archiveId=-7",
            "archive-replayer total read bytes - archiveId=-7",
            "archive-replayer total read time in ns - archiveId=-7",
            "Archive Recording Sessions - archiveId=-7",
            "Archive Replay Sessions - archiveId=-7",
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn recording_position_has_stream_and_archive() {
        let layout = COUNTERS.recording_position(stream("aeron:ipc", "127.0.0.1:40123"));
        assert_eq!(layout.type_id, 100);
        assert_eq!(layout.label, "rec-pos: 3 -5 10 aeron:ipc - archiveId=-7");
        let mut key = 3_i64.to_le_bytes().to_vec();
        key.extend((-5_i32).to_le_bytes());
        key.extend(15_i32.to_le_bytes());
        key.extend(b"127.0.0.1:40123");
        key.extend((-7_i64).to_le_bytes());
        assert_eq!(layout.key, key);
    }

    #[test]
    fn control_session_has_archive_and_session() {
        let client = "name=a sourceIdentity=aeron:ipc sessionId=9";
        let layout = COUNTERS.control_session(4.into(), client);
        assert_eq!(layout.type_id, 113);
        assert_eq!(layout.label, format!("control-session: {client} - archiveId=-7"));
        assert_eq!(layout.key, [(-7_i64).to_le_bytes(), 4_i64.to_le_bytes()].concat());
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "é".repeat(500);
        let layout = COUNTERS.recording_position(stream(&long, &long));
        assert_eq!((layout.key.len(), layout.label.len()), (MAX_KEY_LENGTH, MAX_LABEL_LENGTH));
        assert!(layout.label.ends_with("??? - archiveId=-7"), "{}", layout.label);
        let layout = COUNTERS.control_session(4.into(), &long);
        assert_eq!(layout.label.len(), MAX_LABEL_LENGTH);
    }
}
