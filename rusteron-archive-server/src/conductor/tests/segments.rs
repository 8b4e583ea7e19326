//! Requests that remove, delete and move segments.

use rusteron_test_support::Random;

use super::harness::{CONNECT_TIMEOUT_MS, Harness, TERM_LENGTH, image, request};
use crate::catalog::NULL_POSITION;
use crate::conductor::effect::CounterView;
use crate::conductor::event::Event;
use crate::protocol::messages::{
    AttachSegmentsRequest, BoundedReplayRequest, DeleteDetachedSegmentsRequest,
    DetachSegmentsRequest, ExtendRecordingRequest2, MigrateSegmentsRequest, PurgeRecordingRequest,
    PurgeSegmentsRequest, ReplayRequest, TruncateRecordingRequest,
};
use crate::segment::Geometry;
use crate::segment::cut::clear_behind;
use crate::storage::faulty::{Change, FaultyStorage};
use crate::storage::{Storage, SyncLevel};

const IPC: &str = "aeron:ipc";
pub(super) const SEGMENT: i64 = 128 * 1024;
const STREAM: i32 = 10;
/// The end of most recordings, in their fourth segment.
pub(super) const END: i64 = 3 * SEGMENT + 4096;
/// A position at which there is a frame.
const FRAME: i64 = SEGMENT + 96;

pub(super) fn truncate(recording: i64, position: i64) -> Vec<u8> {
    request(TruncateRecordingRequest::TEMPLATE_ID, &[7, recording, position], &[])
}

fn purge(recording: i64) -> Vec<u8> {
    request(PurgeRecordingRequest::TEMPLATE_ID, &[7, recording], &[])
}

pub(super) fn detach(recording: i64, start: i64) -> Vec<u8> {
    request(DetachSegmentsRequest::TEMPLATE_ID, &[7, recording, start], &[])
}

pub(super) fn purge_segments(recording: i64, start: i64) -> Vec<u8> {
    request(PurgeSegmentsRequest::TEMPLATE_ID, &[7, recording, start], &[])
}

pub(super) fn delete_detached(recording: i64) -> Vec<u8> {
    request(DeleteDetachedSegmentsRequest::TEMPLATE_ID, &[7, recording], &[])
}

pub(super) fn attach(recording: i64) -> Vec<u8> {
    request(AttachSegmentsRequest::TEMPLATE_ID, &[7, recording], &[])
}

pub(super) fn migrate(source: i64, destination: i64) -> Vec<u8> {
    request(MigrateSegmentsRequest::TEMPLATE_ID, &[7, source, destination], &[])
}

pub(super) fn replay(recording: i64, position: i64) -> Vec<u8> {
    let fields = [6, recording, position, -1, 20, -1, -1];
    request(ReplayRequest::TEMPLATE_ID, &fields, &[IPC])
}

pub(super) fn extend(recording: i64) -> Vec<u8> {
    request(
        ExtendRecordingRequest2::TEMPLATE_ID,
        &[8, recording, STREAM.into(), 0, 1],
        &["aeron:ipc?alias=extend"],
    )
}

/// The header of a frame.
fn header(position: i64, stream_id: i32) -> Vec<u8> {
    let term = i64::from(TERM_LENGTH);
    let (term_id, term_offset) = (7 + (position / term) as i32, (position % term) as i32);
    // Version, flags and type; session id.
    [96, 0x0001_c000, term_offset, 5, stream_id, term_id, 0, 0]
        .iter()
        .flat_map(|field: &i32| field.to_le_bytes())
        .collect()
}

/// A segment that has frames at its beginning, at [`FRAME`], and at the recording's end.
pub(super) fn add_segment(storage: &FaultyStorage, recording: i64, base: i64) {
    let name = format!("{recording}-{base}.rec");
    let mut file = storage.create(&name, SEGMENT as u64).expect("a segment");
    for position in [base, FRAME, END - 96] {
        if (base..base + SEGMENT).contains(&position) {
            let offset = (position - base) as u64;
            file.write_all_at(&header(position, STREAM), offset).expect("a write");
        }
    }
}

/// A recording from 0 to [`END`] that has ended, with four segments.
pub(super) fn add(harness: &mut Harness) -> i64 {
    let recording = harness.add_stopped(IPC, END);
    (0..4).for_each(|number| add_segment(&harness.storage, recording, number * SEGMENT));
    recording
}

