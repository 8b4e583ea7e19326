//! The message path does not allocate, on the thread that uses it.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::IoSlice;

use rusteron_client::{Action, Header, Messages, Subscription};
use support::{SHORT_TERMS, await_that, connect, connected_pair, launch, shared_pair};

/// The system's, which counts the calls of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: hands everything on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: handed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: handed on to the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Panics if the call allocates; growing is counted too, as the default `realloc` allocates anew.
fn without_allocating<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let before = ALLOCATIONS.get();
    let result = call();
    assert_eq!(ALLOCATIONS.get() - before, 0, "allocations of {what}");
    result
}

#[test]
fn the_counter_counts() {
    let counted = std::panic::catch_unwind(|| without_allocating("a box", || Box::new(1)));
    assert!(counted.is_err());
}

/// Repeats an attempt that is allowed to fail for a while.
fn until_taken<E: std::fmt::Debug>(what: &str, mut attempt: impl FnMut() -> Result<i64, E>) {
    await_that(what, || without_allocating(what, &mut attempt).is_ok());
}

fn read(payload: &[u8], header: &Header<'_>) -> usize {
    let ids = i64::from(header.session_id()) + i64::from(header.stream_id());
    let place = header.position() + i64::from(header.term_offset() + header.next_term_offset());
    let other = header.reserved_value() + header.image_correlation_id() + ids + place;
    std::hint::black_box((header.flags(), header.frame_type(), header.version(), other));
    payload.len()
}

/// Repeats a poll until it has received something.
fn until_received(
    what: &str,
    subscription: &mut Subscription,
    mut poll: impl FnMut(&mut Subscription, &mut usize),
) {
    let mut bytes = 0;
    await_that(what, || {
        without_allocating(what, || poll(subscription, &mut bytes));
        bytes > 0
    });
}

/// Every way to receive, for a message of the length that `send` sends.
fn receive_in_every_way(subscription: &mut Subscription, mut send: impl FnMut()) {
    let mut each = |what, poll: fn(&mut Subscription, &mut usize)| {
        send();
        until_received(what, subscription, poll);
        // What a poll of fragments has left.
        while subscription.poll(|_, _| {}, 100).expect("open") > 0 {}
    };
    each("poll", |subscription, bytes| {
        subscription.poll(|payload, header| *bytes += read(payload, header), 10).expect("open");
    });
    each("poll_fragments", |subscription, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| *bytes += read(payload, header);
        subscription.poll_fragments(handler, 10).expect("open");
    });
    each("controlled_poll", |subscription, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| {
            *bytes += read(payload, header);
            Action::Commit
        };
        subscription.controlled_poll(handler, 10).expect("open");
    });
    each("poll_batch", |subscription, bytes| {
        let handler = |messages: &mut Messages<'_>| {
            messages.for_each(|(payload, header)| *bytes += read(payload, &header));
        };
        subscription.poll_batch(handler, 10).expect("open");
    });
    each("block_poll", |subscription, bytes| {
        let handler = |block: &[u8], _, _| *bytes += block.len();
        subscription.block_poll(handler, 65_536).expect("open");
    });
    each("Image::bounded_poll", |subscription, bytes| {
        let mut image = subscription.image_at_index(0).expect("an image");
        image.bounded_poll(|payload, header| *bytes += read(payload, header), i64::MAX, 10);
    });
}

#[test]
fn an_exclusive_publication_and_its_subscription_do_not_allocate() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (message, long) = ([7; 32], vec![7; 5_000]);
    // The list of images, and the memory that long messages are put together in.
    until_taken("offer", || publication.offer(&long));
    let mut received = 0;
    await_that("the message", || {
        subscription.poll(|message, _| received = message.len(), 10).expect("open");
        received == long.len()
    });

    // Through the ends of several terms.
    for _ in 0..100 {
        until_taken("offer", || publication.offer(&message));
        until_taken("offer_parts", || {
            publication.offer_parts(&[IoSlice::new(&message), IoSlice::new(&message)])
        });
        until_taken("offer_with_reserved_value", || {
            publication.offer_with_reserved_value(&message, |payload| payload.len() as i64)
        });
        until_taken("try_claim", || publication.try_claim(32).and_then(|claim| claim.commit()));
        let batch = without_allocating("offer_batch", || publication.offer_batch(&[message; 10]));
        assert!(batch.stopped_by.is_none_or(|error| error.is_retryable()));
        while subscription.poll(|_, _| {}, 100).expect("open") > 0 {}
        for message in [&message[..], &long] {
            receive_in_every_way(&mut subscription, || {
                until_taken("offer", || publication.offer(message));
            });
        }
    }
}

#[test]
fn a_shared_publication_does_not_allocate() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let (message, long) = ([7; 32], vec![7; 5_000]);
    for _ in 0..300 {
        until_taken("offer", || publication.offer(&message));
        until_taken("offer", || publication.offer(&long));
        until_taken("offer_parts", || {
            publication.offer_parts(&[IoSlice::new(&message), IoSlice::new(&message)])
        });
        until_taken("offer_with_reserved_value", || {
            publication.offer_with_reserved_value(&message, |payload| payload.len() as i64)
        });
        until_taken("try_claim", || publication.try_claim(32).and_then(|claim| claim.commit()));
        let batch = without_allocating("offer_batch", || publication.offer_batch(&[message; 10]));
        assert!(batch.stopped_by.is_none_or(|error| error.is_retryable()));
        while subscription.poll(|_, _| {}, 100).expect("open") > 0 {}
    }
}
