//! Tests of replays that follow a recording or a counter.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use rusteron_core::dir_access::DirAccess;
use rusteron_test_support::{DEADLINE, Random};

use crate::conductor::effect::{Progress, ReplayLimit, StartReplay};
use crate::recorder::sample::{Stream, StreamSource};
use crate::recorder::{BlockWriter, Recording};
use crate::replayer::BlockReader;
use crate::replayer::replay::{Replay, ReplayEnd};
use crate::replayer::sample::{
    NO_COUNTER, OneCounter, SMALL_SEGMENTS, Sink, TERM, assert_replayed, follow, reader, recorded,
    replay, run,
};
use crate::segment::sample;
use crate::storage::{Directory, Storage, SyncLevel};

#[test]
fn recording_in_progress_is_followed() {
    let (storage, stream) = recorded(16, SMALL_SEGMENTS, 3 * TERM as usize);
    let start_recording = stream.start_recording();
    let progress: &Arc<Progress> = &start_recording.progress;
    let (mut reader, mut sink) = (reader(&storage), Sink::new(SMALL_SEGMENTS, 0));
    let mut replay = replay(follow(&stream, 0, ReplayLimit::Recording(Arc::clone(progress))));
    let mut work = |replay: &mut Replay, sink: &mut Sink| {
        while replay.do_work(sink, &mut reader, &NO_COUNTER, Instant::now()) > 0 {}
    };
    let positions: Vec<i64> = stream.frames().iter().map(|(position, _)| *position).collect();
    for &position in positions.iter().step_by(7) {
        progress.position.store(position, Ordering::Release);
        work(&mut replay, &mut sink);
        assert_eq!((sink.position, replay.end()), (position, None));
        assert_replayed(&sink, &stream, 0, position);
    }
    progress.position.store(stream.end(), Ordering::Release);
    progress.has_ended.store(true, Ordering::Release);
    work(&mut replay, &mut sink);
    assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
    assert_replayed(&sink, &stream, 0, stream.end());
}

/// A replay of a certain length does not go beyond it when the recording ends behind it.
#[test]
fn end_of_the_recording_does_not_lengthen_a_replay() {
    let (storage, stream) = recorded(17, sample::GEOMETRY, 10_000);
    let start_recording = stream.start_recording();
    let progress = &start_recording.progress;
    let end_position = stream.frames()[5].0;
    let limit = ReplayLimit::Recording(Arc::clone(progress));
    let start = StartReplay { end_position, ..follow(&stream, 0, limit) };
    progress.position.store(stream.end(), Ordering::Release);
    progress.has_ended.store(true, Ordering::Release);
    let mut sink = Sink::new(stream.geometry, 0);
    let end = run(&mut replay(start), &mut sink, &mut reader(&storage));
    assert_eq!(end, ReplayEnd::Complete);
    assert_replayed(&sink, &stream, 0, end_position);
}

#[test]
fn counter_bounds_the_replay_while_it_is_there() {
    let (storage, stream) = recorded(18, sample::GEOMETRY, 100_000);
    let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
    let limit = ReplayLimit::Counter { id: 4, registration_id: 5.into() };
    let mut replay = replay(follow(&stream, 0, limit));
    let mut work = |replay: &mut Replay, sink: &mut Sink, counter: OneCounter| {
        while replay.do_work(sink, &mut reader, &counter, Instant::now()) > 0 {}
    };
    let frames = stream.frames();
    let positions: Vec<i64> = [0, 3, 4, 20, 10].map(|index: usize| frames[index].0).to_vec();
    let mut max = 0;
    for position in positions {
        work(&mut replay, &mut sink, OneCounter::Allocated(position));
        max = max.max(position);
        assert_eq!((sink.position, replay.end()), (max, None));
    }
    // In the middle of a frame.
    work(&mut replay, &mut sink, OneCounter::Allocated(frames[22].0 + 1));
    assert_eq!((sink.position, replay.end()), (frames[22].0, None));
    // What it had when it was freed counts.
    work(&mut replay, &mut sink, OneCounter::Freed(frames[30].0));
    assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
    assert_replayed(&sink, &stream, 0, frames[30].0);
}

#[test]
fn counter_that_goes_back_takes_nothing_back() {
    let (storage, stream) = recorded(23, sample::GEOMETRY, 10_000);
    let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, 0));
    let limit = ReplayLimit::Counter { id: 4, registration_id: 5.into() };
    let mut replay = replay(follow(&stream, 0, limit));
    let position = stream.frames()[10].0;
    sink.acceptance = 0;
    for value in [0, 0, position, 0] {
        replay.do_work(&mut sink, &mut reader, &OneCounter::Allocated(value), Instant::now());
    }
    sink.acceptance = 100;
    assert_eq!(run(&mut replay, &mut sink, &mut reader), ReplayEnd::Complete);
    assert_replayed(&sink, &stream, 0, position);
}