pub(super) fn recorded() -> Harness {
    let mut harness = Harness::connected();
    assert_eq!(add(&mut harness), 0);
    harness
}

/// Carries out a request, and returns what the client is told until nothing is left to do.
pub(super) fn outcome(harness: &mut Harness, request: Vec<u8>) -> Vec<String> {
    harness.clear();
    harness.send(request);
    while harness.tick() > 0 {}
    harness.sent()
}

pub(super) fn names(harness: &Harness) -> Vec<String> {
    let mut names = harness.storage.names().expect("names");
    names.retain(|name| name.ends_with(".rec") || name.ends_with(".del"));
    names
}

pub(super) fn edges(harness: &Harness, recording: i64) -> Option<(i64, i64)> {
    let descriptor = harness.conductor.shared.catalog.get(recording.into())?;
    Some((descriptor.start_position, descriptor.stop_position))
}

pub(super) const DELETED: &str = "7: DELETE recording=0 subscription=-1 position=-1";

#[test]
fn truncation_answers_then_deletes_then_signals() {
    let mut harness = recorded();
    harness.send(truncate(0, FRAME));
    assert_eq!(harness.sent(), ["7: ok 2"]);
    assert_eq!(edges(&harness, 0), Some((0, FRAME)));
    let content = harness.storage.content("0-131072.rec").expect("a segment");
    assert_eq!((content.len(), &content[..4]), (SEGMENT as usize, &[96, 0, 0, 0][..]));
    assert!(content[96..].iter().all(|&byte| byte == 0));
    assert_eq!(names(&harness).len(), 4);
    // One file in a turn, the last one first.
    harness.tick();
    assert_eq!(names(&harness), ["0-0.rec", "0-131072.rec", "0-262144.rec"]);
    assert_eq!(
        outcome(&mut harness, truncate(0, 0)),
        [
            "7: error 0: another delete operation in progress for recording id: 0".to_owned(),
            DELETED.to_owned(),
        ]
    );
    assert_eq!(names(&harness), ["0-0.rec", "0-131072.rec"]);
    // At its end, nothing is left to do.
    assert_eq!(outcome(&mut harness, truncate(0, FRAME)), ["7: ok 0", DELETED]);
    // Like Java, this deletes the file that begins there, too.
    assert_eq!(outcome(&mut harness, truncate(0, SEGMENT)), ["7: ok 1", DELETED]);
    assert_eq!(names(&harness), ["0-0.rec"]);
    assert_eq!(outcome(&mut harness, truncate(0, 0)), ["7: ok 1", DELETED]);
    assert_eq!((names(&harness), edges(&harness, 0)), (Vec::new(), Some((0, 0))));
    assert!(harness.errors().is_empty());
}

#[test]
fn wrong_truncations_change_nothing() {
    let mut harness = recorded();
    let changes = harness.storage.log().len();
    for position in [-32, 13, END + 32, i64::MAX, i64::MIN] {
        let expected =
            format!("7: error 16: invalid position {position}: start=0 stop={END} alignment=32");
        assert_eq!(outcome(&mut harness, truncate(0, position)), [expected]);
    }
    // Java ends the recording there all the same.
    assert_eq!(
        outcome(&mut harness, truncate(0, FRAME + 32)),
        [format!("7: error 0: {} position not aligned to a data header", FRAME + 32)]
    );
    assert_eq!(outcome(&mut harness, truncate(9, 0)), ["7: error 5: unknown recording id: 9"]);
    assert_eq!(harness.storage.log().len(), changes);
    harness.storage.remove("0-131072.rec").expect("a segment");
    let refusal = outcome(&mut harness, truncate(0, FRAME)).remove(0);
    assert!(refusal.starts_with("7: error 0: 0-131072.rec: failed to read"), "{refusal}");
    assert_eq!(edges(&harness, 0), Some((0, END)));
    let active = harness.add_active("aeron:ipc?alias=active");
    assert_eq!(
        outcome(&mut harness, truncate(active, 0)),
        ["7: error 2: cannot truncate active recording"]
    );
    assert_eq!(
        outcome(&mut harness, purge(active)),
        [format!("7: error 2: cannot purge active recording {active}")]
    );
}

