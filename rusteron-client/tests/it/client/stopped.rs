//! Clients that were stopped until the driver gave their counters to other clients. They continue
//! before their conductor notices. They report `Closed`, and write to no counter of another client.
//!
//! A client without a conductor thread that does no work is in the same state.

use std::ffi::c_void;
use std::time::Duration;

use rusteron_client::{
    Aeron, AnyPublication, CloseCause, Counter, CounterState, ExclusivePublication, Header,
    OfferError, PollError, Publisher, Subscription,
};
use rusteron_media_driver::MediaDriver;
use rusteron_sys as sys;
use rusteron_test_support::{
    DEADLINE, SHORT_DRIVER_TIMEOUT, SHORT_TERMS, await_some, await_that, connect_watchfully,
    context, launch_with, offer, receive,
};

/// The driver soon gives its clients up, and at once gives their counters to others.
fn launch() -> MediaDriver {
    launch_with(|context| {
        context
            .set_timer_interval(Duration::from_millis(20))?
            .set_client_liveness_timeout(2 * SHORT_DRIVER_TIMEOUT)?
            .set_publication_linger_timeout(Duration::from_millis(20))?
            .set_counters_free_to_reuse_timeout(Duration::ZERO)
    })
}

/// A client that stops as soon as nothing calls `do_work`.
fn connect_stoppable(driver: &MediaDriver) -> Aeron {
    let mut context = context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    Aeron::connect(context).expect("a client")
}

fn await_reclaimed(driver: &MediaDriver, counter_id: i32) {
    let cnc = driver.cnc_file().expect("the CnC file");
    await_that("the driver gives the client up", || {
        cnc.counters().state(counter_id) == Some(CounterState::Reclaimed)
    });
}

/// Adds resources until one has the counter.
fn take_over<T>(counter_id: i32, mut add: impl FnMut() -> (T, i32)) -> T {
    let mut others = Vec::new();
    await_some("the counter is given to another", || {
        let (resource, id) = add();
        if id == counter_id {
            return Some(resource);
        }
        others.push(resource);
        None
    })
}

/// Adds a subscription whose image's position has the counter, whatever other counters a
/// subscription takes.
fn take_over_position(
    driver: &MediaDriver,
    aeron: &Aeron,
    counter_id: i32,
    channel: &str,
    stream_id: i32,
) -> Subscription {
    let mut held = Vec::new();
    for before in 0..8 {
        // The driver reuses ids in the order in which they were freed. Once counters have all free
        // ids, it takes those of `before` counters first, and then the one.
        let mut counters: Vec<_> = (0..64)
            .map(|_| aeron.add_counter(1001, b"", "of a freed id").expect("a counter"))
            .collect();
        let index = counters.iter().position(|counter| counter.counter_id() == counter_id);
        let holder = counters.swap_remove(index.expect("the id is among the free ones"));
        for counter in counters.drain(..before).chain([holder]) {
            let id = counter.counter_id();
            drop(counter);
            await_reclaimed(driver, id);
        }
        held.extend(counters);

        let mut subscription = aeron.add_subscription(channel, stream_id).expect("a subscription");
        if position_id(&mut subscription) == counter_id {
            return subscription;
        }
        drop(subscription);
        await_reclaimed(driver, counter_id);
    }
    panic!("a subscription does not give its image's position the counter {counter_id}");
}

fn unexpected(message: &[u8]) -> ! {
    panic!("an old message: {message:?}")
}

fn position_id(subscription: &mut Subscription) -> i32 {
    await_some("the image", || {
        subscription.image_at_index(0).map(|image| image.subscriber_position_id())
    })
}

/// A client that stops as soon as nothing calls `do_work`, with a subscription that has an image,
/// and the id of that image's position.
fn stoppable_subscriber(driver: &MediaDriver) -> (Aeron, Subscription, i32) {
    let stopped = connect_stoppable(driver);
    let mut subscription = stopped.add_subscription(SHORT_TERMS, 1001).expect("a subscription");
    let id = await_some("the image", || {
        stopped.do_work().expect("work");
        subscription.image_at_index(0).map(|image| image.subscriber_position_id())
    });
    (stopped, subscription, id)
}

struct Stopped {
    driver: MediaDriver,
    /// The client that goes on.
    aeron: Aeron,
    stopped: Aeron,
    subscription: Subscription,
    publication: ExclusivePublication,
}

