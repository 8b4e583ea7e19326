//! A script of recordings, with catalog and segment files: started, rolled over, stopped, extended and stopped again, and one
//! that is left active. Meanwhile each change of the storage fails, is the last one, is torn between two pages, or is met by
//! a power cut.
//!
//! `RUSTERON_ARCHIVE_SEEDS=FIRST..END` lets power cuts meet other streams and lose more combinations of pages.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;

use rusteron_core::log_buffer::{HEADER_LENGTH, TYPE_DATA};
use rusteron_test_support::Random;

use crate::catalog::{Catalog, CatalogSettings, NewRecording};
use crate::ids::RecordingId;
use crate::offline::{ArchiveFiles, VerifyOptions};
use crate::recorder::BlockWriter;
use crate::recorder::recording::{BlockSource, Recording};
use crate::recorder::sample::{MTU_OF_PAGES, Stream, StreamSource};
use crate::segment::checksum::Checksum;
use crate::segment::{Geometry, frame, sample};
use crate::storage::faulty::{Change, FaultyStorage};
use crate::storage::{PAGE_LENGTH, SyncLevel};

const TERM: i32 = 64 << 10;
const START: i64 = 96;
const RECORDINGS: [i64; 3] = [0, 1, 2];
/// When recordings end that were active.
const RECOVERED_MS: i64 = 7;
/// So that a block lies on few pages, of which all combinations can be lost.
const FILE_IO_MAX: usize = MTU_OF_PAGES + PAGE_LENGTH;

#[derive(Debug, Clone, Copy)]
struct Setup {
    level: SyncLevel,
    checksum: Option<Checksum>,
    /// The file system tells holes.
    tells_holes: bool,
    seed: u64,
}

/// The last position or end that a client has been told of a recording. At first, the start position.
#[derive(Debug, Clone, Copy)]
struct Announced {
    /// Changes of the storage before that.
    changes: usize,
    recording: i64,
    position: i64,
}

/// Power cuts.
#[derive(Debug, Default)]
struct Counts {
    all: usize,
    /// Those after which only the operator can go on.
    refused: usize,
    /// Recordings that lack data before their stop position, as their verification says.
    found: usize,
}

struct Script {
    setup: Setup,
    storage: FaultyStorage,
    /// The streams that publishers have sent to recordings 0 to 2. An extension replaces messages that were not recorded.
    streams: Vec<Stream>,
    announced: Vec<Announced>,
}

impl Setup {
    const PLAIN: Self = Self { level: SyncLevel::None, checksum: None, tells_holes: true, seed: 0 };

    fn at(level: SyncLevel) -> Self {
        Self { level, ..Self::PLAIN }
    }

    fn random(self, recording: i64, position: i64) -> Random {
        Random::new(self.seed << 32 ^ recording as u64 ^ (position as u64) << 8)
    }

    /// Frames of a recording. One recording has segments of a term, so that it rolls over.
    fn stream(self, recording_id: i64, position: i64) -> Stream {
        let segment_length = if recording_id == 1 { 4 * TERM } else { TERM };
        let geometry = Geometry {
            recording_id: recording_id.into(),
            start_position: START,
            segment_length,
            ..sample::GEOMETRY
        };
        let length = [5 * TERM / 4, TERM / 2, TERM / 4][recording_id as usize] as usize;
        let random = &mut self.random(recording_id, position);
        Stream::across_pages(random, geometry, position, length)
    }
}

impl Script {
    fn new(setup: Setup) -> Self {
        let stream = |recording| setup.stream(recording, START);
        let streams = RECORDINGS.map(stream).into();
        Self { setup, storage: FaultyStorage::default(), streams, announced: Vec::new() }
    }

    /// Goes on with what a crash has left.
    fn after(&self, storage: FaultyStorage) -> Self {
        if !self.setup.tells_holes {
            storage.hide_holes();
        }
        let streams = self.streams.clone();
        Self { setup: self.setup, storage, streams, announced: Vec::new() }
    }

    /// Opens the catalog. `positions` are those in the mark file of a killed server.
    fn open(&self, positions: HashMap<RecordingId, i64>) -> Result<Catalog, String> {
        let settings = CatalogSettings {
            // So that the file grows.
            capacity: 200,
            sync_level: self.setup.level,
            file_sync_level: self.setup.level,
            checksum: self.setup.checksum,
            now_ms: RECOVERED_MS,
            positions,
            is_original: true,
        };
        let catalog = Catalog::open(Arc::new(self.storage.clone()), &settings);
        catalog.map_err(|error| error.to_string())
    }

