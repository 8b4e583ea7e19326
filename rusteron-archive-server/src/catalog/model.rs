//! Tests: random edits of a catalog, compared with a model of it, without and with failures and crashes.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use rusteron_test_support::Random;

use crate::catalog::descriptor::{
    CHECKSUM_OFFSET, Descriptor, ENTRY_HEADER_LENGTH, FIXED_LENGTH, NULL_POSITION, NULL_TIMESTAMP,
    RECORDING_ID_OFFSET, RecordingState, Texts, entry_length, stated_end, stated_id,
};
use crate::catalog::file::CATALOG_NAME;
use crate::catalog::header::{self, HEADER_LENGTH, i32_at};
use crate::catalog::{Catalog, CatalogError, CatalogSettings, NewRecording};
use crate::ids::RecordingId;
use crate::segment::checksum::Checksum;
use crate::storage::faulty::FaultyStorage;
use crate::storage::{PAGE_LENGTH, SyncLevel};

/// The time at which a catalog is opened again.
const REOPENED_MS: i64 = 1_000_000;

pub(super) fn settings() -> CatalogSettings {
    CatalogSettings {
        capacity: 4 * PAGE_LENGTH as u64,
        sync_level: SyncLevel::None,
        file_sync_level: SyncLevel::None,
        checksum: None,
        now_ms: REOPENED_MS,
        positions: HashMap::new(),
        is_original: true,
    }
}

pub(super) fn open(
    storage: &FaultyStorage,
    settings: &CatalogSettings,
) -> Result<Catalog, CatalogError> {
    Catalog::open(Arc::new(storage.clone()), settings)
}

/// The recordings that a catalog must have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Model {
    recordings: BTreeMap<RecordingId, Known>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    descriptor: Descriptor,
    /// Stripped channel, original channel, source identity.
    texts: [String; 3],
}

/// An edit.
#[derive(Debug, Clone)]
enum Edit {
    Add { start_position: i64, session_id: i32, stream_id: i32, texts: [String; 3], now_ms: i64 },
    Stop { id: RecordingId, position: i64, now_ms: i64 },
    Extend { id: RecordingId, session_id: i32, correlation_id: i64 },
    UpdateChannel { id: RecordingId, stripped: String, original: String },
    MoveStart { id: RecordingId, position: i64 },
    MoveStop { id: RecordingId, position: i64 },
    Delete { id: RecordingId },
}

impl Edit {
    fn random(random: &mut Random, model: &Model, now_ms: i64) -> Self {
        let count = model.recordings.len();
        let Some((&id, known)) = model.recordings.iter().nth(random.below(count)) else {
            return Self::add(random, now_ms);
        };
        let Descriptor { start_position: start, stop_position: stop, .. } = known.descriptor;
        match random.below(16) {
            0..4 => Self::add(random, now_ms),
            4..7 => {
                let position = known.descriptor.start_position + 32 * random.below(1000) as i64;
                Self::Stop { id, position, now_ms }
            }
            7..9 => {
                let (session_id, correlation_id) = (random.next() as i32, random.next() as i64);
                Self::Extend { id, session_id, correlation_id }
            }
            9..12 => {
                let end = if stop == NULL_POSITION { start + 32_000 } else { stop };
                Self::MoveStart { id, position: 32 * random.below(end as usize / 32 + 1) as i64 }
            }
            12..14 if stop != NULL_POSITION => {
                Self::MoveStop { id, position: start + 32 * random.below(1000) as i64 }
            }
            14 => Self::Delete { id },
            _ => Self::UpdateChannel { id, stripped: text(random), original: text(random) },
        }
    }

    fn add(random: &mut Random, now_ms: i64) -> Self {
        Self::Add {
            start_position: 32 * random.below(10_000) as i64,
            session_id: random.below(3) as i32,
            stream_id: random.below(3) as i32,
            texts: [text(random), text(random), text(random)],
            now_ms,
        }
    }