/// A subscription of a stopped client that has messages left to read, and a position that is
/// another's.
fn stopped_subscriber() -> (Stopped, Subscription) {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let mut publication =
        aeron.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication");
    let (stopped, mut subscription, id) = stoppable_subscriber(&driver);
    for number in 0..20_u8 {
        offer(&mut publication, &[number; 40]);
    }
    assert_eq!(receive(&mut subscription, 4).len(), 4);

    await_reclaimed(&driver, id);
    let other = take_over_position(&driver, &aeron, id, SHORT_TERMS, 1001);
    (Stopped { driver, aeron, stopped, subscription, publication }, other)
}

#[test]
fn polls_are_closed_and_move_nothing() {
    let (mut all, mut other) = stopped_subscriber();
    for number in 0..20_u8 {
        offer(&mut all.publication, &[100 + number; 40]);
    }
    let before = other.image_at_index(0).expect("the image").position();

    let subscription = &mut all.subscription;
    let outcomes = [
        subscription.poll(|message, _| unexpected(message), 10),
        subscription.poll_fragments(|message, _| unexpected(message), 10),
        subscription.controlled_poll(|message, _| unexpected(message), 10),
        subscription.poll_batch(|messages| unexpected(messages.next().expect("one").0), 10),
        subscription.block_poll(|block, _, _| unexpected(block), 1 << 16),
    ];
    assert_eq!(outcomes, [Err(PollError::Closed(CloseCause::ClientTimeout)); 5]);
    let mut image = subscription.image_at_index(0).expect("the image");
    assert_eq!(image.poll(|message, _| unexpected(message), 10), 0);
    assert_eq!(image.bounded_poll(|message, _| unexpected(message), i64::MAX, 10), 0);
    // The end of its own reads, and not the position of the counter's next owner.
    let position = image.position();
    assert_eq!(position, image.join_position() + 4 * 96);
    image.set_position(position + 96).expect("a closed image's position stays");
    assert_eq!(image.position(), position);
    assert!(subscription.is_closed());

    assert_eq!(other.image_at_index(0).expect("the image").position(), before);
    // From where it has joined, which is before the last 20.
    let mut numbers = Vec::new();
    await_that("the last message", || {
        other.poll(|message, _| numbers.push(message[0]), 10).expect("open");
        numbers.last() == Some(&119)
    });
    assert!(numbers.ends_with(&(100..120).collect::<Vec<u8>>()), "{numbers:?}");

    // The conductor comes to the same conclusion.
    await_that("the client is closed", || {
        let _ = all.stopped.do_work();
        all.stopped.is_closed()
    });
    assert!(matches!(
        all.subscription.poll(|_, _| {}, 10),
        Err(PollError::Closed(CloseCause::ClientTimeout))
    ));
    drop((all.aeron, all.driver));
}

/// The publisher may overwrite a block as soon as the driver has freed the position, long before
/// another resource has it.
#[test]
fn block_of_a_freed_position_does_not_count() {
    let driver = launch_with(|context| {
        context
            .set_timer_interval(Duration::from_millis(20))?
            .set_client_liveness_timeout(2 * SHORT_DRIVER_TIMEOUT)?
            .set_counters_free_to_reuse_timeout(DEADLINE)
    });
    let aeron = connect_watchfully(&driver);
    let mut publication =
        aeron.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication");
    let (_stopped, mut subscription, id) = stoppable_subscriber(&driver);
    for number in 0..20_u8 {
        offer(&mut publication, &[number; 40]);
    }
    let mut image = subscription.image_at_index(0).expect("the image");
    let mut poll = |limit| {
        let mut seen = 0;
        (image.block_poll(|block, _, _| seen = block.len(), limit), seen)
    };
    assert_eq!(poll(96), (96, 96));
    await_reclaimed(&driver, id);
    assert_eq!(poll(96), (0, 96));
}

/// Counts the fragments that C gives to a handler.
unsafe extern "C" fn count(
    clientd: *mut c_void,
    _buffer: *const u8,
    _length: usize,
    _header: *mut sys::aeron_header_t,
) {
    // SAFETY: the address of a number that the caller alone uses.
    unsafe { *clientd.cast::<usize>() += 1 };
}

fn poll_in_c(subscription: &mut Subscription) -> (i32, usize) {
    let mut fragments = 0_usize;
    let clientd = (&raw mut fragments).cast();
    // SAFETY: the subscription is live and `&mut` its only user; the handler gets what it expects.
    let polled =
        unsafe { sys::aeron_subscription_poll(subscription.as_ptr(), Some(count), clientd, 10) };
    (polled, fragments)
}

#[test]
fn c_polls_read_nothing() {
    let (mut all, mut other) = stopped_subscriber();
    let before = other.image_at_index(0).expect("the image").position();
    assert_eq!(poll_in_c(&mut all.subscription), (0, 0));
    assert_eq!(other.image_at_index(0).expect("the image").position(), before);
}