    /// Runs the script as far as the storage lets it, and returns the errors.
    fn run(&mut self) -> Vec<String> {
        let mut errors = Vec::new();
        let mut catalog = match self.open(HashMap::new()) {
            Ok(catalog) => catalog,
            Err(error) => return vec![error],
        };
        let mut started = vec![(0, START), (1, START)];
        started.retain(|&(id, _)| self.start(&mut catalog, id, &mut errors));
        self.record(&mut catalog, &started, &mut errors);
        self.extend(&mut catalog, &mut errors);
        if catalog.get(0.into()).is_some() {
            let updated = catalog.update_channel(0.into(), "aeron:ipc", &"x".repeat(500));
            errors.extend(updated.err().map(|error| error.to_string()));
        }
        if self.start(&mut catalog, 2, &mut errors) {
            self.write(&[(2, START)], &mut errors);
        }
        errors
    }

    /// Adds a recording.
    fn start(&mut self, catalog: &mut Catalog, id: i64, errors: &mut Vec<String>) -> bool {
        match catalog.add(new_recording(&self.streams[id as usize]), 5) {
            // A failed edit may skip an id, and then the stream is another recording.
            Ok(added) if added != id => false,
            Ok(_) => {
                self.announce(id, self.streams[id as usize].position);
                true
            }
            Err(error) => {
                errors.push(error.to_string());
                false
            }
        }
    }

    /// Extends all recordings that have ended, each by another stream than what was there.
    fn extend(&mut self, catalog: &mut Catalog, errors: &mut Vec<String>) {
        let mut extended = Vec::new();
        for id in RECORDINGS {
            let Some(stop) =
                catalog.get(id.into()).map(|it| it.stop_position).filter(|&it| it >= 0)
            else {
                continue;
            };
            match catalog.set_extended(id.into(), 1.into(), 2.into(), 3) {
                Ok(()) => {
                    self.announce(id, stop);
                    self.streams[id as usize].replace_from(&self.setup.stream(id, stop));
                    extended.push((id, stop));
                }
                Err(error) => errors.push(error.to_string()),
            }
        }
        self.record(catalog, &extended, errors);
    }

    /// Records from positions on, and tells the catalog where recordings end.
    fn record(
        &mut self,
        catalog: &mut Catalog,
        recordings: &[(i64, i64)],
        errors: &mut Vec<String>,
    ) {
        for (id, position) in self.write(recordings, errors) {
            // The conductor tries again, too.
            for _ in 0..2 {
                match catalog.set_stopped(id.into(), position, 6) {
                    Ok(()) => break,
                    Err(error) => errors.push(error.to_string()),
                }
            }
        }
    }

    /// Records in turns, each stream from a position to its end or to a failure. Returns the ends.
    fn write(&mut self, recordings: &[(i64, i64)], errors: &mut Vec<String>) -> Vec<(i64, i64)> {
        let Setup { level, checksum, .. } = self.setup;
        let mut writer = BlockWriter::new(Arc::new(self.storage.clone()), level, checksum);
        let mut recordings: Vec<_> = recordings
            .iter()
            .map(|&(id, position)| {
                let stream = self.streams[id as usize].from(position);
                let recording = Recording::new(&stream.start_recording(), FILE_IO_MAX);
                let mut source = StreamSource::new(stream);
                source.is_end_of_stream = true;
                (id, recording, source)
            })
            .collect();
        while recordings.iter().any(|(_, recording, _)| !recording.is_stopped()) {
            for (id, recording, source) in &mut recordings {
                let source: &mut dyn BlockSource = source;
                recording.do_work(Some(source), &mut writer);
                self.announce(*id, recording.position());
            }
        }
        let failures = recordings.iter().filter_map(|(_, recording, _)| recording.failure());
        errors.extend(failures.map(|failure| failure.text.clone()));
        recordings.iter().map(|(id, recording, _)| (*id, recording.position())).collect()
    }

    fn announce(&mut self, recording: i64, position: i64) {
        let changes = self.storage.changes();
        self.announced.push(Announced { changes, recording, position });
    }

