//! A script of two recordings, with catalog and segment files: started, rolled over, stopped, extended and stopped again,
//! while each change of the storage fails, is the last one, or is torn between two pages.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;

use rusteron_test_support::Random;

use crate::catalog::{Catalog, CatalogSettings, NewRecording};
use crate::recorder::BlockWriter;
use crate::recorder::recording::{BlockSource, Recording};
use crate::recorder::sample::{MTU, Stream, StreamSource};
use crate::segment::{Geometry, sample};
use crate::storage::faulty::{Change, FaultyStorage};
use crate::storage::{PAGE_LENGTH, SyncLevel};

const TERM: i32 = 64 << 10;
const FILE_IO_MAX: usize = 32 << 10;

/// What a client has been told of a recording: its position. It is the start position at first.
#[derive(Debug, Clone, Copy)]
struct Announced {
    /// Changes of the storage before that.
    changes: usize,
    recording: i64,
    position: i64,
}

struct Script {
    storage: FaultyStorage,
    level: SyncLevel,
    streams: Vec<Stream>,
    announced: Vec<Announced>,
}

/// Streams that become recordings 0 and 1. One has segments of a term, so that it rolls over twice.
fn streams() -> Vec<Stream> {
    let stream = |(recording_id, segment_length)| {
        let geometry =
            Geometry { recording_id, start_position: 96, segment_length, ..sample::GEOMETRY };
        let length = 5 * TERM as usize / 2;
        Stream::random(&mut Random::new(recording_id as u64), geometry, 96, length)
    };
    [(0, TERM), (1, 4 * TERM)].map(stream).into()
}

impl Script {
    fn new(level: SyncLevel) -> Self {
        let (storage, announced) = (FaultyStorage::default(), Vec::new());
        Self { storage, level, streams: streams(), announced }
    }

    fn open(&self) -> Result<Catalog, String> {
        let settings = CatalogSettings {
            capacity: 4096,
            sync_level: self.level,
            checksum: None,
            now_ms: 7,
            positions: HashMap::new(),
        };
        let catalog = Catalog::open(Arc::new(self.storage.clone()), &settings);
        catalog.map_err(|error| error.to_string())
    }

    /// Runs the script as far as the storage lets it, and returns the errors.
    fn run(&mut self) -> Vec<String> {
        let mut errors = Vec::new();
        let mut catalog = match self.open() {
            Ok(catalog) => catalog,
            Err(error) => return vec![error],
        };
        let streams = self.streams.clone();
        let start = |stream: &Stream| {
            match catalog.add(new_recording(stream), 5) {
                Ok(id) => {
                    // A failed edit may skip an id, and then the next stream is another recording.
                    let is_expected = id == stream.geometry.recording_id;
                    if is_expected {
                        self.announce(id, stream.position);
                    }
                    is_expected
                }
                Err(error) => {
                    errors.push(error.to_string());
                    false
                }
            }
        };
        let started: Vec<_> = streams.into_iter().filter(start).collect();
        let half = |stream: Stream| {
            let middle = stream
                .frames()
                .iter()
                .map(|(position, _)| *position)
                .find(|&position| position > stream.position + stream.bytes.len() as i64 / 2);
            let length = middle.map_or(0, |middle| (middle - stream.position) as usize);
            Stream { bytes: stream.bytes[..length].to_vec(), ..stream }
        };
        let halves: Vec<_> = started.into_iter().map(half).collect();
        self.record(&mut catalog, halves, &mut errors);
        self.extend(&mut catalog, &mut errors);
        errors
    }

    /// Extends all recordings that have ended by the rest of their streams.
    fn extend(&mut self, catalog: &mut Catalog, errors: &mut Vec<String>) {
        let mut rests = Vec::new();
        for stream in &self.streams {
            let id = stream.geometry.recording_id;
            let Some(stop) = catalog.get(id).map(|it| it.stop_position).filter(|&it| it >= 0)
            else {
                continue;
            };
            match catalog.set_extended(id, 1, 2, 3) {
                Ok(()) => rests.push(stream.from(stop)),
                Err(error) => errors.push(error.to_string()),
            }
        }
        self.record(catalog, rests, errors);
    }

    /// Records streams in turns, each to its end or to its failure, and tells the catalog where they end.
    fn record(&mut self, catalog: &mut Catalog, streams: Vec<Stream>, errors: &mut Vec<String>) {
        let mut writer = BlockWriter::new(Arc::new(self.storage.clone()), self.level, None);
        let mut recordings: Vec<_> = streams
            .into_iter()
            .map(|stream| {
                let recording = Recording::new(&stream.start_recording(), FILE_IO_MAX);
                let mut source = StreamSource::new(stream.clone());
                source.is_end_of_stream = true;
                (stream.geometry.recording_id, recording, source)
            })
            .collect();
        while recordings.iter().any(|(_, recording, _)| !recording.is_stopped()) {
            for (id, recording, source) in &mut recordings {
                let source: &mut dyn BlockSource = source;
                recording.do_work(Some(source), &mut writer);
                self.announce(*id, recording.position());
            }
        }
        for (id, recording, _) in recordings {
            errors.extend(recording.failure().map(|failure| failure.text.clone()));
            // The conductor tries again, too.
            for _ in 0..2 {
                match catalog.set_stopped(id, recording.position(), 6) {
                    Ok(()) => break,
                    Err(error) => errors.push(error.to_string()),
                }
            }
        }
    }

