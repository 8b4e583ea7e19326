//! The steps under `loom`: all interleavings, and every value that a load may see.
//!
//! The payload is a cell. `loom` reports accesses to it that are not ordered.

use std::sync::atomic::AtomicBool;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI32, AtomicI64, fence};
use loom::thread;

use super::*;

word!(AtomicI32, i32, fence);
word!(AtomicI64, i64, fence);

const FRAME_LENGTH: i32 = 40;

/// Runs a test with every interleaving of two threads. With more threads, only interleavings with
/// at most two preemptions are run.
fn model(threads: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = (threads > 2).then_some(2);
    model.check(test);
}

#[test]
fn subscriber_sees_whole_frames() {
    struct Log {
        length: AtomicI32,
        payload: UnsafeCell<u64>,
        position: AtomicI64,
    }
    model(2, || {
        let log = Arc::new(Log {
            length: AtomicI32::new(0),
            payload: UnsafeCell::new(0),
            position: AtomicI64::new(0),
        });
        let subscriber = {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                while published_length(&log.length) <= 0 {
                    thread::yield_now();
                }
                // SAFETY: checked by the model.
                assert_eq!(log.payload.with(|payload| unsafe { *payload }), 7);
                set_position(&log.position, 64);
            })
        };
        begin_frame(&log.length, FRAME_LENGTH);
        // SAFETY: checked by the model.
        log.payload.with_mut(|payload| unsafe { *payload = 7 });
        publish_frame(&log.length, FRAME_LENGTH);
        while position(&log.position) < 64 {
            thread::yield_now();
        }
        // SAFETY: checked by the model.
        log.payload.with_mut(|payload| unsafe { *payload = 8 });
        subscriber.join().expect("no assertion has failed");
    });
}

/// Runs a publisher that changes a frame's length and another word, while the driver looks at both.
fn publisher_and_driver(publish: fn(&AtomicI32, &AtomicI64), look: fn(&AtomicI32, &AtomicI64)) {
    model(2, move || {
        let words = Arc::new((AtomicI32::new(0), AtomicI64::new(0)));
        let publisher = {
            let words = Arc::clone(&words);
            thread::spawn(move || publish(&words.0, &words.1))
        };
        look(&words.0, &words.1);
        publisher.join().expect("no assertion has failed");
    });
}

/// The driver relies on the negative length when a publisher has died. It reads the frame neither
/// as finished nor as not begun.
#[test]
fn payload_follows_negative_length() {
    let publish = |length: &AtomicI32, payload: &AtomicI64| {
        begin_frame(length, FRAME_LENGTH);
        // Relaxed stands for a plain write. A driver that unblocks can see the write at any time.
        payload.store(7, Ordering::Relaxed);
    };
    publisher_and_driver(publish, |length, payload| {
        let payload = payload.load(Ordering::Acquire);
        let length = published_length(length);
        assert!(payload == 0 || length == -FRAME_LENGTH, "payload {payload}, length {length}");
    });
}

/// A driver that makes padding of an unfinished frame finds the end of the stream behind the frame.
#[test]
fn frame_follows_moved_tail() {
    let publish = |length: &AtomicI32, tail: &AtomicI64| {
        set_tail(tail, raw_tail(0, 64));
        begin_frame(length, FRAME_LENGTH);
    };
    publisher_and_driver(publish, |length, tail| {
        if published_length(length) < 0 {
            assert_eq!(tail.load(Ordering::Acquire), raw_tail(0, 64));
        }
    });
}

/// The driver regards a range without a length, before the end of the stream, as a gap.
#[test]
fn next_tail_follows_published_frame() {
    let publish = |length: &AtomicI32, tail: &AtomicI64| {
        set_tail(tail, raw_tail(0, 64));
        begin_frame(length, FRAME_LENGTH);
        publish_frame(length, FRAME_LENGTH);
        set_tail(tail, raw_tail(0, 128));
    };
    publisher_and_driver(publish, |length, tail| {
        if tail.load(Ordering::Acquire) == raw_tail(0, 128) {
            assert_eq!(published_length(length), FRAME_LENGTH);
        }
    });
}