    /// The last announcement of each recording before so many changes.
    fn announced(&self, changes: usize) -> HashMap<RecordingId, i64> {
        let known = self.announced.iter().filter(|known| known.changes <= changes);
        known.map(|known| (known.recording.into(), known.position)).collect()
    }

    /// Checks what a process that was killed behind so many changes has left.
    fn check_kill(&self, storage: FaultyStorage, changes: usize, context: &str) {
        let next = self.after(storage);
        let catalog = next.open(self.announced(changes));
        let catalog = catalog.unwrap_or_else(|error| panic!("{context}: {error}"));
        self.check_announced(&catalog, changes, context);
        next.check(catalog, &RECORDINGS, context);
    }

    /// Checks what a power cut behind so many changes has left, and another one while its recordings go on.
    fn check_power_cut(
        &self,
        storage: FaultyStorage,
        changes: usize,
        context: &str,
        counts: &mut Counts,
        again: Option<&mut Random>,
    ) {
        let next = self.after(storage);
        counts.all += 1;
        let opened = next.open(HashMap::new()).and_then(|catalog| {
            let error = catalog.set_aside().next().map(ToString::to_string);
            error.map_or(Ok(catalog), Err)
        });
        let catalog = match opened {
            Ok(catalog) => catalog,
            Err(error) => {
                let names_tool =
                    error.contains("ArchiveTool") || error.contains("rusteron archive");
                assert!(names_tool, "{context}: {error}");
                counts.refused += 1;
                if self.setup.level > SyncLevel::None {
                    // The operator can keep what was announced.
                    assert!(error.contains("may be incomplete"), "{context}: {error}");
                    for (id, position) in self.announced(changes) {
                        next.check_stream(&self.streams[id.get() as usize], position, context);
                    }
                }
                return;
            }
        };
        let mut checked = RECORDINGS.to_vec();
        if self.setup.level > SyncLevel::None {
            self.check_announced(&catalog, changes, context);
        } else {
            // The stop position of another one may be there without what lies before it.
            let stop = |id| catalog.get(id).map(|found| found.stop_timestamp);
            checked.retain(|&id| stop(id.into()) == Some(RECOVERED_MS));
            counts.found += next.verify(&catalog, &checked, context);
        }
        let next = next.check(catalog, &checked, context);
        if let Some(random) = again.filter(|_| self.setup.level > SyncLevel::None) {
            let changes = random.below(next.storage.changes() + 1);
            let context = format!("{context}, then {changes}");
            for storage in next.storage.power_cut(changes).outcomes(0, 1, random) {
                next.check_power_cut(storage, changes, &context, counts, None);
            }
        }
    }

    /// Lets power fail behind every change of the script.
    fn cut_power(setup: Setup, exhaustive: usize, sampled: usize, counts: &mut Counts) {
        let script = undisturbed(setup);
        let (mut random, mut again) = (setup.random(3, 0), setup.random(4, 0));
        for changes in 0..=script.storage.changes() {
            let cut = script.storage.power_cut(changes);
            let outcomes = cut.outcomes(exhaustive, sampled, &mut random);
            for (number, storage) in outcomes.enumerate() {
                let context = format!("{setup:?}, {changes} changes, outcome {number}");
                script.check_power_cut(storage, changes, &context, counts, Some(&mut again));
            }
        }
    }

    /// Checks that a catalog has everything that was announced before so many changes.
    fn check_announced(&self, catalog: &Catalog, changes: usize, context: &str) {
        for (recording, position) in self.announced(changes) {
            let end = catalog.get(recording).map(|found| found.stop_position);
            assert!(end >= Some(position), "{context}: {recording} to {position}, found {end:?}");
        }
    }

    /// Checks that recordings of a catalog are what was sent, and that all go on. Returns the server that has extended them.
    fn check(mut self, mut catalog: Catalog, checked: &[i64], context: &str) -> Self {
        self.check_streams(&catalog, checked, context);
        let mut errors = Vec::new();
        self.extend(&mut catalog, &mut errors);
        // A catalog that was not synced may have an earlier stop position.
        let is_synced = checked.len() == RECORDINGS.len();
        errors.retain(|error| is_synced || !error.starts_with("segment file already exists"));
        assert!(errors.is_empty(), "{context}: {errors:?}");
        let catalog = self.open(HashMap::new());
        let catalog = catalog.unwrap_or_else(|error| panic!("{context}: again: {error}"));
        for stream in &self.streams {
            if let Some(found) = catalog.get(stream.geometry.recording_id).filter(|_| is_synced) {
                assert_eq!(found.stop_position, stream.end(), "{context}");
            }
        }
        self.check_streams(&catalog, checked, context);
        self
    }