#[test]
fn truncation_waits_for_its_replays() {
    let mut harness = recorded();
    harness.send(replay(0, 0));
    harness.tell(Event::ReplayStarted(1.into(), Ok(-3)));
    harness.send(replay(0, 0));
    harness.clear();
    harness.send(truncate(0, FRAME));
    assert_eq!(
        (harness.sent(), harness.orders()),
        (vec!["7: ok 2".to_owned()], vec!["abort replay 1".to_owned()])
    );
    // The second starts, and is stopped at once.
    harness.tell(Event::ReplayStarted(2.into(), Ok(-3)));
    assert_eq!(harness.orders(), ["abort replay 2"]);
    harness.tell(Event::ReplayEnded(1.into(), None));
    harness.tick();
    assert_eq!(names(&harness).len(), 4);
    harness.tell(Event::ReplayEnded(2.into(), None));
    // A replay of what is left does not hold it up.
    harness.send(replay(0, 0));
    while harness.tick() > 0 {}
    assert_eq!(harness.sent().last().map(String::as_str), Some(DELETED));
    assert_eq!(names(&harness).len(), 2);
}

#[test]
fn nothing_is_replayed_where_files_are_deleted() {
    let mut harness = recorded();
    harness.send(truncate(0, FRAME));
    harness.clear();
    harness.out.counters.insert(4, CounterView { value: END, registration_id: 70.into() });
    let fields = [6, 0, 0, -1, 4, 20, -1, -1];
    harness.send(request(BoundedReplayRequest::TEMPLATE_ID, &fields, &[IPC]));
    let text = "cannot start replay of recording 0 due to an outstanding delete operation";
    assert_eq!(harness.sent(), [format!("6: error 0: {text}")]);
}

#[test]
fn replays_of_other_recordings_hold_nothing_up() {
    let mut harness = recorded();
    add(&mut harness);
    harness.send(replay(1, 0));
    assert_eq!(outcome(&mut harness, detach(0, SEGMENT)), ["7: ok 0"]);
    assert_eq!(outcome(&mut harness, attach(0)), ["7: ok 1"]);
    assert_eq!(outcome(&mut harness, truncate(0, FRAME)).last().map(String::as_str), Some(DELETED));
    harness.tell(Event::ReplayStarted(1.into(), Ok(-3)));
    assert!(harness.orders().is_empty());
}

#[test]
fn extension_is_refused_while_its_segments_are_deleted() {
    let refused = "cannot extend recording 0 due to an outstanding delete operation";
    let is_refused = |position| {
        let mut harness = recorded();
        harness.send(truncate(0, position));
        harness.clear();
        harness.send(extend(0));
        assert_eq!(harness.sent(), [format!("8: error 0: {refused}")]);
        harness
    };
    // The only file that is deleted begins where the recording ends.
    is_refused(3 * SEGMENT);
    let mut harness = is_refused(FRAME);
    while harness.tick() > 0 {}
    harness.send(extend(0));
    let subscription = harness.register();
    // Requested before the next one.
    harness.send(truncate(0, 0));
    harness.clear();
    let joined = |position| {
        let mut image = image(20);
        image.join_position = position;
        image
    };
    harness.add_image(subscription, &joined(0));
    assert_eq!(
        harness.sent(),
        [format!("8: error 0: {refused}: streamId=10 channel=aeron:ipc?alias=extend")]
    );
    while harness.tick() > 0 {}
    harness.send(extend(0));
    let subscription = harness.register();
    harness.clear();
    harness.add_image(subscription, &joined(0));
    assert!(harness.sent().is_empty());
    assert_eq!(edges(&harness, 0), Some((0, NULL_POSITION)));
}

#[test]
fn extension_keeps_what_lies_behind_the_end() {
    let mut harness = recorded();
    let content = |harness: &Harness, name| harness.storage.content(name).expect("a segment");
    let [at_end, last] = ["0-131072.rec", "0-393216.rec"].map(|name| content(&harness, name));
    harness.storage.create("0-524288.rec", SEGMENT as u64).expect("an empty segment");
    // As if the process had ended behind the edit of a truncation, or an older catalog had been
    // restored.
    harness.conductor.shared.catalog.set_stop_position(0.into(), FRAME).expect("an edit");
    harness.send(extend(0));
    let subscription = harness.register();
    let mut image = image(20);
    image.join_position = FRAME;
    harness.add_image(subscription, &image);
    assert_eq!(edges(&harness, 0), Some((0, NULL_POSITION)));
    let kept = ["0-131072.rec.del", "0-262144.rec.del", "0-393216.rec.del"];
    assert_eq!(names(&harness), ["0-0.rec", "0-131072.rec", kept[0], kept[1], kept[2]]);
    assert_eq!(content(&harness, kept[0])[96..], at_end[96..]);
    assert_eq!(content(&harness, kept[2]), last);
    assert!(harness.errors()[0].contains(&kept.join(", ")), "{:?}", harness.errors());
    let segment = content(&harness, "0-131072.rec");
    assert!(segment.len() as i64 == SEGMENT && segment[96..].iter().all(|&byte| byte == 0));
}