    fn announce(&mut self, recording: i64, position: i64) {
        let changes = self.storage.log().len();
        self.announced.push(Announced { changes, recording, position });
    }

    /// Checks that everything that was announced before so many changes is in a storage, and that recordings go on there.
    fn check(&self, storage: FaultyStorage, changes: usize, context: &str) {
        let mut next = Self {
            storage,
            streams: self.streams.clone(),
            announced: Vec::new(),
            level: self.level,
        };
        let mut catalog = next.open().unwrap_or_else(|error| panic!("{context}: {error}"));
        for known in self.announced.iter().filter(|known| known.changes <= changes) {
            let end = catalog.get(known.recording).map(|found| found.stop_position);
            assert!(end >= Some(known.position), "{context}: {known:?}, found {end:?}");
        }
        next.check_content(&catalog, context);
        let mut errors = Vec::new();
        next.extend(&mut catalog, &mut errors);
        assert!(errors.is_empty(), "{context}: {errors:?}");
        let catalog = next.open().unwrap_or_else(|error| panic!("{context}: again: {error}"));
        for stream in &self.streams {
            if let Some(found) = catalog.get(stream.geometry.recording_id) {
                assert_eq!(found.stop_position, stream.end(), "{context}");
            }
        }
        next.check_content(&catalog, context);
    }

    /// Checks that each recording has its stream up to its end.
    fn check_content(&self, catalog: &Catalog, context: &str) {
        for stream in &self.streams {
            let geometry = stream.geometry;
            let Some(found) = catalog.get(geometry.recording_id) else { continue };
            assert!(found.stop_position <= stream.end(), "{context}: {found:?}");
            for (position, frame) in stream.frames() {
                if position >= found.stop_position {
                    break;
                }
                let content = self.storage.content(&geometry.name(geometry.base(position)));
                let content = content.unwrap_or_else(|| panic!("{context}: no segment"));
                let offset = geometry.offset(position) as usize;
                assert!(content[offset..][..frame.len()] == *frame, "{context}: at {position}");
            }
        }
    }
}

fn new_recording(stream: &Stream) -> NewRecording<'static> {
    let geometry = stream.geometry;
    NewRecording {
        start_position: geometry.start_position,
        initial_term_id: geometry.initial_term_id,
        segment_length: geometry.segment_length,
        term_length: geometry.term_length,
        mtu: MTU as i32,
        session_id: 3,
        stream_id: geometry.stream_id,
        stripped_channel: "aeron:ipc",
        original_channel: "aeron:ipc?alias=script",
        source_identity: "aeron:ipc",
    }
}

/// The whole script, without a fault.
fn undisturbed(level: SyncLevel) -> Script {
    let mut script = Script::new(level);
    assert_eq!(script.run(), [] as [String; 0]);
    let changes = script.storage.log().len();
    assert!(changes > 30, "{changes}");
    // In a copy, so that the log has the script alone.
    script.check(script.storage.after_kill(changes, 0), changes, "without a fault");
    script
}

#[test]
fn kill_between_any_two_pages_loses_nothing() {
    let script = undisturbed(SyncLevel::None);
    let log = script.storage.log();
    for changes in 0..=log.len() {
        let next = match log.get(changes) {
            Some(Change::Write { bytes, .. }) => bytes.len().div_ceil(PAGE_LENGTH),
            _ => 0,
        };
        for pages in 0..=next {
            let storage = script.storage.after_kill(changes, pages);
            script.check(storage, changes, &format!("{changes} changes and {pages} pages"));
        }
    }
}

#[test]
fn power_cut_behind_any_change_loses_nothing_synced() {
    let script = undisturbed(SyncLevel::Data);
    for changes in 0..=script.storage.log().len() {
        for seed in 0..3 {
            let mut random = Random::new(seed);
            let storage =
                script.storage.after_power_cut(changes, &mut |unsynced| random.below(unsynced + 1));
            script.check(storage, changes, &format!("{changes} changes, seed {seed}"));
        }
    }
}

#[test]
fn failure_of_any_change_is_reported_and_loses_nothing() {
    for (level, error, text) in [
        (SyncLevel::None, ErrorKind::Other, "other error"),
        (SyncLevel::Data, ErrorKind::StorageFull, "no storage space"),
        (SyncLevel::Data, ErrorKind::PermissionDenied, "permission denied"),
    ] {
        let changes = undisturbed(level).storage.log().len();
        for failing in 0..changes {
            let mut script = Script::new(level);
            script.storage.fail_after(failing, error);
            let errors = script.run();
            let context = format!("{level:?}, change {failing}: {errors:?}");
            assert!(errors.iter().all(|error| error.contains(text)), "{context}");
            assert!(!errors.is_empty(), "{context}");
            script.check(script.storage.clone(), usize::MAX, &context);
        }
    }
}

#[test]
fn storage_that_stops_at_any_change_loses_nothing() {
    let changes = undisturbed(SyncLevel::None).storage.log().len();
    for last in 0..changes {
        let mut script = Script::new(SyncLevel::None);
        script.storage.stop_after(last);
        let errors = script.run();
        let context = format!("{last} changes: {errors:?}");
        assert!(errors.iter().all(|error| error.contains("the storage has stopped")), "{context}");
        let storage = script.storage.after_kill(script.storage.log().len(), 0);
        script.check(storage, usize::MAX, &context);
    }
}