    /// Checks that recordings have their streams up to their ends.
    fn check_streams(&self, catalog: &Catalog, checked: &[i64], context: &str) {
        for stream in &self.streams {
            if !checked.contains(&stream.geometry.recording_id.get()) {
                continue;
            }
            if let Some(found) = catalog.get(stream.geometry.recording_id) {
                self.check_stream(stream, found.stop_position, context);
            }
        }
    }

    /// Checks that a verification finds recordings that lack data, other than those that were checked. Without checksums, it
    /// finds what lacks a header. Returns their number.
    fn verify(&self, catalog: &Catalog, checked: &[i64], context: &str) -> usize {
        let files =
            ArchiveFiles::from_storage(Arc::new(self.storage.clone()), HashMap::new(), true);
        let files = files.unwrap_or_else(|error| panic!("{context}: {error}"));
        let checksum = self.setup.checksum;
        let options = VerifyOptions { all_segments: true, checksum, last_fragment: None };
        let mut found = 0;
        for entry in
            files.recordings().iter().filter(|it| !checked.contains(&it.recording_id.get()))
        {
            // An entry that is not valid yet tells of nothing.
            let Some(known) = catalog.get(entry.recording_id) else { continue };
            let stream = &self.streams[entry.recording_id.get() as usize];
            let difference = self.first_difference(stream, known.stop_position, context);
            let Some((position, header_differs)) = difference else { continue };
            let mut findings = files.verify(entry, &options).findings;
            // A page of the entry may be lost, too.
            findings.retain(|finding| !finding.text.starts_with("catalog checksum"));
            if checksum.is_some() || header_differs {
                assert!(!findings.is_empty(), "{context}: {} at {position}", entry.recording_id);
            }
            found += usize::from(!findings.is_empty());
        }
        found
    }

    /// Checks that the segments have a stream up to a position.
    fn check_stream(&self, stream: &Stream, end: i64, context: &str) {
        let id = stream.geometry.recording_id;
        assert_eq!(self.first_difference(stream, end, context), None, "{context}: recording {id}");
    }

    /// Returns the position of the first frame before `end` that is not what was sent, and whether its header differs.
    fn first_difference(&self, stream: &Stream, end: i64, context: &str) -> Option<(i64, bool)> {
        let Stream { geometry, .. } = stream;
        assert!(end <= stream.end(), "{context}: recording {} to {end}", geometry.recording_id);
        let mut segment = (-1, Vec::new());
        for (position, frame) in stream.frames() {
            if position >= end {
                break;
            }
            let base = geometry.base(position);
            if segment.0 != base {
                let Some(content) = self.storage.content(&geometry.name(base)) else {
                    return Some((position, true));
                };
                segment = (base, content);
            }
            let mut frame = frame.to_vec();
            if let Some(sum) =
                self.setup.checksum.filter(|_| frame::frame_type(&frame) == TYPE_DATA)
            {
                sample::put_checksum(&mut frame, sum);
            }
            let offset = geometry.offset(position) as usize;
            let is_there =
                |length| segment.1.get(offset..offset + length) == Some(&frame[..length]);
            if !is_there(frame.len()) {
                return Some((position, !is_there(HEADER_LENGTH)));
            }
        }
        None
    }
}

fn new_recording(stream: &Stream) -> NewRecording<'static> {
    let geometry = stream.geometry;
    NewRecording {
        start_position: geometry.start_position,
        initial_term_id: geometry.initial_term_id,
        segment_length: geometry.segment_length,
        term_length: geometry.term_length,
        mtu: MTU_OF_PAGES as i32,
        session_id: 3,
        stream_id: geometry.stream_id,
        stripped_channel: "aeron:ipc",
        original_channel: "aeron:ipc?alias=script",
        source_identity: "aeron:ipc",
    }
}

