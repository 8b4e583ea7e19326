//! Waiting for connections, and offering until a deadline.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rusteron_client::{
    Aeron, Backoff, ChannelStatus, CloseCause, Error, ErrorKind, OfferError, WaitError, WaitState,
    Yielding, idle_fn,
};
use rusteron_test_support::{
    DEADLINE, SHORT_TERMS, await_that, connect, connect_watchfully, connected_pair, context,
    launch, shared_pair,
};

const SHORT: Duration = Duration::from_millis(20);

type Timed<'a> = &'a mut dyn FnMut(Instant) -> Result<(), WaitError>;

fn later() -> Instant {
    Instant::now() + DEADLINE
}

fn soon() -> Instant {
    Instant::now() + SHORT
}

#[test]
fn await_connected_finds_the_peer() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut idle = Backoff::default();
    let subscription = aeron.add_subscription("aeron:ipc", 1).expect("a subscription");
    let shared = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    shared.await_connected(later(), &mut idle).expect("a subscriber");
    let exclusive = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    exclusive.await_connected(later(), &mut idle).expect("a subscriber");
    subscription.await_connected(later(), &mut idle).expect("a publisher");
    assert!(shared.is_connected() && exclusive.is_connected() && subscription.is_connected());
}

#[test]
fn waits_run_the_conductor() {
    let driver = launch();
    let mut context = context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(context).expect("a client");
    let mut idle = Backoff::default();
    let mut subscription = aeron.add_subscription(SHORT_TERMS, 1).expect("a subscription");
    let mut publication = aeron.add_exclusive_publication(SHORT_TERMS, 1).expect("a publication");
    // Only the wait calls `do_work`, which finds the image.
    subscription.await_connected(later(), &mut idle).expect("a publisher");
    publication.offer_deadline(b"hello", later(), &mut idle).expect("an offer");
    let mut received = 0;
    await_that("the message", || {
        subscription.poll(|_, _| received += 1, 1).expect("open");
        received == 1
    });
}

#[test]
fn unconnected_wait_says_how_long_and_why() {
    let driver = launch();
    let aeron = connect(&driver);
    let shared = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    let mut exclusive = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    let subscription = aeron.add_subscription("aeron:ipc", 2).expect("a subscription");
    let mut idle = Yielding;
    let active = WaitState::NotConnected { channel_status: ChannelStatus::Active };
    let until_deadline = |call: Timed<'_>| {
        let deadline = soon();
        let error = call(deadline).expect_err("nobody");
        assert!(Instant::now() >= deadline, "{error}");
        error
    };
    for (error, stream) in [
        (until_deadline(&mut |end| shared.await_connected(end, &mut idle)), 1),
        (until_deadline(&mut |end| exclusive.await_connected(end, &mut idle)), 1),
        (until_deadline(&mut |end| shared.offer_deadline(b"", end, &mut idle).map(drop)), 1),
        (until_deadline(&mut |end| shared.offer_until(b"", end).map(drop)), 1),
        (until_deadline(&mut |end| exclusive.offer_until(b"", end).map(drop)), 1),
        (until_deadline(&mut |end| exclusive.offer_deadline(b"", end, &mut idle).map(drop)), 1),
        (until_deadline(&mut |end| subscription.await_connected(end, &mut idle)), 2),
    ] {
        let shown = error.to_string();
        assert!(
            shown.contains("aeron:ipc stream ") && shown.contains("timed out after "),
            "{shown}"
        );
        assert!(error.is_retryable());
        assert_eq!(Error::from(error.clone()).kind(), ErrorKind::NotConnected);
        let WaitError::TimedOut { state, channel, stream_id, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!((state, channel.as_str(), stream_id), (active, "aeron:ipc", stream));
    }
}

#[test]
fn deadline_in_the_past_means_one_attempt() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let past = Instant::now();
    let mut idle = idle_fn(|_| panic!("no second attempt"));
    publication.await_connected(past, &mut idle).expect("connected");
    publication.offer_deadline(b"hello", past, &mut idle).expect("an offer");
    publication.offer_until(b"hello", past).expect("an offer");
    subscription.await_connected(past, &mut idle).expect("connected");
    await_that("the message", || subscription.poll(|_, _| {}, 1) == Ok(1));
}

#[test]
fn offer_outlasts_back_pressure() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    while exclusive.offer(&[0; 1024]).is_ok() {}
    let error = exclusive.offer_deadline(&[0; 1024], soon(), &mut Yielding).expect_err("full");
    assert!(matches!(error, WaitError::TimedOut { state: WaitState::BackPressured, .. }));

    // On one thread: the idle strategy is where the subscriber polls.
    let mut idle = idle_fn(|_| {
        subscription.poll(|_, _| {}, 10).expect("open");
    });
    for _ in 0..200 {
        exclusive.offer_deadline(&[0; 1024], later(), &mut idle).expect("an offer");
    }
    let (shared, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let mut idle = idle_fn(|_| {
        subscription.poll(|_, _| {}, 10).expect("open");
    });
    for _ in 0..200 {
        shared.offer_deadline(&[0; 1024], later(), &mut idle).expect("an offer");
    }
}

#[test]
fn long_message_is_rejected_at_once() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut publication = aeron.add_exclusive_publication(SHORT_TERMS, 1).expect("a publication");
    let message = vec![0; 64 << 10];
    let mut idle = idle_fn(|_| panic!("no second offer"));
    let error = publication.offer_deadline(&message, later(), &mut idle).expect_err("too long");
    assert!(matches!(error, WaitError::Rejected(OfferError::MessageTooLong { .. })), "{error}");
    assert!(!error.is_retryable());
}

#[test]
fn waits_end_when_driver_dies() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let shared = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    let mut exclusive = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    let subscription = aeron.add_subscription("aeron:ipc", 2).expect("a subscription");
    drop(driver);
    const CLOSED: CloseCause = CloseCause::DriverShutdown;
    let mut idle = Backoff::default();
    assert!(matches!(shared.await_connected(later(), &mut idle), Err(WaitError::Closed(CLOSED))));
    assert!(matches!(
        exclusive.offer_deadline(b"", later(), &mut idle),
        Err(WaitError::Closed(CLOSED))
    ));
    assert!(matches!(
        shared.offer_deadline(b"", later(), &mut idle),
        Err(WaitError::Closed(CLOSED))
    ));
    assert!(matches!(
        subscription.await_connected(later(), &mut idle),
        Err(WaitError::Closed(CLOSED))
    ));
    assert_eq!(Error::from(WaitError::Closed(CLOSED)).close_cause(), Some(CLOSED));
}

#[test]
fn waits_in_callbacks_are_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    let publication = Arc::new(aeron.add_publication("aeron:ipc", 1).expect("a publication"));
    let (sender, errors) = mpsc::channel();
    let in_callback = Arc::clone(&publication);
    let _handler = aeron.add_available_counter_handler(move |_, _, _| {
        let mut idle = idle_fn(|_| panic!("no wait"));
        let _ = sender.send(in_callback.await_connected(later(), &mut idle));
    });
    let _counter = aeron.add_counter(1001, b"", "any").expect("a counter");
    let outcome = errors.recv_timeout(DEADLINE).expect("the callback");
    assert_eq!(outcome, Err(WaitError::CalledFromConductor));
}
