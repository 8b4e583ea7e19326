//! A hostile user: safe calls in the worst order, on the worst thread, with the worst numbers,
//! handles that outlive their resource, and panics wherever the library calls the user's code or
//! drops its values.
//!
//! `docs/design/soundness.md` lists the classes of fault.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{
    Action, Aeron, CloseCause, CountersReader, ErrorKind, Header, OfferError, PollError,
    UncheckedChannel,
};
use rusteron_test_support::{
    DEADLINE, await_some, await_that, connect, connected_pair, context, launch, launch_with, offer,
    receive,
};

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
            // The image that is being polled goes, and its log buffer with it, as far as C can
            // tell.
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
fn retained_past_the_client_timeout() {
    let driver = launch_with(|context| {
        context
            .set_timer_interval(Duration::from_millis(20))?
            .set_client_liveness_timeout(Duration::from_secs(10))?
            .set_publication_unblock_timeout(Duration::from_millis(10_100))
    });
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
            CloseCause::ConductorServiceTimeout { interval_ms: 10_001.., timeout_ms: 10_000 }
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

struct Bomb(Arc<AtomicUsize>);

struct Payload(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        if !thread::panicking() {
            panic_any(Payload(Arc::clone(&self.0)));
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        if !thread::panicking() {
            // This payload is never freed, so it has no size.
            panic_any(());
        }
    }
}

#[test]
fn drop_of_captured_values() {
    let driver = launch();
    let drops = Arc::new(AtomicUsize::new(0));
    let bomb = || Bomb(Arc::clone(&drops));
    let aeron = connect(&driver);
    let await_drops = |count: usize| {
        await_that("the drops", || drops.load(Ordering::Acquire) >= count);
        drops.store(0, Ordering::Release);
    };

    // On the conductor's thread: the panic of the closure, and the panic of a value that the
    // closure owns.
    let owned = bomb();
    aeron.add_publication("aeron:ipc", 1).expect("one").close_with(move || {
        let _owned = &owned;
        panic_any(Payload(Arc::clone(&owned.0)));
    });
    await_drops(2);
    let owned = bomb();
    let builder = aeron.subscription_builder("aeron:ipc", 1).on_available_image(move |_| {
        let _ = &owned;
        panic_any(Payload(Arc::clone(&owned.0)));
    });
    let subscription = builder.add().expect("one");
    let publication = aeron.add_publication("aeron:ipc", 1).expect("one");
    await_drops(1);
    drop(subscription);
    await_drops(2);

    // A handler that removes itself is freed on the conductor's thread, too.
    let own: Arc<Mutex<Option<rusteron_client::Handler>>> = Arc::default();
    let (owned, slot) = (bomb(), Arc::clone(&own));
    let handler = aeron.add_available_counter_handler(move |_, _, _| {
        let _ = &owned;
        drop(slot.lock().expect("no panic").take());
    });
    *own.lock().expect("no panic") = Some(handler);
    let counter = aeron.add_counter(1001, &[], "").expect("a counter");
    await_drops(2);

    // Where the user drops it, the user gets the panic, and nothing else is the worse for it.
    let owned = bomb();
    let handler = aeron.add_close_handler(move || {
        let _ = &owned;
    });
    let panic = catch_unwind(AssertUnwindSafe(|| drop(handler))).expect_err("of the bomb");
    assert!(panic.is::<Payload>());
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    await_drops(2);
    assert!(!aeron.is_closed());
    drop((publication, counter));

    let mut settings = context(driver.aeron_dir());
    let (of_errors, of_counters) = (bomb(), bomb());
    settings
        .set_error_handler(move |_| drop(of_errors.0.clone()))
        .and_then(|context| {
            context.set_on_available_counter(move |_, _, _| drop(of_counters.0.clone()))
        })
        .expect("handlers");
    let other = Aeron::connect(settings).expect("a client");
    let panic = catch_unwind(AssertUnwindSafe(|| drop(other))).expect_err("of a bomb");
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    await_drops(3);
    drop(aeron.add_publication("aeron:ipc", 1).expect("the driver and the client are well"));
}

const NUMBERS: [i64; 9] =
    [i64::MIN, i64::MIN + 1, i32::MIN as i64, -1, 0, 1, 33, i64::MAX - 1, i64::MAX];

#[test]
fn extreme_numbers_are_answers_or_errors() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    for stream_id in [i32::MIN, -1, 0, i32::MAX] {
        let added = aeron.add_publication("aeron:ipc", stream_id).expect("any number");
        assert_eq!(added.stream_id(), stream_id);
        assert!(matches!(
            added.try_claim(usize::MAX),
            Err(OfferError::MessageTooLong { .. } | OfferError::NotConnected)
        ));
        let error = added.remove_destination_by_id(i64::from(stream_id)).expect_err("it has none");
        assert_eq!(error.kind(), ErrorKind::InvalidChannel, "{error:?}");
        if stream_id < 0 {
            let error = aeron.add_counter(stream_id, &[], "").expect_err("negative");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            continue;
        }
        let counter = aeron.add_counter(stream_id, &[], "").expect("any number");
        let fixed =
            aeron.add_static_counter(stream_id, &[], "", i64::from(stream_id)).expect("any");
        for value in NUMBERS {
            counter.set(value);
            counter.get_and_add(value);
            counter.increment();
            fixed.get_and_add_release(value);
            fixed.propose_max(value);
        }
        read_everything(&aeron.counters_reader(), stream_id);
    }
    for length in [
        usize::MAX,
        usize::MAX - 31,
        isize::MAX as usize,
        1 << 31,
        publication.max_message_length() + 1,
    ] {
        assert!(matches!(publication.try_claim(length), Err(OfferError::MessageTooLong { .. })));
        assert!(matches!(
            publication.append_padding(length),
            Err(OfferError::MessageTooLong { .. })
        ));
    }
    offer(&mut publication, b"message");
    await_that("the message", || {
        subscription.images().all(|image| image.position() == 0) && {
            subscription.images().any(|mut image| {
                image.controlled_peek(0, |_, _| Action::Continue, 64).is_ok_and(|end| end == 64)
            })
        }
    });
    for number in NUMBERS {
        let mut image = subscription.image_at_index(0).expect("an image");
        let nothing = |_: &[u8], _: &Header<'_>| -> Action { Action::Abort };
        let limit = image.bounded_controlled_poll(nothing, number, usize::MAX);
        assert_eq!(limit, 0, "aborted, or beyond the limit");
        if number != 0 {
            assert!(image.controlled_peek(number, nothing, i64::MAX).is_err(), "{number}");
            assert!(image.set_position(number).is_err(), "{number}");
        }
        image.controlled_peek(0, nothing, number).expect("its position");
        assert_eq!(image.poll(|_, _| panic!("none"), 0), 0);
        assert_eq!(image.block_poll(|_, _, _| panic!("none"), 0), 0);
        if number <= 0 {
            assert_eq!(image.bounded_poll(|_, _| panic!("none"), number, usize::MAX), 0);
        }
    }
    assert!(subscription.image_at_index(usize::MAX).is_none());
    assert_eq!(subscription.block_poll(|_, _, _| {}, usize::MAX), Ok(64));
    assert_eq!(subscription.poll(|_, _| {}, usize::MAX), Ok(0));
}