/// The whole script, without a fault.
fn undisturbed(setup: Setup) -> Script {
    let mut script = Script::new(setup);
    assert_eq!(script.run(), [] as [String; 0]);
    let changes = script.storage.changes();
    assert!(changes > 30, "{changes}");
    // In a copy, so that the log has the script alone.
    script.check_kill(script.storage.after_kill(changes, 0), changes, "without a fault");
    script
}

#[test]
fn kill_between_any_two_pages_loses_nothing() {
    let script = undisturbed(Setup::PLAIN);
    let log = script.storage.log();
    for changes in 0..=log.len() {
        let next = match log.get(changes) {
            Some(Change::Write { bytes, .. }) => bytes.len().div_ceil(PAGE_LENGTH),
            _ => 0,
        };
        for pages in 0..=next {
            let storage = script.storage.after_kill(changes, pages);
            script.check_kill(storage, changes, &format!("{changes} changes and {pages} pages"));
        }
    }
}

/// Lets power fail in scripts of a level: with and without checksums, on file systems that tell holes and others. Returns the
/// counts in this order.
fn power_cuts(level: SyncLevel) -> Vec<Counts> {
    let (seeds, sampled) = match std::env::var("RUSTERON_ARCHIVE_SEEDS") {
        Ok(seeds) => {
            let (first, end) = seeds.split_once("..").expect("FIRST..END");
            (first.parse().expect("a seed")..end.parse().expect("a seed"), 16)
        }
        Err(_) => (0..1, 4),
    };
    let cut = |checksum, tells_holes| {
        let mut counts = Counts::default();
        for seed in Range::clone(&seeds) {
            let setup = Setup { level, checksum, tells_holes, seed };
            // All combinations of ten pages.
            Script::cut_power(setup, 1 << 10, sampled, &mut counts);
        }
        println!("{level:?}, checksum {checksum:?}, holes {tells_holes}: {counts:?}");
        counts
    };
    let settings = [(None, true), (None, false), (Some(Checksum::Crc32), true)];
    let settings = settings.into_iter().chain([(Some(Checksum::Crc32c), false)]);
    settings.map(|(checksum, tells_holes)| cut(checksum, tells_holes)).collect()
}

#[test]
fn power_cut_behind_any_change_loses_nothing_synced() {
    let counts = power_cuts(SyncLevel::Data);
    // Only zeros up to the end of a file are in doubt where holes are told, and nothing is if there are checksums, too.
    assert!(counts[0].refused < counts[0].all / 10, "{counts:?}");
    assert_eq!(counts[2].refused, 0, "{counts:?}");
}

#[test]
fn power_cut_without_syncs_leaves_a_prefix_or_names_the_tool() {
    for counts in power_cuts(SyncLevel::None) {
        assert!(counts.refused < counts.all / 2, "{counts:?}");
        assert!(counts.found > 0, "{counts:?}");
    }
}

#[test]
fn failure_of_any_change_is_reported_and_loses_nothing() {
    for (level, error, text) in [
        (SyncLevel::None, ErrorKind::Other, "other error"),
        (SyncLevel::Data, ErrorKind::StorageFull, "no storage space"),
        (SyncLevel::Data, ErrorKind::PermissionDenied, "permission denied"),
    ] {
        let changes = undisturbed(Setup::at(level)).storage.changes();
        for failing in 0..changes {
            let mut script = Script::new(Setup::at(level));
            script.storage.fail_after(failing, error);
            let errors = script.run();
            let context = format!("{level:?}, change {failing}: {errors:?}");
            assert!(errors.iter().all(|error| error.contains(text)), "{context}");
            assert!(!errors.is_empty(), "{context}");
            script.check_kill(script.storage.clone(), usize::MAX, &context);
        }
    }
}

#[test]
fn storage_that_stops_at_any_change_loses_nothing() {
    let changes = undisturbed(Setup::PLAIN).storage.changes();
    for last in 0..changes {
        let mut script = Script::new(Setup::PLAIN);
        script.storage.stop_after(last);
        let errors = script.run();
        let context = format!("{last} changes: {errors:?}");
        assert!(errors.iter().all(|error| error.contains("the storage has stopped")), "{context}");
        let storage = script.storage.after_kill(script.storage.changes(), 0);
        script.check_kill(storage, usize::MAX, &context);
    }
}
