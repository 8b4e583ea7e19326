//! An archive, and what it has said.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::path::Path;

use rusteron_client::{Aeron, CounterSnapshot, ExclusivePublication, Subscription};
use rusteron_test_support::{await_that, offer};

use super::protocol::{
    ARCHIVE_ID, BARRIER, CONNECT, CONNECTING, Ids, Int, LIST_SUBSCRIPTIONS, Long, STREAMS, Said,
    decode, encode,
};

/// The type of the counters of recordings.
const RECORDING_POSITION: i32 = 100;
/// The types of the counters of errors, and of recordings and replays in progress.
const NUMBERS: [i32; 3] = [101, 111, REPLAYS];
const REPLAYS: i32 = 112;

/// The path that errors have.
fn canonical(dir: &Path) -> String {
    dir.canonicalize().expect("the directory").display().to_string()
}

/// A session with one of the archives.
pub(super) struct Side {
    aeron: Aeron,
    requests: ExclusivePublication,
    responses: Subscription,
    replays: Subscription,
    pub(super) replay_stream: i32,
    archive_id: i64,
    pub(super) session: i64,
    pub(super) ids: Ids,
    lines: Vec<String>,
    has_passed: bool,
}

/// A recording in progress, as its counter shows it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Progress {
    pub(super) recording: i64,
    pub(super) session_id: i32,
    pub(super) position: i64,
}

impl Side {
    /// Opens a session. Responses and replays have streams of their own.
    pub(super) fn connect(
        aeron: Aeron,
        control_stream: i32,
        archive_id: i64,
        archive_dir: &Path,
    ) -> Self {
        let (response_stream, replay_stream) = (control_stream + 100, control_stream + 200);
        let add = |stream| aeron.add_subscription("aeron:ipc", stream).expect("a subscription");
        let mut side = Self {
            requests: aeron
                .add_exclusive_publication("aeron:ipc", control_stream)
                .expect("a publication"),
            responses: add(response_stream),
            replays: add(replay_stream),
            replay_stream,
            archive_id,
            session: -1,
            ids: Ids::of(canonical(archive_dir)),
            lines: Vec::new(),
            has_passed: false,
            aeron,
        };
        let version = 1 << 16 | 12 << 8;
        let fields = [Long(CONNECTING), Int(response_stream), Int(version)];
        side.send(&encode(CONNECT, &fields, &[b"aeron:ipc", b"", b"differential"]));
        await_that("a session", || {
            side.poll();
            side.session != -1
        });
        side
    }

    pub(super) fn send(&mut self, request: &[u8]) {
        offer(&mut self.requests, request);
    }

    pub(super) fn poll(&mut self) {
        let mut messages = Vec::new();
        self.responses.poll(|message, _| messages.push(message.to_vec()), 100).expect("open");
        for message in messages {
            match decode(&message, &mut self.ids) {
                Said::Session(session) => self.session = session,
                Said::Barrier => self.has_passed = true,
                Said::Line(line) => self.lines.push(line),
                Said::Other => {}
            }
        }
        let lines = &mut self.lines;
        let handler = |fragment: &[u8], header: &rusteron_client::Header<'_>| {
            let mut hasher = DefaultHasher::new();
            fragment.hash(&mut hasher);
            lines.push(format!("replayed {} {:x}", header.position(), hasher.finish()));
        };
        self.replays.poll_fragments(handler, 100).expect("open");
    }

    /// Begins to wait until the archive has done what came before.
    pub(super) fn begin_barrier(&mut self) {
        self.has_passed = false;
        self.send(&encode(ARCHIVE_ID, &[Long(self.session), Long(BARRIER)], &[]));
    }

    /// Begins to ask which streams are being recorded. The end is as that of a barrier.
    pub(super) fn begin_streams(&mut self) {
        self.has_passed = false;
        self.ids.streams.clear();
        let fields = [Long(self.session), Long(STREAMS), Int(0), Int(1000), Int(0), Int(0)];
        self.send(&encode(LIST_SUBSCRIPTIONS, &fields, &[b""]));
    }

    pub(super) fn has_passed_barrier(&mut self) -> bool {
        self.poll();
        self.has_passed
    }

    /// What it has said since the last call of [`take_lines`](Self::take_lines), in any order.
    pub(super) fn sort_lines(&mut self) -> &[String] {
        self.lines.sort();
        &self.lines
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        mem::take(&mut self.lines)
    }

    /// The recordings in progress, and the numbers of errors, recordings and replays by the
    /// counters' types. Ids say nothing: the driver gives those of freed counters again.
    pub(super) fn progress(&self) -> (BTreeSet<Progress>, BTreeSet<(i32, i64)>) {
        let counters: Vec<_> = self.aeron.counters_reader().iter().collect();
        let recordings = counters.iter().filter_map(|counter| self.recording(counter)).collect();
        let archive_id = self.archive_id.to_le_bytes();
        let numbers = counters.iter().filter(|counter| {
            NUMBERS.contains(&counter.type_id) && counter.key.starts_with(&archive_id)
        });
        (recordings, numbers.map(|counter| (counter.type_id, counter.value)).collect())
    }

    pub(super) fn has_replays(&self) -> bool {
        self.progress().1.iter().any(|&(type_id, number)| type_id == REPLAYS && number > 0)
    }

    fn recording(&self, counter: &CounterSnapshot) -> Option<Progress> {
        let key = &counter.key;
        let int = |at: usize| key.get(at..)?.first_chunk().copied().map(i32::from_le_bytes);
        let long = |at: usize| key.get(at..)?.first_chunk().copied().map(i64::from_le_bytes);
        let source_length = usize::try_from(int(12)?).ok()?;
        let is_ours = counter.type_id == RECORDING_POSITION
            && long(16 + source_length) == Some(self.archive_id);
        is_ours.then_some(Progress {
            recording: long(0)?,
            session_id: int(8)?,
            position: counter.value,
        })
    }
}