    fn make(&self, catalog: &mut Catalog) -> Result<(), CatalogError> {
        match self {
            Self::Add { start_position, session_id, stream_id, texts, now_ms } => {
                let next_id = catalog.next_id();
                let [stripped_channel, original_channel, source_identity] = texts;
                let new = NewRecording {
                    start_position: *start_position,
                    initial_term_id: 7,
                    segment_length: 128 << 10,
                    term_length: 64 << 10,
                    mtu: 1408,
                    session_id: *session_id,
                    stream_id: *stream_id,
                    stripped_channel,
                    original_channel,
                    source_identity,
                };
                let id = catalog.add(new, *now_ms)?;
                assert_eq!((id, catalog.next_id()), (next_id, next_id.saturating_next()));
                Ok(())
            }
            Self::Stop { id, position, now_ms } => catalog.set_stopped(*id, *position, *now_ms),
            Self::Extend { id, session_id, correlation_id } => {
                catalog.set_extended(*id, 12.into(), (*correlation_id).into(), *session_id)
            }
            Self::UpdateChannel { id, stripped, original } => {
                catalog.update_channel(*id, stripped, original)
            }
            Self::MoveStart { id, position } => catalog.set_start_position(*id, *position),
            Self::MoveStop { id, position } => catalog.set_stop_position(*id, *position),
            Self::Delete { id } => catalog.delete(*id),
        }
    }

    /// Makes the edit in the model, where `next_id` is the id of a recording that is added.
    fn model(&self, model: &mut Model, next_id: RecordingId) {
        let id = match self {
            Self::Add { .. } => next_id,
            Self::Delete { id } => return drop(model.recordings.remove(id)),
            Self::Stop { id, .. }
            | Self::Extend { id, .. }
            | Self::UpdateChannel { id, .. }
            | Self::MoveStart { id, .. }
            | Self::MoveStop { id, .. } => *id,
        };
        let known = model.recordings.entry(id).or_insert_with(|| Known {
            descriptor: Descriptor {
                control_session_id: 0,
                correlation_id: 0,
                recording_id: id,
                start_timestamp: 0,
                stop_timestamp: NULL_TIMESTAMP,
                start_position: 0,
                stop_position: NULL_POSITION,
                initial_term_id: 7,
                segment_length: 128 << 10,
                term_length: 64 << 10,
                mtu: 1408,
                session_id: 0,
                stream_id: 0,
            },
            texts: Default::default(),
        });
        let descriptor = &mut known.descriptor;
        match self {
            Self::Add { start_position, session_id, stream_id, texts, now_ms } => {
                descriptor.start_position = *start_position;
                descriptor.session_id = *session_id;
                descriptor.stream_id = *stream_id;
                descriptor.start_timestamp = *now_ms;
                known.texts = texts.clone();
            }
            Self::Stop { position, now_ms, .. } => {
                descriptor.stop_position = *position;
                descriptor.stop_timestamp = *now_ms;
            }
            Self::Extend { session_id, correlation_id, .. } => {
                descriptor.control_session_id = 12;
                descriptor.correlation_id = *correlation_id;
                descriptor.session_id = *session_id;
                descriptor.stop_position = NULL_POSITION;
                descriptor.stop_timestamp = NULL_TIMESTAMP;
            }
            Self::UpdateChannel { stripped, original, .. } => {
                known.texts[..2].clone_from_slice(&[stripped.clone(), original.clone()]);
            }
            Self::MoveStart { position, .. } => descriptor.start_position = *position,
            Self::MoveStop { position, .. } => descriptor.stop_position = *position,
            Self::Delete { .. } => {}
        }
    }
}

fn text(random: &mut Random) -> String {
    let end = if random.percent(5) { 5000 } else { 100 };
    let length = random.below(end);
    (0..length).map(|_| char::from(b'a' + random.below(4) as u8)).collect()
}

impl Model {
    /// Ends active recordings as the recovery does if there are no segments.
    fn recovered(mut self) -> Self {
        for known in self.recordings.values_mut().filter(|known| known.descriptor.is_active()) {
            known.descriptor.stop_position = known.descriptor.start_position;
            known.descriptor.stop_timestamp = REOPENED_MS;
        }
        self
    }

    /// Reads all of a catalog.
    fn of(catalog: &Catalog, storage: &FaultyStorage, checksum: Option<Checksum>) -> Self {
        let mut model = Self::default();
        let content = storage.content(CATALOG_NAME).expect("a catalog");
        let (entries, _) = entries(&content);
        for descriptor in catalog.descriptors_from(i64::MIN.into()) {
            let id = descriptor.recording_id;
            assert_eq!(catalog.get(id), Some(descriptor));
            let entry = entry(&entries, id);
            let texts = texts(entry);
            let bytes = catalog.descriptor_bytes(id).expect("its bytes");
            assert_eq!(entry[RECORDING_ID_OFFSET..], *bytes);
            if let Some(checksum) = checksum {
                let expected = checksum.of(&entry[ENTRY_HEADER_LENGTH..]);
                assert_eq!(i32_at(entry, CHECKSUM_OFFSET), expected, "recording {id}");
            }
            model.recordings.insert(id, Known { descriptor: *descriptor, texts });
        }
        model
    }

