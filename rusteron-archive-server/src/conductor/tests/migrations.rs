//! Migrations of segments, and what may not happen to their recordings meanwhile.

use super::harness::{Harness, image};
use super::segments::{
    DELETED, END, SEGMENT, add, add_segment, attach, delete_detached, detach, edges, extend,
    migrate, names, outcome, purge_segments, recorded, replay, truncate,
};
use crate::conductor::effect::ImageDetails;
use crate::storage::Storage;

/// Two recordings that follow each other at a segment's start.
fn contiguous() -> Harness {
    let mut harness = recorded();
    add(&mut harness);
    assert_eq!(outcome(&mut harness, truncate(0, 2 * SEGMENT))[0], "7: ok 2");
    outcome(&mut harness, purge_segments(1, 2 * SEGMENT));
    harness.clear();
    harness
}

#[test]
fn migrated_segments_change_their_recording() {
    let mut harness = contiguous();
    harness.storage.create("0-262144.rec", SEGMENT as u64).expect("an empty segment");
    assert_eq!(outcome(&mut harness, migrate(0, 1)), ["7: ok 2", DELETED]);
    assert_eq!((edges(&harness, 0), edges(&harness, 1)), (Some((0, 0)), Some((0, END))));
    assert_eq!(names(&harness), ["1-0.rec", "1-131072.rec", "1-262144.rec", "1-393216.rec"]);

    // The catalog is an older copy, which has an earlier end.
    let mut harness = contiguous();
    add_segment(&harness.storage, 0, 2 * SEGMENT);
    assert_eq!(outcome(&mut harness, migrate(0, 1)), ["7: ok 2", DELETED]);
    assert!(names(&harness).contains(&"0-262144.rec".to_owned()));

    let mut harness = contiguous();
    let signal = "7: DELETE recording=1 subscription=-1 position=-1";
    assert_eq!(outcome(&mut harness, migrate(1, 0)), ["7: ok 2", signal]);
    assert_eq!(edges(&harness, 0), Some((0, END)));
    assert_eq!(edges(&harness, 1), Some((2 * SEGMENT, 2 * SEGMENT)));
    assert_eq!(names(&harness), ["0-0.rec", "0-131072.rec", "0-262144.rec", "0-393216.rec"]);
}

#[test]
fn recording_that_ends_before_its_start_gets_no_data() {
    let mut harness = contiguous();
    harness.conductor.shared.catalog.set_start_position(1.into(), END).expect("an edit");
    harness.conductor.shared.catalog.set_stop_position(1.into(), 2 * SEGMENT).expect("an edit");
    let before = names(&harness);
    let text = format!(
        "error 9: recording 1 ends at 262144, before its start at {END}: `rusteron archive mark-invalid` excludes it"
    );
    for request in [extend(1), migrate(1, 0), migrate(0, 1)] {
        let told = outcome(&mut harness, request);
        assert!(told.len() == 1 && told[0].ends_with(&text), "{told:?}");
    }
    assert_eq!(names(&harness), before);
}

#[test]
fn wrong_migrations_change_nothing() {
    let mut harness = contiguous();
    let third = add(&mut harness);
    let fourth = harness.add_active("aeron:ipc?alias=active");
    let mut tell = |request, expected: String| {
        let changes = harness.storage.log().len();
        assert_eq!(outcome(&mut harness, request), [expected]);
        assert_eq!(harness.storage.log().len(), changes);
    };
    tell(migrate(9, 0), "7: error 5: unknown recording id: 9".to_owned());
    tell(migrate(0, 9), "7: error 5: unknown recording id: 9".to_owned());
    tell(migrate(fourth, 0), format!("7: error 0: recording {fourth} is still active"));
    tell(
        migrate(0, third),
        format!(
            "7: error 0: invalid migrate: src and dst are not contiguous srcStartPosition=0 \
             srcStopPosition=262144 dstStartPosition=0 dstStopPosition={END}"
        ),
    );
    add_segment(&harness.storage, 1, SEGMENT);
    let text = "7: error 0: preexisting dst segment file dir/1-131072.rec";
    assert_eq!(outcome(&mut harness, migrate(0, 1)), [text]);
    harness.storage.remove("1-131072.rec").expect("a segment");
    harness.storage.remove("0-131072.rec").expect("a segment");
    let text = "7: error 0: missing src segment file dir/0-131072.rec";
    assert_eq!(outcome(&mut harness, migrate(0, 1)), [text]);
    // Not at the start of a segment.
    harness.conductor.shared.catalog.set_stop_position(0.into(), SEGMENT + 64).expect("an edit");
    harness.conductor.shared.catalog.set_start_position(1.into(), SEGMENT + 64).expect("an edit");
    let refusal = outcome(&mut harness, migrate(0, 1)).remove(0);
    let text = "7: error 0: invalid migrate: join position is not on segment boundary of src recording \
                seamPosition=131136 startPosition=0 stopPosition=131136 termBufferLength=65536 \
                segmentFileLength=131072";
    assert_eq!(refusal, text);
}

