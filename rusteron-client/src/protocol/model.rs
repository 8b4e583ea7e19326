//! The steps under `loom`: interleavings, and every value that a load may see.
//!
//! A payload is a cell in which `loom` reports accesses that nothing has ordered.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI32, AtomicI64, fence};
use loom::thread;

use super::*;

word!(AtomicI32, i32, fence);
word!(AtomicI64, i64, fence);

const FRAME_LENGTH: i32 = 40;

/// With every interleaving of two threads; of more, those with no more than two threads interrupted.
fn model(threads: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = (threads > 2).then_some(2);
    model.check(test);
}

#[test]
fn a_subscriber_sees_the_whole_frame_and_the_publisher_overwrites_what_was_read() {
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

/// What the driver concludes from the negative length when a publisher has died: its frame is not read
/// as if it were finished, nor as if it had not begun.
#[test]
fn what_is_written_into_a_frame_is_not_seen_before_its_negative_length() {
    model(2, || {
        let frame = Arc::new((AtomicI32::new(0), AtomicI32::new(0)));
        let publisher = {
            let frame = Arc::clone(&frame);
            thread::spawn(move || {
                begin_frame(&frame.0, FRAME_LENGTH);
                // Relaxed stands for a plain write, which a driver that unblocks can see at any time.
                frame.1.store(7, Ordering::Relaxed);
            })
        };
        let payload = frame.1.load(Ordering::Acquire);
        let length = published_length(&frame.0);
        assert!(payload == 0 || length == -FRAME_LENGTH, "payload {payload}, length {length}");
        publisher.join().expect("no assertion has failed");
    });
}

/// A batch is there as soon as its first frame is, which is published last.
#[test]
fn frames_that_were_published_before_the_one_in_front_of_them_are_seen_with_it() {
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

/// Ids that wrap around in the middle of the test.
const INITIAL_TERM_ID: i32 = i32::MAX;
const FRAME: usize = 32;
/// Frames of a term.
const TERM: usize = 2;

struct Log {
    tails: [AtomicI64; PARTITION_COUNT],
    active_term_count: AtomicI32,
    frames: [[(AtomicI32, UnsafeCell<u64>); TERM]; PARTITION_COUNT],
}

impl Log {
    /// As the driver makes it: of the buffers that were not used yet, the tails are those of terms
    /// three before.
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

    /// Attempts to publish until it succeeds; returns term count and frame.
    fn publish(&self, message: u64) -> (i32, usize) {
        let terms = Terms {
            tails: &self.tails,
            active_term_count: &self.active_term_count,
            initial_term_id: INITIAL_TERM_ID,
        };
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
            let place = tail.offset() as usize / FRAME;
            let (length, payload) = &self.frames[tail.index][place];
            begin_frame(length, FRAME_LENGTH);
            // SAFETY: checked by the model.
            payload.with_mut(|payload| unsafe { *payload = message });
            publish_frame(length, FRAME_LENGTH);
            return (tail.term_id().wrapping_sub(INITIAL_TERM_ID), place);
        }
    }
}

/// Two publishers with so many places left in the term; where they come to.
fn two_publishers(places_left: usize, expected: [(i32, usize); 2]) {
    model(2, move || {
        let log = Arc::new(Log::new(((TERM - places_left) * FRAME) as i64));
        let other = {
            let log = Arc::clone(&log);
            thread::spawn(move || log.publish(1))
        };
        let mut places = [log.publish(2), other.join().expect("no assertion has failed")];
        places.sort_unstable();
        assert_eq!(places, expected);
        assert_eq!(log.active_term_count.load(Ordering::Relaxed), 1);
        let frames = expected.iter().filter(|(term_count, _)| *term_count == 1).count();
        let next_tail = i64::from(INITIAL_TERM_ID.wrapping_add(1)) << 32 | (frames * FRAME) as i64;
        assert_eq!(log.tails[1].load(Ordering::Relaxed), next_tail);
    });
}

#[test]
fn a_publisher_takes_the_last_place_and_the_other_the_first_of_the_next_term() {
    two_publishers(1, [(0, 1), (1, 0)]);
}

#[test]
fn publishers_who_both_find_the_term_full_rotate_once() {
    two_publishers(0, [(1, 0), (1, 1)]);
}

#[test]
fn a_subscriber_follows_the_publishers_into_the_next_term() {
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