/// A batch is visible as soon as its first frame is visible, which is published last.
#[test]
fn later_frames_appear_with_first_frame() {
    model(2, || {
        let frames = Arc::new([(); 2].map(|()| (AtomicI32::new(0), UnsafeCell::new(0_u64))));
        let publisher = {
            let frames = Arc::clone(&frames);
            thread::spawn(move || {
                begin_frame(&frames[0].0, 2 * FRAME_LENGTH);
                for (_, payload) in frames.iter() {
                    // SAFETY: checked by the model.
                    payload.with_mut(|payload| unsafe { *payload = 7 });
                }
                for (length, _) in frames.iter().rev() {
                    publish_frame(length, FRAME_LENGTH);
                }
            })
        };
        while published_length(&frames[0].0) <= 0 {
            thread::yield_now();
        }
        for (length, payload) in frames.iter() {
            assert_eq!(published_length(length), FRAME_LENGTH);
            // SAFETY: checked by the model.
            assert_eq!(payload.with(|payload| unsafe { *payload }), 7);
        }
        publisher.join().expect("no assertion has failed");
    });
}

/// A first term id that makes the ids wrap around in the middle of the test.
const INITIAL_TERM_ID: i32 = i32::MAX;
const FRAME: usize = 32;
/// The number of frames in a term.
const TERM: usize = 2;

struct Log {
    tails: [AtomicI64; PARTITION_COUNT],
    active_term_count: AtomicI32,
    frames: [[(AtomicI32, UnsafeCell<u64>); TERM]; PARTITION_COUNT],
}

impl Log {
    /// Makes a log as the driver does. The tails of unused buffers are of the terms three before.
    fn new(offset: i64) -> Self {
        let raw = |term_count: i32| {
            AtomicI64::new(i64::from(INITIAL_TERM_ID.wrapping_add(term_count)) << 32)
        };
        let log = Self {
            tails: [raw(0), raw(1 - 3), raw(2 - 3)],
            active_term_count: AtomicI32::new(0),
            frames: Default::default(),
        };
        log.tails[0].fetch_add(offset, Ordering::Relaxed);
        log
    }

    fn terms(&self) -> Terms<'_, AtomicI64, AtomicI32> {
        Terms {
            tails: &self.tails,
            active_term_count: &self.active_term_count,
            initial_term_id: INITIAL_TERM_ID,
        }
    }

    /// Attempts to publish until an attempt succeeds. Returns the term count and the frame.
    fn publish(&self, message: u64) -> (i32, usize) {
        let terms = self.terms();
        loop {
            let Some(tail) = terms.tail() else {
                thread::yield_now();
                continue;
            };
            let tail = terms.claim(tail.index, FRAME);
            if tail.offset() as usize + FRAME > TERM * FRAME {
                terms.rotate(tail.term_id());
                continue;
            }
            let slot = tail.offset() as usize / FRAME;
            let (length, payload) = &self.frames[tail.index][slot];
            begin_frame(length, FRAME_LENGTH);
            // SAFETY: checked by the model.
            payload.with_mut(|payload| unsafe { *payload = message });
            publish_frame(length, FRAME_LENGTH);
            return (tail.term_id().wrapping_sub(INITIAL_TERM_ID), slot);
        }
    }
}

/// Runs two publishers with `remaining` frames remaining in the term, and checks where both
/// publish.
fn two_publishers(remaining: usize, expected: [(i32, usize); 2]) {
    model(2, move || {
        let log = Arc::new(Log::new(((TERM - remaining) * FRAME) as i64));
        let other = {
            let log = Arc::clone(&log);
            thread::spawn(move || log.publish(1))
        };
        let mut slots = [log.publish(2), other.join().expect("no assertion has failed")];
        slots.sort_unstable();
        assert_eq!(slots, expected);
        assert_eq!(log.active_term_count.load(Ordering::Relaxed), 1);
        let frames = expected.iter().filter(|(term_count, _)| *term_count == 1).count();
        let next_tail = i64::from(INITIAL_TERM_ID.wrapping_add(1)) << 32 | (frames * FRAME) as i64;
        assert_eq!(log.tails[1].load(Ordering::Relaxed), next_tail);
    });
}