#[test]
fn recording_whose_files_are_deleted_is_not_migrated() {
    let mut harness = recorded();
    add(&mut harness);
    outcome(&mut harness, purge_segments(1, 2 * SEGMENT));
    harness.send(truncate(0, 2 * SEGMENT));
    harness.clear();
    harness.send(migrate(0, 1));
    harness.send(migrate(1, 0));
    let text = "7: error 0: another delete operation in progress for recording id: 0";
    assert_eq!(harness.sent(), [text; 2]);
}

/// Requests that change the edges or the files of one of [`contiguous`] recordings.
fn changes(recording: i64) -> Vec<Vec<u8>> {
    let (start, end) = if recording == 0 { (0, 2 * SEGMENT) } else { (2 * SEGMENT, END) };
    let other = 1 - recording;
    vec![
        attach(recording),
        delete_detached(recording),
        detach(recording, start + SEGMENT),
        extend(recording),
        migrate(other, recording),
        migrate(recording, other),
        purge_segments(recording, start + SEGMENT),
        truncate(recording, start),
        truncate(recording, end),
    ]
}

/// Of the other recording, which no request is about, no frame is lost: neither now nor by a restart.
#[test]
fn migration_that_cannot_be_undone_loses_no_segment_to_later_requests() {
    for (source, destination) in [(0, 1), (1, 0)] {
        for last in 0..12 {
            for (number, request) in changes(destination).into_iter().enumerate() {
                let mut harness = contiguous();
                harness.storage.stop_after(last);
                let refused = outcome(&mut harness, migrate(source, destination));
                let is_refused = refused[0].starts_with("7: error");
                harness.storage.resume();
                outcome(&mut harness, request);
                if harness.orders().iter().any(|order| order.starts_with("subscribe")) {
                    let subscription = harness.register();
                    let join_position = edges(&harness, destination).map_or(0, |edges| edges.1);
                    harness.add_image(subscription, &ImageDetails { join_position, ..image(9) });
                    harness.begin(destination);
                    harness.stop(destination, join_position);
                }
                while harness.tick() > 0 {}
                if !is_refused {
                    continue;
                }
                let context = format!("{source} to {destination}, {last}, {number}: {refused:?}");
                for is_restarted in [false, true] {
                    let catalog = match is_restarted {
                        true => &Harness::open(&harness.storage, crate::storage::SyncLevel::None)
                            .unwrap_or_else(|error| panic!("{context}: {error}")),
                        false => &harness.conductor.shared.catalog,
                    };
                    let first = if source == 0 { 0 } else { 2 * SEGMENT };
                    for base in [first, first + SEGMENT] {
                        let is_there = |recording: i64| {
                            let known = catalog.get(recording.into()).expect("a recording");
                            let is_within = known.start_position <= base
                                && (base < known.stop_position || known.is_active());
                            let name = known.geometry().name(base);
                            is_within && harness.storage.length(&name).expect("a length").is_some()
                        };
                        assert!([0, 1].into_iter().any(is_there), "{context}: {base}");
                    }
                }
            }
        }
    }
}

/// Its segments would be read by the name of the source, under which others can be recorded.
#[test]
fn replayed_recording_is_not_migrated() {
    let mut harness = contiguous();
    harness.send(replay(0, 0));
    let text = "7: error 2: cannot migrate recording with active replay 0";
    assert_eq!(outcome(&mut harness, migrate(0, 1)), [text]);
    assert_eq!(edges(&harness, 0), Some((0, 2 * SEGMENT)));
    // The destination's keep their names.
    assert_eq!(outcome(&mut harness, migrate(1, 0))[0], "7: ok 2");
}
