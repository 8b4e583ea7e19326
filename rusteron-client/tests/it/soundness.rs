//! A hostile user: safe calls in the worst order, on the worst thread, with the worst numbers.
//!
//! `docs/design/soundness.md` lists the classes of fault.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use rusteron_client::{Aeron, Header};
use rusteron_test_support::{await_that, connect, connected_pair, context, launch, offer};

#[test]
fn handlers_use_every_handle() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut outer) = connected_pair(&aeron, "aeron:ipc");
    let (mut second, inner) = connected_pair(&aeron, "aeron:ipc?alias=other");
    let mut inner = Some(inner);
    offer(&mut publication, b"outer");
    offer(&mut second, b"inner");
    let mut last_handle = Some(aeron);
    let mut heard = Vec::new();
    await_that("both messages", || {
        let polled = outer.poll(
            |message, header| {
                heard.push(message.to_vec());
                let Some(aeron) = last_handle.take() else { return };
                // A poll in a poll, which offers into the stream that is being polled.
                let mut subscription = inner.take().expect("once");
                await_that("the other message", || {
                    let offer_on = |message: &[u8], _: &Header<'_>| {
                        offer(&mut publication, message);
                    };
                    subscription.poll(offer_on, 10).expect("open") > 0
                });
                // This is no callback of the conductor's: waiting for it is fine.
                let added = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
                let counter = aeron.add_counter(1001, &[], "in a poll").expect("a counter");
                counter.set(header.position());
                drop((added, counter, subscription, aeron));
                assert_eq!(message, b"outer", "it has not changed");
            },
            1,
        );
        polled.expect("open");
        heard.len() >= 2
    });
    assert_eq!(heard[0], b"outer");
}

#[test]
fn poll_handler_invokes_the_conductor() {
    let driver = launch();
    let mut settings = context(driver.aeron_dir());
    settings.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(settings).expect("a client");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("one");
    await_that("the connection", || {
        aeron.do_work().expect("work");
        publication.is_connected() && subscription.is_connected()
    });
    offer(&mut publication, b"message");
    let mut publication = Some(publication);
    await_that("the message", || {
        let handler = |message: &[u8], _: &Header<'_>| {
            // The image that is being polled goes, and its log buffer with it, as far as C can tell.
            publication.take().expect("once").revoke();
            let observer = aeron.add_subscription("aeron:ipc", 1001).expect("another");
            await_that("the end of the image", || {
                aeron.do_work().expect("work");
                observer.image_count() == 0
            });
            assert_eq!(message, b"message");
        };
        subscription.poll(handler, 10).expect("open") > 0
    });
    await_that("the end of the image", || {
        aeron.do_work().expect("work");
        subscription.poll(|_, _| {}, 1).expect("open");
        subscription.image_count() == 0
    });
}

#[test]
fn invoker_serves_many_threads() {
    let driver = launch();
    let mut settings = context(driver.aeron_dir());
    settings.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(settings).expect("a client");
    let received = AtomicUsize::new(0);
    thread::scope(|scope| {
        for stream_id in 0..4 {
            let (aeron, received) = (aeron.clone(), &received);
            scope.spawn(move || {
                for _ in 0..5 {
                    let (mut publication, mut subscription) = {
                        let subscription =
                            aeron.add_subscription("aeron:ipc", stream_id).expect("one");
                        let publication =
                            aeron.add_exclusive_publication("aeron:ipc", stream_id).expect("one");
                        (publication, subscription)
                    };
                    await_that("the message", || {
                        aeron.do_work().expect("work");
                        let _ = publication.offer(b"message");
                        subscription.poll(|_, _| {}, 1).expect("open") > 0
                    });
                    received.fetch_add(1, Ordering::Relaxed);
                    let handle = aeron.clone();
                    publication.close_with(move || {
                        // In the work of any thread: a command is rejected, a drop deferred.
                        assert!(handle.add_counter(1, &[], "").is_err());
                        drop((handle, subscription));
                    });
                }
            });
        }
    });
    assert_eq!(received.load(Ordering::Relaxed), 20);
}

#[test]
fn threads_drop_all_handles_at_once() {
    let driver = launch();
    for _ in 0..10 {
        let aeron = connect(&driver);
        let closes = Arc::new(AtomicUsize::new(0));
        let closed = Arc::clone(&closes);
        let handler = aeron.add_close_handler(move || {
            closed.fetch_add(1, Ordering::Relaxed);
        });
        let barrier = Barrier::new(5);
        let shared = Arc::new(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
        let (exclusive, subscription) = connected_pair(&aeron, "aeron:ipc");
        let pending = aeron.async_add_publication("aeron:ipc", 7).expect("begun");
        let counter = aeron.add_counter(1001, &[], "").expect("a counter");
        thread::scope(|scope| {
            let spawn = |action: Box<dyn FnOnce() + Send>| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    action();
                });
            };
            let offering = Arc::clone(&shared);
            spawn(Box::new(move || while offering.offer(b"message").is_ok() {}));
            spawn(Box::new(move || drop((exclusive, shared))));
            spawn(Box::new(move || {
                let mut subscription = subscription;
                let _ = subscription.poll(|_, _| {}, 10);
            }));
            spawn(Box::new(move || drop((pending, counter))));
            spawn(Box::new(move || drop(aeron)));
        });
        assert_eq!(closes.load(Ordering::Relaxed), 1);
        drop(handler);
    }
}

#[test]
fn context_handler_releases_its_client() {
    let driver = launch();
    let own: Arc<Mutex<Option<Aeron>>> = Arc::default();
    let closes = Arc::new(AtomicUsize::new(0));
    let mut settings = context(driver.aeron_dir());
    let (slot, closed) = (Arc::clone(&own), Arc::clone(&closes));
    settings
        .set_error_handler(move |_| drop(slot.lock().expect("no panic").take()))
        .and_then(|context| {
            context.set_on_close(move || {
                closed.fetch_add(1, Ordering::AcqRel);
            })
        })
        .expect("handlers");
    let aeron = Aeron::connect(settings).expect("a client");
    *own.lock().expect("no panic") = Some(aeron.clone());
    drop(aeron);
    assert_eq!(closes.load(Ordering::Acquire), 0, "the cycle keeps it open");
    let last = own.lock().expect("no panic").take();
    drop(last);
    assert_eq!(closes.load(Ordering::Acquire), 1);
    assert_eq!(Arc::strong_count(&own), 1, "the handler is freed");
}

#[test]
fn handlers_do_not_outlive_their_source() {
    let driver = launch();
    let aeron = connect(&driver);
    let alive = Arc::new(());
    for stream_id in 0..50 {
        let owned = [(); 4].map(|()| Arc::clone(&alive));
        let [available, unavailable, closed, counted] = owned;
        let subscription = aeron
            .subscription_builder("aeron:ipc", stream_id)
            .on_available_image(move |_| drop(Arc::clone(&available)))
            .on_unavailable_image(move |_| drop(Arc::clone(&unavailable)))
            .add()
            .expect("a subscription");
        let publication = aeron.add_publication("aeron:ipc", stream_id).expect("a publication");
        let handler = aeron.add_available_counter_handler(move |_, _, _| drop(counted.clone()));
        publication.close_with(move || drop(closed));
        drop((handler, subscription));
    }
    await_that("the last of them", || Arc::strong_count(&alive) == 1);
    assert!(!aeron.is_closed(), "the client is there still");
}