fn read_everything(counters: &CountersReader<'_>, id: i32) {
    assert_eq!(counters.value(id).is_some(), counters.counter(id).is_some());
    let _ = (counters.label(id), counters.key(id), counters.state(id), counters.owner_id(id));
    let _ = (counters.type_id(id), counters.reference_id(id), counters.free_for_reuse_deadline(id));
    let found = counters.find_by_type_id_and_registration_id(id, i64::from(id));
    assert!(found.is_some_and(|found| counters.type_id(found) == Some(id)));
}

/// Nothing that comes from a user is ever a format of C's.
#[test]
fn printf_directives_are_text() {
    const TEXT: &str = "%s%n%d%.*s%99999d%%";
    let driver = launch();
    let (sender, errors) = mpsc::channel();
    let mut settings = context(driver.aeron_dir());
    settings
        .set_client_name(TEXT)
        .and_then(|context| {
            context.set_publication_error_handler(move |error| {
                let _ = sender.send(error.message.clone());
            })
        })
        .expect("settings");
    let aeron = Aeron::connect(settings).expect("a client");
    let channel = format!("aeron:udp?endpoint={TEXT}=");
    let error = aeron.add_publication(UncheckedChannel(&channel), 1).expect_err("no address");
    assert!(error.message().contains(TEXT), "{error:?}");
    let channel = format!("aeron:ipc?alias={TEXT}");
    let (publication, mut subscription) = connected_pair(&aeron, &channel);
    assert_eq!(publication.channel(), channel);
    let counter = aeron.add_counter(1001, TEXT.as_bytes(), TEXT).expect("a counter");
    assert_eq!(aeron.counters_reader().label(counter.counter_id()).as_deref(), Some(TEXT));
    subscription.image_at_index(0).expect("an image").reject(TEXT).expect("rejected");
    assert_eq!(errors.recv_timeout(DEADLINE).as_deref(), Ok(TEXT));
    assert!(!aeron.is_closed());
}