#[test]
fn publishers_split_at_term_end() {
    two_publishers(1, [(0, 1), (1, 0)]);
}

#[test]
fn full_term_rotates_once() {
    two_publishers(0, [(1, 0), (1, 1)]);
}

#[test]
fn subscriber_follows_into_next_term() {
    model(3, || {
        let log = Arc::new(Log::new(FRAME as i64));
        let publishers = [1, 2].map(|message| {
            let log = Arc::clone(&log);
            thread::spawn(move || log.publish(message))
        });
        let mut sum = 0;
        for (index, frame) in [(0, 1), (1, 0)] {
            let (length, payload) = &log.frames[index][frame];
            while published_length(length) <= 0 {
                thread::yield_now();
            }
            // SAFETY: checked by the model.
            sum += payload.with(|payload| unsafe { *payload });
        }
        assert_eq!(sum, 3);
        for publisher in publishers {
            publisher.join().expect("no assertion has failed");
        }
    });
}

/// The driver takes the end of the stream from the count and the tail of that term.
#[test]
fn count_follows_tail_of_its_term() {
    const END_TERM: [fn(&Log); 2] = [
        |log| log.terms().begin_term(INITIAL_TERM_ID.wrapping_add(1)),
        |log| log.terms().rotate(INITIAL_TERM_ID),
    ];
    for end_term in END_TERM {
        model(2, move || {
            let log = Arc::new(Log::new((TERM * FRAME) as i64));
            let publisher = {
                let log = Arc::clone(&log);
                thread::spawn(move || end_term(&log))
            };
            let (term_count, tail) = log.terms().newest_tail();
            assert_eq!(tail.term_id(), INITIAL_TERM_ID.wrapping_add(term_count));
            publisher.join().expect("no assertion has failed");
        });
    }
}

/// The publisher has read the limit before three terms went by. It did not see the cleaning of its
/// range.
#[test]
fn delayed_publisher_writes_after_cleaning() {
    let is_in_later_term = std::sync::Arc::new(AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&is_in_later_term);
    model(3, move || {
        let log = Arc::new((Log::new(0), AtomicI64::new(0)));
        let other = {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                while position(&log.1) == 0 {
                    thread::yield_now();
                }
                for term_count in 0..PARTITION_COUNT as i32 {
                    log.0.terms().rotate(INITIAL_TERM_ID.wrapping_add(term_count));
                }
            })
        };
        let held_up = {
            let (log, seen) = (Arc::clone(&log), std::sync::Arc::clone(&seen));
            thread::spawn(move || {
                let tail = log.0.terms().claim(0, FRAME);
                if tail.term_id() != INITIAL_TERM_ID {
                    seen.store(true, Ordering::Relaxed);
                    // SAFETY: checked by the model.
                    log.0.frames[0][0].1.with_mut(|payload| unsafe { *payload = 7 });
                }
            })
        };
        // This stands for the driver's cleaning.
        // SAFETY: checked by the model.
        log.0.frames[0][0].1.with_mut(|payload| unsafe { *payload = 0 });
        set_position(&log.1, 1);
        for publisher in [other, held_up] {
            publisher.join().expect("no assertion has failed");
        }
    });
    assert!(is_in_later_term.load(Ordering::Relaxed));
}

/// The driver frees a counter and gives it to another subscriber while its first owner polls.
#[test]
fn owned_position_is_never_the_next_owners() {
    const OWNERS: [i64; 2] = [7, 8];
    const POSITIONS: [i64; 2] = [64, 4096];
    model(2, || {
        let counter = Arc::new((AtomicI64::new(POSITIONS[0]), AtomicI64::new(OWNERS[0])));
        let driver = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                let (value, registration_id) = &*counter;
                registration_id.store(0, Ordering::Release);
                value.store(0, Ordering::Release);
                registration_id.store(OWNERS[1], Ordering::Release);
                value.store(POSITIONS[1], Ordering::Release);
            })
        };
        let position = owned_position(&counter.0, &counter.1, OWNERS[0]);
        assert!(position.is_none_or(|position| position == POSITIONS[0]), "{position:?}");
        driver.join().expect("no assertion has failed");
    });
}