#[test]
fn purged_recording_is_gone_and_its_files_follow() {
    let mut harness = recorded();
    add(&mut harness);
    harness.storage.create("0-0.rec.del", 1).expect("a file of an older release");
    harness.send(replay(0, 0));
    assert_eq!(
        outcome(&mut harness, purge(0)),
        ["7: error 2: cannot purge recording with active replay 0"]
    );
    harness.tell(Event::ReplayEnded(1.into(), None));
    assert_eq!(outcome(&mut harness, purge(0)), ["7: ok 5", DELETED]);
    assert_eq!((edges(&harness, 0), edges(&harness, 1)), (None, Some((0, END))));
    assert_eq!(names(&harness).len(), 4);
    assert_eq!(outcome(&mut harness, purge(0)), ["7: error 5: unknown recording id: 0"]);
}

#[test]
fn detached_segments_return_or_are_deleted() {
    let mut harness = recorded();
    let mut tell =
        |request, expected: &[&str]| assert_eq!(outcome(&mut harness, request), expected);
    tell(detach(0, SEGMENT + 32), &["7: error 0: invalid segment start: newStartPosition=131104"]);
    tell(detach(0, 0), &["7: error 0: invalid detach: newStartPosition=0 lowerBound=131072"]);
    let text = "7: error 0: invalid detach: in use, newStartPosition=524288 upperBound=393216";
    tell(detach(0, 4 * SEGMENT), &[text]);
    tell(
        detach(0, i64::MIN),
        &["7: error 0: invalid detach: newStartPosition=-9223372036854775808 lowerBound=131072"],
    );
    tell(attach(0), &["7: ok 0"]);
    tell(detach(0, 2 * SEGMENT), &["7: ok 0"]);
    tell(attach(0), &["7: ok 2"]);
    tell(detach(0, 3 * SEGMENT), &["7: ok 0"]);
    tell(
        purge_segments(0, 3 * SEGMENT),
        &["7: error 0: invalid detach: newStartPosition=393216 lowerBound=524288"],
    );
    tell(delete_detached(0), &["7: ok 3", DELETED]);
    tell(delete_detached(0), &["7: ok 0", DELETED]);
    tell(attach(0), &["7: ok 0"]);
    assert_eq!(
        (names(&harness), edges(&harness, 0)),
        (vec!["0-393216.rec".to_owned()], Some((3 * SEGMENT, END)))
    );
    // The files of the last one are counted, whether they are there or not.
    let id = add(&mut harness);
    harness.storage.remove("1-0.rec").expect("a segment");
    let signal = "7: DELETE recording=1 subscription=-1 position=-1";
    assert_eq!(outcome(&mut harness, purge_segments(id, 2 * SEGMENT)), ["7: ok 2", signal]);
    assert_eq!(names(&harness).len(), 3);
}

#[test]
fn detach_stops_at_what_is_recorded_and_replayed() {
    let mut harness = Harness::connected();
    let id = harness.add_active(IPC);
    harness.record_to(id, 2 * SEGMENT + 64);
    harness.clear();
    let text = "7: error 0: invalid detach: in use, newStartPosition=393216 upperBound=262144";
    assert_eq!(outcome(&mut harness, detach(id, 3 * SEGMENT)), [text]);
    harness.send(replay(id, SEGMENT));
    harness.tell(Event::ReplayStarted(1.into(), Ok(9)));
    let refusal = outcome(&mut harness, detach(id, 2 * SEGMENT)).remove(0);
    let text = "7: error 0: invalid detach: replay in progress -  state=INIT newStartPosition=262144 \
                upperBound=131072 sessionId=9 streamId=20 channel=aeron:";
    assert!(refusal.starts_with(text), "{refusal}");
    assert_eq!(outcome(&mut harness, detach(id, SEGMENT)), ["7: ok 0"]);
    harness.tell(Event::ReplayEnded(1.into(), None));
    assert_eq!(outcome(&mut harness, detach(id, 2 * SEGMENT)), ["7: ok 0"]);
    assert_eq!(edges(&harness, id), Some((2 * SEGMENT, NULL_POSITION)));
}