    /// Compares the answers of a catalog.
    fn check_queries(&self, catalog: &Catalog, random: &mut Random) {
        let next_id = catalog.next_id();
        let id = RecordingId::from(random.below(next_id.get() as usize + 2) as i64 - 1);
        let known = self.recordings.get(&id);
        assert_eq!(catalog.get(id), known.map(|known| &known.descriptor));
        assert_eq!(catalog.descriptor_bytes(id).is_some(), known.is_some());
        let from: Vec<_> = catalog.descriptors_from(id).map(|found| found.recording_id).collect();
        assert!(from.iter().eq(self.recordings.range(id..).map(|(id, _)| id)));

        let length = random.below(4);
        let fragment: String = text(random).chars().take(length).collect();
        let contains = known.is_some_and(|known| known.texts[1].contains(&fragment));
        assert_eq!(catalog.channel_contains(id, fragment.as_bytes()), contains);
        let (session_id, stream_id) = (random.below(3) as i32, random.below(3) as i32);
        let is_match = |(_, known): &(&RecordingId, &Known)| {
            let Descriptor { session_id: session, stream_id: stream, .. } = known.descriptor;
            (session, stream) == (session_id, stream_id) && known.texts[1].contains(&fragment)
        };
        let last = self.recordings.range(id..).rfind(is_match).map(|(id, _)| *id);
        assert_eq!(catalog.find_last(id, session_id, stream_id, fragment.as_bytes()), last);
    }
}

/// Returns all entries of the file, whatever their state, and what follows them.
fn entries(content: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut rest = &content[HEADER_LENGTH..];
    let mut entries = Vec::new();
    while let Some(length) = entry_length(rest) {
        let (entry, next) = rest.split_at(length);
        entries.push(entry);
        rest = next;
    }
    (entries, rest)
}

fn texts(entry: &[u8]) -> [String; 3] {
    let texts = Texts::read(entry).expect("texts");
    [texts.stripped_channel, texts.original_channel, texts.source_identity]
        .map(|text| String::from_utf8(text.to_vec()).expect("our own text"))
}

/// Returns the valid entry of a recording, without what follows its stated length.
fn entry<'a>(entries: &[&'a [u8]], id: RecordingId) -> &'a [u8] {
    let is_its = |entry: &&&[u8]| {
        RecordingState::of(entry) == Ok(RecordingState::Valid) && stated_id(entry) == id
    };
    let found = entries.iter().find(is_its).expect("an entry");
    &found[..stated_end(found)]
}

/// Checks that a failed edit has left nothing in the file.
fn check_undone(storage: &FaultyStorage) {
    let content = storage.content(CATALOG_NAME).expect("a catalog");
    let (entries, rest) = entries(&content);
    let is_known = |entry: &[u8]| {
        matches!(RecordingState::of(entry), Ok(RecordingState::Valid | RecordingState::Deleted))
    };
    assert!(entries.iter().all(|entry| is_known(entry)));
    assert!(rest.iter().all(|&byte| byte == 0));
}

/// Checks what Java's archive and its tool rely on when they open the file.
fn check_for_java(storage: &FaultyStorage) {
    let Some(content) = storage.content(CATALOG_NAME) else { return };
    header::check(content.first_chunk().expect("a header")).expect("a header of ours");
    let (entries, _) = entries(&content);
    let ids = || entries.iter().map(|entry| stated_id(entry));
    // Or Java refuses to start.
    assert!(ids().all(|id| id < header::next_id(&content)));
    // Or `compact` deletes segments of the valid one, and Java refuses to start.
    assert!(ids().zip(ids().skip(1)).all(|(id, next)| id < next));
}

fn checksums() -> [Option<Checksum>; 3] {
    [None, Some(Checksum::Crc32), Some(Checksum::Crc32c)]
}