/// The counter has no other owner yet, and keeps its ids.
#[test]
fn c_polls_of_a_freed_position() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let mut publication =
        aeron.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication");
    let (_stopped, mut subscription, id) = stoppable_subscriber(&driver);
    offer(&mut publication, b"one");
    offer(&mut publication, b"two");
    await_that("the first message", || {
        subscription.poll(|message, _| assert_eq!(message, b"one"), 1) == Ok(1)
    });
    await_reclaimed(&driver, id);
    assert_eq!(poll_in_c(&mut subscription), (0, 0));
}

/// The subscriber's position can be gone when a slow handler returns.
#[test]
fn reused_position_is_not_moved() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let mut publication =
        aeron.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication");
    let (_stopped, mut subscription, id) = stoppable_subscriber(&driver);
    offer(&mut publication, b"one");
    // Another stream, at another position.
    let mut publication =
        aeron.add_exclusive_publication("aeron:ipc", 1002).expect("a publication");
    let mut other = None;
    await_that("the message", || {
        let handler = |_: &[u8], _: &Header<'_>| {
            await_reclaimed(&driver, id);
            other = Some(take_over_position(&driver, &aeron, id, "aeron:ipc", 1002));
        };
        subscription.poll(handler, 10).is_ok_and(|count| count > 0)
    });
    let mut other = other.expect("the handler has run");
    assert_eq!(other.image_at_index(0).expect("the image").position(), 0);
    offer(&mut publication, b"first");
    offer(&mut publication, b"second");
    assert_eq!(receive(&mut other, 2), [b"first".to_vec(), b"second".to_vec()]);
}

#[test]
fn publications_are_closed() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let stopped = connect_stoppable(&driver);
    let mut subscription = aeron.add_subscription(SHORT_TERMS, 1001).expect("a subscription");
    let exclusive = stopped.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication");
    let shared = stopped.add_publication(SHORT_TERMS, 1001).expect("a publication");
    let (mut exclusive, mut shared) =
        (AnyPublication::from(exclusive), AnyPublication::from(shared));
    await_that("the connection", || {
        stopped.do_work().expect("work");
        exclusive.available_window().is_ok_and(|window| window > 0)
            && shared.available_window().is_ok_and(|window| window > 0)
    });
    exclusive.offer(b"one").expect("a position");
    shared.offer(b"one").expect("a position");
    // The driver need not keep a message for the subscriber to read it.
    assert_eq!(receive(&mut subscription, 2).len(), 2);

    let [exclusive_id, shared_id] =
        [exclusive.constants(), shared.constants()].map(|it| it.publication_limit_counter_id);
    for id in [exclusive_id, shared_id] {
        await_reclaimed(&driver, id);
    }
    let mut counters = Vec::new();
    for id in [exclusive_id, shared_id] {
        let taken = take_over(id, || {
            let counter = aeron.add_counter(1001, b"", "the next owner").expect("a counter");
            let id = counter.counter_id();
            (counter, id)
        });
        // A limit that would let publishers go on for ever, and overflow the values that they
        // compute with it.
        taken.set(i64::MAX);
        counters.push(taken);
    }

    for publisher in [&mut exclusive, &mut shared] {
        let outcomes = [
            publisher.offer(b"two"),
            publisher.try_claim(8).map(|claim| claim.position()),
            publisher.offer(&[0; 4000]),
            publisher.offer_batch(&[b"two"]).stopped_by.map_or(Ok(0), Err),
            publisher.position_limit(),
            publisher.available_window().map(|window| window as i64),
        ];
        assert_eq!(outcomes, [Err(OfferError::Closed(CloseCause::ClientTimeout)); 6]);
        assert!(publisher.is_closed());
    }
}

#[test]
fn reused_counter_is_not_changed() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    // With its own heartbeat from now on.
    let _first = aeron.add_counter(1001, b"", "of the other").expect("a counter");
    let stopped = connect_stoppable(&driver);
    let counter = stopped.add_counter(1001, b"", "of the stopped").expect("a counter");
    counter.set(5);
    let id = counter.counter_id();
    await_reclaimed(&driver, id);
    assert_eq!(counter.get(), 5);
    let next: Counter = take_over(id, || {
        let counter = aeron.add_counter(1001, b"", "the next owner").expect("a counter");
        let id = counter.counter_id();
        (counter, id)
    });
    next.set(7);

    assert!(counter.is_closed());
    assert_eq!(counter.increment(), 0);
    counter.set_release(100);
    assert_eq!(counter.get_and_add(1), 100);
    assert!(counter.propose_max(1_000));
    counter.as_atomic().store(2_000, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(next.get(), 7);
    assert!(!next.is_closed());
}
