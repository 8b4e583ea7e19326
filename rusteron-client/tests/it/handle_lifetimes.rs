//! Handles that are retained past the end of their resource, or forgotten.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, CloseCause, ErrorKind, OfferError, PollError};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    DEADLINE, await_some, await_that, connect, connected_pair, context, launch, offer, receive,
};

#[test]
fn retained_past_the_client_timeout() {
    let mut settings = rusteron_media_driver::DriverContext::new().expect("a context");
    settings
        .set_threading_mode(rusteron_media_driver::ThreadingMode::Shared)
        .and_then(|context| context.set_timer_interval(Duration::from_millis(20)))
        .and_then(|context| context.set_client_liveness_timeout(Duration::from_millis(2_000)))
        .and_then(|context| context.set_publication_unblock_timeout(Duration::from_millis(2_100)))
        .expect("valid settings");
    let driver = MediaDriver::launch_embedded_with(settings).expect("a driver");
    // Often, so that the driver does not give a client up that is only slow.
    let mut settings = context(driver.aeron_dir());
    settings.set_keepalive_interval(Duration::from_millis(50)).expect("a valid setting");
    let aeron = Aeron::connect(settings).expect("a client");
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let mut other = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    await_that("an available window", || {
        other.available_window().is_ok_and(|window| window > 0)
            && shared.available_window().is_ok_and(|window| window > 0)
    });
    let counter = aeron.add_counter(1001, &[], "").expect("a counter");
    offer(&mut publication, b"held");
    let mut of_exclusive = other.try_claim(100).expect("an available window");
    let mut of_shared = shared.try_claim(100).expect("an available window");

    let (release, held) = mpsc::channel::<()>();
    let (enter, entered) = mpsc::channel();
    aeron.add_publication("aeron:ipc", 7).expect("one").close_with(move || {
        let _ = enter.send(());
        let _ = held.recv_timeout(DEADLINE);
    });
    entered.recv_timeout(DEADLINE).expect("the conductor is blocked");
    let mut pending = aeron.async_add_subscription("aeron:ipc", 8).expect("begun");
    let mut times = 0;
    await_that("the message", || {
        let polled = subscription.poll(
            |message, header| {
                // The handler retains a message and two claims while the client timeout ends.
                await_that("the client timeout", || !shared.is_connected());
                // Then the driver unblocks the claimed range.
                let then = Instant::now();
                await_that("the unblocking", || then.elapsed() > Duration::from_millis(500));
                of_exclusive.fill(1);
                of_shared.fill(2);
                assert_eq!((message, header.stream_id()), (&b"held"[..], 1001));
                times += 1;
            },
            1,
        );
        polled.expect("the conductor has not noticed") > 0
    });
    drop(release);
    await_that("the end of the client", || aeron.is_closed());
    of_exclusive[0] = 3;
    let outcomes = [of_exclusive.commit(), of_shared.commit()];
    for outcome in outcomes {
        assert!(matches!(outcome, Ok(_) | Err(OfferError::Unblocked)), "{outcome:?}");
    }
    assert_eq!(times, 1);
    let cause = aeron.close_cause().expect("closed");
    assert!(
        matches!(
            cause,
            CloseCause::ConductorServiceTimeout { interval_ms: 2001.., timeout_ms: 2000 }
        ),
        "{cause:?}"
    );
    // The client says that it is closed before each of its resources does.
    await_that("the end of the publications", || {
        [publication.offer(b"x"), shared.offer(b"x")] == [Err(OfferError::Closed(cause)); 2]
    });
    await_that("the end of the subscription", || {
        subscription.poll(|_, _| panic!("nothing"), 10) == Err(PollError::Closed(cause))
    });
    let error = await_some("the outcome", || pending.poll().err());
    assert!(
        matches!(error.kind(), ErrorKind::ClientClosed | ErrorKind::DriverTimeout),
        "{error:?}"
    );
    counter.set(9);
    assert_eq!((counter.get(), counter.is_closed()), (9, true));
    let (done, closed) = mpsc::channel();
    let too = done.clone();
    publication.close_with(move || done.send("publication").expect("a receiver"));
    subscription.close_with(move || too.send("subscription").expect("a receiver"));
    assert_eq!(closed.try_iter().collect::<Vec<_>>(), ["publication", "subscription"]);
}

#[test]
fn forgotten_views_and_claims() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let mut behind = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    await_that("both images", || subscription.image_count() == 2);
    std::mem::forget(publication.try_claim(100).expect("an available window"));
    let _ = std::mem::ManuallyDrop::new(subscription.image_at_index(0));
    offer(&mut publication, b"behind what is never finished");
    offer(&mut behind, b"beside it");
    assert_eq!(receive(&mut subscription, 1), [b"beside it"]);
    drop(publication);
    // The driver unblocks the stream of a publication that is gone.
    assert_eq!(receive(&mut subscription, 1), [b"behind what is never finished"]);
    await_that("its end", || {
        subscription.poll(|_, _| {}, 1).is_ok() && subscription.image_count() == 1
    });
}