#[test]
fn random_edits_match_the_model() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let checksum = checksums()[seed as usize % 3];
        let capacity = [32, 1000, 1 << 16][random.below(3)];
        let settings = CatalogSettings { capacity, checksum, ..settings() };
        let storage = FaultyStorage::default();
        let mut catalog = open(&storage, &settings).expect("a catalog");
        let mut model = Model::default();
        for step in 0..150 {
            let edit = Edit::random(&mut random, &model, step);
            edit.model(&mut model, catalog.next_id());
            edit.make(&mut catalog)
                .unwrap_or_else(|error| panic!("seed {seed}: {edit:?}: {error}"));
            if random.percent(5) {
                let next_id = catalog.next_id();
                catalog = open(&storage, &settings).expect("a catalog");
                assert_eq!(catalog.next_id(), next_id);
                model = model.recovered();
            }
            model.check_queries(&catalog, &mut random);
            if random.percent(20) {
                assert_eq!(Model::of(&catalog, &storage, checksum), model, "seed {seed}");
                check_for_java(&storage);
            }
        }
    }
}

#[test]
fn failed_edit_changes_nothing() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let checksum = checksums()[seed as usize % 3];
        let sync_level = [SyncLevel::None, SyncLevel::Data][random.below(2)];
        let settings = CatalogSettings { capacity: 100, checksum, sync_level, ..settings() };
        let storage = FaultyStorage::default();
        let mut catalog = open(&storage, &settings).expect("a catalog");
        let mut model = Model::default();
        // False while bytes of a failed edit are still there.
        let mut is_undone = true;
        for step in 0..100 {
            let edit = Edit::random(&mut random, &model, step);
            let next_id = catalog.next_id();
            let is_full = random.percent(40);
            if is_full {
                storage.limit_space(Some(random.below(20) as u64 * PAGE_LENGTH as u64));
            } else {
                storage.fail_after(random.below(12), io::ErrorKind::PermissionDenied);
            }
            match edit.make(&mut catalog) {
                Ok(()) => {
                    edit.model(&mut model, next_id);
                    is_undone = true;
                }
                Err(CatalogError::Io { .. }) => {
                    // An id can have been used up.
                    assert!((next_id..=next_id.saturating_next()).contains(&catalog.next_id()));
                    let mut replaced = model.clone();
                    edit.model(&mut replaced, next_id);
                    // A new file whose name could not be synced is there all the same.
                    if matches!(edit, Edit::UpdateChannel { .. })
                        && Model::of(&catalog, &storage, None) == replaced
                    {
                        model = replaced;
                    }
                    // A single failure is undone at once, and otherwise by the next edit.
                    is_undone &= !is_full;
                }
                Err(error) => panic!("seed {seed}: {error}"),
            }
            storage.fail_after(usize::MAX, io::ErrorKind::Other);
            storage.limit_space(None);
            model.check_queries(&catalog, &mut random);
            if is_undone {
                assert_eq!(Model::of(&catalog, &storage, checksum), model, "seed {seed}");
                check_for_java(&storage);
                check_undone(&storage);
            }
        }
    }
}

/// Makes random edits, and returns the states that were announced, each with the number of changes of the storage.
fn script(
    seed: u64,
    settings: &CatalogSettings,
    edits: i64,
) -> (FaultyStorage, Vec<(usize, Model)>) {
    let mut random = Random::new(seed);
    let storage = FaultyStorage::default();
    let mut catalog = open(&storage, settings).expect("a catalog");
    let mut model = Model::default();
    let mut announced = vec![(0, Model::default())];
    for step in 0..edits {
        let edit = Edit::random(&mut random, &model, step);
        edit.model(&mut model, catalog.next_id());
        edit.make(&mut catalog).expect("an edit");
        announced.push((storage.log().len(), model.clone()));
    }
    (storage, announced)
}