#[test]
fn replay_from_the_end_of_a_recording_in_progress_waits_for_more() {
    let (storage, stream) = recorded(24, sample::GEOMETRY, 10_000);
    let position = stream.frames()[10].0;
    // Nothing is recorded there yet.
    let content = storage.content("3-0.rec").unwrap();
    let mut file = storage.open("3-0.rec").unwrap();
    file.set_length(position as u64).unwrap();
    file.set_length(content.len() as u64).unwrap();
    let start_recording = stream.start_recording();
    let progress: &Arc<Progress> = &start_recording.progress;
    progress.position.store(position, Ordering::Release);
    let limit = ReplayLimit::Recording(Arc::clone(progress));
    let start = StartReplay { position, ..follow(&stream, position, limit) };
    let (mut reader, mut sink) = (reader(&storage), Sink::new(stream.geometry, position));
    let mut replay = replay(start);
    while replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now()) > 0 {}
    assert_eq!((replay.end(), sink.position), (None, position));

    file.write_all_at(&content, 0).unwrap();
    progress.position.store(stream.end(), Ordering::Release);
    progress.has_ended.store(true, Ordering::Release);
    assert_eq!(run(&mut replay, &mut sink, &mut reader), ReplayEnd::Complete);
    assert_replayed(&sink, &stream, position, stream.end());
}

/// Another counter has got the id.
#[test]
fn counter_of_another_registration_is_the_end() {
    let (storage, stream) = recorded(19, sample::GEOMETRY, 10_000);
    let limit = ReplayLimit::Counter { id: 4, registration_id: 6.into() };
    let stop_position = stream.frames()[4].0;
    let mut sink = Sink::new(stream.geometry, 0);
    let mut replay = replay(follow(&stream, stop_position, limit));
    let counters = OneCounter::Allocated(stream.end());
    while replay.end().is_none() {
        replay.do_work(&mut sink, &mut reader(&storage), &counters, Instant::now());
    }
    assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
    assert_replayed(&sink, &stream, 0, stop_position);
}

#[test]
fn limit_beyond_the_recording_is_the_clients_mistake() {
    let (storage, stream) = recorded(20, sample::GEOMETRY, 10_000);
    let limit = ReplayLimit::Counter { id: 4, registration_id: 5.into() };
    let mut sink = Sink::new(stream.geometry, 0);
    let mut replay = replay(follow(&stream, 0, limit));
    let counters = OneCounter::Allocated(stream.end() + 4096);
    while replay.end().is_none() {
        replay.do_work(&mut sink, &mut reader(&storage), &counters, Instant::now());
    }
    let Some(ReplayEnd::Failed(failure)) = replay.end() else { panic!("{:?}", replay.end()) };
    let expected = format!("unexpected end of recording at position={} ", stream.end());
    assert!(failure.is_mistake && failure.text.starts_with(&expected), "{failure:?}");
    assert!(!failure.text.contains("damaged"), "{failure:?}");
}

/// The recorder on its thread, the replayer on another, real files between them.
#[test]
fn growing_recording_is_followed_on_another_thread() {
    let dir = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> =
        Arc::new(Directory::open(dir.path(), DirAccess::default()).unwrap());
    let geometry = SMALL_SEGMENTS;
    let stream = Stream::random(&mut Random::new(22), geometry, 0, 20 * TERM as usize);
    let start_recording = stream.start_recording();
    let limit = ReplayLimit::Recording(Arc::clone(&start_recording.progress));
    let start = follow(&stream, 0, limit);
    let mut sink = Sink::new(geometry, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = BlockWriter::new(Arc::clone(&storage), SyncLevel::None, None);
            let mut recording = Recording::new(&start_recording, 8192);
            let mut source = StreamSource::new(stream.clone());
            source.is_end_of_stream = true;
            while !recording.is_stopped() {
                recording.do_work(Some(&mut source), &mut writer);
                // The replayer has often nothing to do.
                thread::yield_now();
            }
            recording.announce_end();
        });
        let mut reader = BlockReader::new(Arc::clone(&storage), None);
        let mut replay = replay(start);
        let begin = Instant::now();
        while replay.end().is_none() {
            replay.do_work(&mut sink, &mut reader, &NO_COUNTER, Instant::now());
            assert!(begin.elapsed() < DEADLINE);
        }
        assert_eq!(replay.end(), Some(&ReplayEnd::Complete));
    });
    assert_replayed(&sink, &stream, 0, stream.end());
}