#[test]
fn wrong_files_are_not_attached() {
    let mut harness = recorded();
    outcome(&mut harness, detach(0, 3 * SEGMENT));
    let write = |harness: &Harness, name: &str, bytes: &[u8], offset: u64| {
        let mut file = harness.storage.open(name).expect("a segment");
        file.write_all_at(bytes, offset).expect("a write");
    };
    write(&harness, "0-131072.rec", &[0], SEGMENT as u64);
    // Those behind it are.
    assert_eq!(
        outcome(&mut harness, attach(0)),
        ["7: error 0: fileLength=131073 not equal to segmentLength=131072"]
    );
    assert_eq!(edges(&harness, 0), Some((2 * SEGMENT, END)));
    let mut file = harness.storage.open("0-131072.rec").expect("a segment");
    file.set_length(SEGMENT as u64).expect("a cut");
    write(&harness, "0-131072.rec", &header(SEGMENT, STREAM + 1), 0);
    let text = "7: error 0: stream id does not match: actual=11 expected=10";
    assert_eq!(outcome(&mut harness, attach(0)), [text]);
    let other = header(SEGMENT + i64::from(TERM_LENGTH), STREAM);
    write(&harness, "0-131072.rec", &other, 0);
    let text = "7: error 0: term id does not match: actual=10 expected=9";
    assert_eq!(outcome(&mut harness, attach(0)), [text]);
    file.set_length(0).and_then(|()| file.set_length(SEGMENT as u64)).expect("a cut");
    let text = "7: error 0: fragment not found in first term of segment dir/0-131072.rec";
    assert_eq!(outcome(&mut harness, attach(0)), [text]);
    // The recording's first frame may lie within a segment.
    write(&harness, "0-131072.rec", &header(SEGMENT + 4096, STREAM), 4096);
    assert_eq!(outcome(&mut harness, attach(0)), ["7: ok 1"]);
    assert_eq!(edges(&harness, 0), Some((SEGMENT + 4096, END)));
    harness.storage.fail_reads(Some(std::io::ErrorKind::Other));
    assert_eq!(outcome(&mut harness, attach(0)), ["7: ok 0"]);
}

#[test]
fn files_are_not_attached_while_they_are_deleted() {
    let mut harness = recorded();
    add(&mut harness);
    harness.send(purge_segments(0, 2 * SEGMENT));
    harness.clear();
    harness.send(attach(1));
    assert_eq!(harness.sent(), ["7: ok 0"]);
    for request in [attach(0), purge(0), delete_detached(0), migrate(0, 0)] {
        harness.send(request);
    }
    let refusals = harness.sent();
    assert_eq!(refusals.len(), 4);
    let text = "another delete operation in progress for recording id: 0";
    // Migration is refused before.
    assert!(refusals[..3].iter().all(|refusal| refusal.ends_with(text)), "{refusals:?}");
}

#[test]
fn deletion_goes_on_without_its_client() {
    let mut harness = recorded();
    harness.send(purge(0));
    harness.out.is_connected = false;
    harness.tick_after(CONNECT_TIMEOUT_MS + 1);
    assert!(!names(&harness).is_empty());
    while harness.tick() > 0 {}
    assert!(names(&harness).is_empty());
}

#[test]
fn deletion_ends_with_the_server() {
    let mut harness = recorded();
    harness.send(purge(0));
    harness.clear();
    harness.conductor.begin_close(harness.now, &mut harness.out);
    harness.conductor.finish_close(harness.now, &mut harness.out);
    assert_eq!((names(&harness), harness.sent()), (Vec::new(), vec![DELETED.to_owned()]));
}

#[test]
fn file_that_cannot_be_deleted_is_reported() {
    let mut harness = recorded();
    harness.send(purge(0));
    harness.storage.fail_after(1, std::io::ErrorKind::PermissionDenied);
    harness.clear();
    while harness.tick() > 0 {}
    let text = "unable to delete segment file: dir/0-131072.rec: permission denied";
    assert_eq!(harness.sent(), [format!("7: error 0: {text}"), DELETED.to_owned()]);
    assert_eq!(harness.errors(), [text]);
    assert_eq!(names(&harness), ["0-131072.rec"]);
}