/// Opens what a crash has left, and compares it with the state before and behind the edit that the crash has met.
fn check_crash(
    storage: &FaultyStorage,
    settings: &CatalogSettings,
    announced: &[(usize, Model)],
    changes: usize,
) {
    check_for_java(storage);
    let mut catalog = open(storage, settings).unwrap_or_else(|error| panic!("{changes}: {error}"));
    let mut found = Model::of(&catalog, storage, None);
    let behind = announced.partition_point(|(made, _)| *made <= changes);
    let before = &announced[behind - 1].1;
    let after = announced.get(behind).map_or(before, |(_, model)| model);
    let ids = found.recordings.keys();
    assert!(
        ids.clone().all(|id| [before, after].iter().any(|it| it.recordings.contains_key(id))),
        "{changes}: an unknown recording"
    );
    assert!(ids.eq(before.recordings.keys()) || found.recordings.len() == after.recordings.len());
    let (before, after) = (before.clone().recovered(), after.clone().recovered());
    for (id, known) in &found.recordings {
        // A recording that is being added has no state before, and one that is being deleted none after.
        let states = [&before, &after].map(|model| model.recordings.get(id));
        let states: Vec<_> = states.into_iter().flatten().collect();
        assert!(states.iter().any(|state| state.texts == known.texts), "{changes}: {known:?}");
        // The entry may lie on two pages. Ids tell only who made the recording active.
        let without_ids = |descriptor: Descriptor| Descriptor {
            control_session_id: 0,
            correlation_id: 0,
            session_id: 0,
            ..descriptor
        };
        let descriptor = without_ids(known.descriptor);
        assert!(
            states.iter().any(|state| without_ids(state.descriptor) == descriptor),
            "{changes}: {known:?} instead of {states:?}"
        );
        let session_id = known.descriptor.session_id;
        assert!(states.iter().any(|state| state.descriptor.session_id == session_id));
    }
    // A crash can leave bytes behind the last entry. The catalog must not read them as an entry after the next edit.
    let edit = Edit::add(&mut Random::new(changes as u64), 5);
    edit.model(&mut found, catalog.next_id());
    edit.make(&mut catalog).expect("an edit");
    check_for_java(storage);
    let catalog = open(storage, settings).expect("the catalog again");
    assert_eq!(Model::of(&catalog, storage, None), found.recovered(), "{changes}");
}

#[test]
fn kill_at_any_write_loses_nothing_announced() {
    for seed in 0..4 {
        let checksum = checksums()[seed as usize % 3];
        let settings = CatalogSettings { capacity: 100, checksum, ..settings() };
        let (storage, announced) = script(seed, &settings, 60);
        for changes in 0..=storage.log().len() {
            for pages in 0..3 {
                let killed = storage.after_kill(changes, pages);
                check_crash(&killed, &settings, &announced, changes);
            }
        }
    }
}

#[test]
fn power_cut_at_any_change_loses_nothing_announced() {
    for seed in 0..4 {
        let settings = CatalogSettings { capacity: 100, sync_level: SyncLevel::Data, ..settings() };
        let (storage, announced) = script(seed, &settings, 40);
        let mut random = Random::new(seed);
        for changes in 0..=storage.log().len() {
            for _ in 0..4 {
                let mut survivors = |unsynced: usize| random.below(unsynced + 1);
                let cut = storage.after_power_cut(changes, &mut survivors);
                check_crash(&cut, &settings, &announced, changes);
            }
        }
    }
}

/// An entry whose header ends with a page is written in the order that its recovery needs.
#[test]
fn power_cut_between_the_pages_of_an_entry_is_survived() {
    let settings = CatalogSettings { sync_level: SyncLevel::Data, ..settings() };
    let storage = FaultyStorage::default();
    let mut catalog = open(&storage, &settings).expect("a catalog");
    let mut model = Model::default();
    let mut announced = vec![(0, model.clone())];
    for length in [PAGE_LENGTH - HEADER_LENGTH - ENTRY_HEADER_LENGTH - FIXED_LENGTH - 12, 50] {
        let texts = ["x".repeat(length), String::new(), String::new()];
        let edit = Edit::Add { start_position: 0, session_id: 1, stream_id: 2, texts, now_ms: 3 };
        edit.model(&mut model, catalog.next_id());
        edit.make(&mut catalog).expect("an edit");
        announced.push((storage.log().len(), model.clone()));
    }
    let content = storage.content(CATALOG_NAME).expect("a catalog");
    let (entries, _) = entries(&content);
    assert_eq!(entries[0].len(), PAGE_LENGTH - HEADER_LENGTH - ENTRY_HEADER_LENGTH);
    let mut random = Random::new(31);
    for changes in announced[1].0..=storage.log().len() {
        for _ in 0..50 {
            let mut survivors = |unsynced: usize| random.below(unsynced + 1);
            let cut = storage.after_power_cut(changes, &mut survivors);
            check_crash(&cut, &settings, &announced, changes);
        }
    }
}