/// Checks that the directory, and a catalog opened on it, have a file for each position of a recording.
fn check_files(storage: &FaultyStorage, context: &str) {
    let opened = Harness::open(storage, SyncLevel::None)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    for descriptor in opened.descriptors_from(0.into()) {
        let geometry: Geometry = descriptor.geometry();
        let (mut base, stop) = (geometry.first_base(), descriptor.stop_position);
        while base < stop && descriptor.start_position < stop {
            let length = storage.length(&geometry.name(base)).expect("a length");
            assert!(length.is_some(), "{context}: {descriptor:?} {base}");
            base += SEGMENT;
        }
        clear_behind(storage, &geometry, stop, SyncLevel::None).expect("a clear end");
        let is_behind = |name: &String| {
            crate::segment::geometry::parse_name(name)
                .is_some_and(|(id, base)| id == geometry.recording_id && base > geometry.base(stop))
        };
        assert!(!storage.names().expect("names").iter().any(is_behind), "{context}");
    }
}

/// Requests that all change something.
fn script() -> Vec<Vec<u8>> {
    vec![
        truncate(0, FRAME),
        purge_segments(1, SEGMENT),
        detach(1, 2 * SEGMENT),
        attach(1),
        purge(2),
        truncate(0, SEGMENT),
        migrate(0, 1),
        detach(1, 3 * SEGMENT),
        delete_detached(1),
        truncate(1, 3 * SEGMENT),
    ]
}

fn three() -> Harness {
    let mut harness = recorded();
    add(&mut harness);
    add(&mut harness);
    harness
}

#[test]
fn kill_at_any_change_leaves_no_edge_without_file() {
    let mut harness = three();
    let before = harness.storage.log().len();
    for request in script() {
        let answers = outcome(&mut harness, request);
        assert!(answers[0].starts_with("7: ok"), "{answers:?}");
    }
    let changes = harness.storage.log().len();
    assert!(changes > before + 20, "{changes}");
    for last in before..=changes {
        check_files(&harness.storage.after_kill(last, 0), &format!("{last} changes"));
    }
}

/// Each request is done as a whole, or not at all, and for good once it is answered.
#[test]
fn power_cut_at_any_change_keeps_what_was_answered() {
    let storage = three().storage;
    let mut harness =
        Harness::connected_on(storage.after_kill(storage.changes(), 0), SyncLevel::Data);
    let known = |harness: &Harness| [0, 1, 2].map(|recording| edges(harness, recording));
    let mut states = vec![(harness.storage.changes(), known(&harness))];
    for request in script() {
        let answers = outcome(&mut harness, request);
        assert!(answers[0].starts_with("7: ok"), "{answers:?}");
        states.push((harness.storage.changes(), known(&harness)));
    }
    // Without this sync, a power cut could bring deleted files back.
    assert_eq!(harness.storage.log().last(), Some(&Change::SyncDir));
    let mut random = Random::new(1);
    for changes in states[0].0..=harness.storage.changes() {
        let after = states.partition_point(|(made, _)| *made <= changes);
        let possible = &states[after - 1..states.len().min(after + 1)];
        let cut = harness.storage.power_cut(changes);
        for (number, storage) in cut.outcomes(1 << 10, 20, &mut random).enumerate() {
            let context = format!("{changes} changes, outcome {number}");
            check_files(&storage, &context);
            let catalog = Harness::open(&storage, SyncLevel::Data).expect("a catalog");
            let edge = |recording| {
                catalog.get(recording).map(|found| (found.start_position, found.stop_position))
            };
            for recording in [0, 1, 2] {
                let found = edge(recording.into());
                let is_known = possible.iter().any(|(_, edges)| edges[recording as usize] == found);
                assert!(is_known, "{context}: {recording}: {found:?} of {possible:?}");
            }
        }
    }
}

#[test]
fn failure_of_any_change_leaves_no_edge_without_file() {
    for failing in 0..40 {
        let mut harness = three();
        harness.storage.fail_after(failing, std::io::ErrorKind::PermissionDenied);
        let mut answers = Vec::new();
        for request in script() {
            answers.extend(outcome(&mut harness, request));
        }
        harness.storage.fail_after(usize::MAX, std::io::ErrorKind::Other);
        let storage = harness.storage.after_kill(harness.storage.log().len(), 0);
        check_files(&storage, &format!("change {failing}: {answers:?}"));
        // Each request has one answer, and nothing is left in progress.
        assert!(answers.len() >= script().len());
        assert_eq!(harness.tick(), 0);
    }
}
