//! Handlers of clients, counters and images: called when they should be, on the right thread, and
//! freed exactly once, whatever comes first.

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rusteron_client::{
    Aeron, AsChannel, CountersReader, ErrorKind, Handler, ImageInfo, Registration, Subscription,
    SubscriptionBuilder, UncheckedChannel,
};
use rusteron_sys as sys;
use rusteron_test_support::{
    DEADLINE, await_some, await_that, connect, connect_watchfully, context, launch, offer, receive,
    watchful_context,
};

#[test]
fn additions_are_reported_by_kind() {
    let driver = launch();
    let (events, reported) = mpsc::channel();
    let (shared, exclusive, subscribed) = (events.clone(), events.clone(), events);
    let mut context = context(driver.aeron_dir());
    context
        .set_on_new_publication(move |added| {
            let _ = shared.send(("shared", added.clone()));
        })
        .and_then(|context| {
            context.set_on_new_exclusive_publication(move |added| {
                let _ = exclusive.send(("exclusive", added.clone()));
            })
        })
        .and_then(|context| {
            context.set_on_new_subscription(move |added| {
                let _ = subscribed.send(("subscription", added.clone()));
            })
        })
        .expect("handlers");
    let aeron = Aeron::connect(context).expect("a client");

    let publication = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    let (kind, added) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!((kind, added.stream_id), ("shared", 1));
    assert_eq!(added.session_id, Some(publication.session_id()));
    assert_eq!(added.registration_id, publication.constants().registration_id);
    assert_eq!(added.channel, "aeron:ipc");

    let publication = aeron.add_exclusive_publication("aeron:ipc", 2).expect("a publication");
    let (kind, added) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!((kind, added.session_id), ("exclusive", Some(publication.session_id())));

    let subscription = aeron.add_subscription("aeron:ipc", 3).expect("a subscription");
    let (kind, added) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!((kind, added.stream_id, added.session_id), ("subscription", 3, None));
    assert_eq!(added.registration_id, subscription.constants().registration_id);
}

#[test]
fn conductor_thread_starts_with_its_handler() {
    let driver = launch();
    let (started, reported) = mpsc::channel();
    let mut context = context(driver.aeron_dir());
    context
        .set_agent_on_start(move |role| {
            let _ = started.send((role.to_owned(), thread::current().id()));
        })
        .expect("a handler");
    let _aeron = Aeron::connect(context).expect("a client");
    let (role, thread) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!(role, "aeron-client");
    assert_ne!(thread, thread::current().id());
}

#[test]
fn panicking_handlers_do_not_stop_the_client() {
    let driver = launch();
    let handle: Arc<Mutex<Option<Aeron>>> = Arc::default();
    let in_handler = Arc::clone(&handle);
    let (outcomes, reported) = mpsc::channel();
    let mut context = watchful_context(driver.aeron_dir());
    context
        .set_agent_on_start(|role| panic!("on purpose: {role}"))
        .and_then(|context| context.set_on_new_publication(|added| panic!("on purpose: {added:?}")))
        .and_then(|context| {
            context.set_error_handler(move |error| {
                let Some(aeron) = in_handler.lock().expect("no panic").take() else { return };
                let _ = outcomes.send(aeron.add_publication("aeron:ipc", 1).map(drop));
                panic!("on purpose: {error}");
            })
        })
        .expect("handlers");
    let aeron = Aeron::connect(context).expect("a client");
    let publication = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    *handle.lock().expect("no panic") = Some(aeron);
    drop(driver);
    let error = reported.recv_timeout(DEADLINE).expect("a report").expect_err("it would block");
    assert_eq!(error.kind(), ErrorKind::CalledFromConductor);
    await_that("the publication is closed", || publication.is_closed());
}

#[test]
fn close_is_reported_once_then_freed() {
    struct Freed(Arc<AtomicUsize>);
    impl Drop for Freed {
        fn drop(&mut self) {
            self.0.fetch_add(100, Ordering::AcqRel);
        }
    }
    let driver = launch();
    let count = Arc::new(AtomicUsize::new(0));
    let freed = Freed(Arc::clone(&count));
    let mut context = context(driver.aeron_dir());
    context
        .set_on_close(move || {
            let calls = freed.0.fetch_add(1, Ordering::AcqRel);
            assert!(calls < 100, "called after it was freed");
        })
        .expect("a handler");
    let aeron = Aeron::connect(context).expect("a client");
    let publication = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    drop(aeron);
    assert_eq!(count.load(Ordering::Acquire), 0, "the publication keeps the client open");
    drop(publication);
    assert_eq!(count.load(Ordering::Acquire), 101);
}

#[test]
fn close_handlers_do_not_keep_it_open() {
    let driver = launch();
    let aeron = Aeron::connect(context(driver.aeron_dir())).expect("a client");
    let calls = Arc::new(AtomicUsize::new(0));
    let counting = |weight: usize| {
        let calls = Arc::clone(&calls);
        move || {
            calls.fetch_add(weight, Ordering::AcqRel);
        }
    };
    let removed = aeron.add_close_handler(counting(1));
    let kept = aeron.add_close_handler(counting(10));
    let another = aeron.add_close_handler(counting(100));
    drop(removed);
    drop(aeron);
    assert_eq!(calls.load(Ordering::Acquire), 110);
    assert_eq!(Arc::strong_count(&calls), 1, "freed with the client");
    drop((kept, another));
}

const TYPE: i32 = 1001;

/// The registration id and the counter id that a handler is called with.
type Ids = (i64, i32);

fn ids() -> (mpsc::Sender<Ids>, mpsc::Receiver<Ids>) {
    mpsc::channel()
}

fn await_event(events: &mpsc::Receiver<Ids>, counter: Ids) {
    // Events of heartbeat counters come as well.
    while events.recv_timeout(DEADLINE).expect("an event") != counter {}
}

#[test]
fn called_for_counters_of_all_clients() {
    let driver = launch();
    let (available, made) = ids();
    let (unavailable, gone) = ids();
    let mut context = context(driver.aeron_dir());
    context
        .set_on_available_counter(move |counters, registration_id, id| {
            assert_eq!(counters.registration_id(id), Some(registration_id));
            let _ = available.send((registration_id, id));
        })
        .and_then(|context| {
            context.set_on_unavailable_counter(move |_, registration_id, id| {
                let _ = unavailable.send((registration_id, id));
            })
        })
        .expect("handlers");
    let (listener, other) = (Aeron::connect(context).expect("a client"), connect(&driver));
    for client in [&listener, &other] {
        let counter = client.add_counter(TYPE, &[], "heard of").expect("a counter");
        let expected = (counter.registration_id(), counter.counter_id());
        await_event(&made, expected);
        drop(counter);
        await_event(&gone, expected);
    }
    let counter = other.add_counter(TYPE, &[], "goes with its client").expect("a counter");
    let expected = (counter.registration_id(), counter.counter_id());
    drop((counter, other));
    await_event(&gone, expected);
}

#[test]
fn context_has_one_of_each_kind() {
    let driver = launch();
    let replaced = Arc::new(());
    let (available, made) = ids();
    let mut context = context(driver.aeron_dir());
    let owned = Arc::clone(&replaced);
    let never = move |_: &CountersReader<'_>, _, _| {
        let _ = &owned;
        panic!("never called");
    };
    context
        .set_on_available_counter(never)
        .and_then(|context| {
            context.set_on_available_counter(move |_, registration_id, id| {
                let _ = available.send((registration_id, id));
            })
        })
        .expect("handlers");
    assert_eq!(Arc::strong_count(&replaced), 1);
    let aeron = Aeron::connect(context).expect("a client");
    let counter = aeron.add_counter(TYPE, &[], "").expect("a counter");
    await_event(&made, (counter.registration_id(), counter.counter_id()));
}

#[test]
fn added_and_removed_at_run_time() {
    let driver = launch();
    let (listener, owner) = (connect(&driver), connect(&driver));
    let alive = Arc::new(());
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (alive, calls) = (Arc::clone(&alive), Arc::clone(&calls));
        listener.add_available_counter_handler(move |counters, _, id| {
            let _ = &alive;
            if counters.type_id(id) == Some(TYPE) {
                calls.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let (available, made) = ids();
    let _witness = listener.add_available_counter_handler(move |_, registration_id, id| {
        let _ = available.send((registration_id, id));
    });
    let (unavailable, gone) = ids();
    let _end = listener.add_unavailable_counter_handler(move |_, registration_id, id| {
        let _ = unavailable.send((registration_id, id));
    });

    let first = owner.add_counter(TYPE, &[], "first").expect("a counter");
    await_event(&made, (first.registration_id(), first.counter_id()));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    drop(handler);
    assert_eq!(Arc::strong_count(&alive), 1, "the handler is freed");
    let second = owner.add_counter(TYPE, &[], "second").expect("a counter");
    await_event(&made, (second.registration_id(), second.counter_id()));
    assert_eq!(calls.load(Ordering::SeqCst), 1, "and not called again");

    let expected = (first.registration_id(), first.counter_id());
    drop(first);
    await_event(&gone, expected);
}

#[test]
fn may_add_counters_and_remove_itself() {
    let driver = launch();
    let aeron = connect(&driver);
    let own: Arc<Mutex<Option<Handler>>> = Arc::default();
    let (outcomes, reported) = mpsc::channel();
    let handler = {
        let (aeron, own) = (aeron.clone(), Arc::clone(&own));
        aeron.clone().add_available_counter_handler(move |counters, _, id| {
            if counters.type_id(id) != Some(TYPE) {
                return;
            }
            drop(own.lock().expect("no panic").take());
            let blocking = aeron.add_counter(TYPE + 1, &[], "blocking").map(drop);
            let begun = aeron.async_add_counter(TYPE + 1, &[], "from a handler");
            let _ = outcomes.send((blocking, begun));
        })
    };
    *own.lock().expect("no panic") = Some(handler);
    let _first = aeron.add_counter(TYPE, &[], "first").expect("a counter");
    let (blocking, begun) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!(blocking.expect_err("it would block").kind(), ErrorKind::CalledFromConductor);
    let mut begun = begun.expect("begun");
    let counter = await_some("the counter", || begun.poll().expect("no error"));
    assert!(!counter.is_closed());
    // The handler, with its sender, is gone.
    let end = reported.recv_timeout(DEADLINE).expect_err("no report");
    assert_eq!(end, RecvTimeoutError::Disconnected);
    let _second = aeron.add_counter(TYPE, &[], "second").expect("a counter");
}

#[test]
fn owner_of_the_client_goes_anywhere() {
    let driver = launch();
    let closes = |remove_inside: bool| {
        let aeron = connect(&driver);
        let witness = connect(&driver);
        let client_id = aeron.client_id();
        let own: Arc<Mutex<Option<Handler>>> = Arc::default();
        let handler = {
            let (aeron, own) = (aeron.clone(), Arc::clone(&own));
            aeron.clone().add_available_counter_handler(move |_, _, _| {
                let _ = &aeron;
                if remove_inside {
                    drop(own.lock().expect("no panic").take());
                }
            })
        };
        *own.lock().expect("no panic") = Some(handler);
        drop(aeron);
        let counter = witness.add_counter(TYPE, &[], "an event").expect("a counter");
        if !remove_inside {
            drop(own.lock().expect("no panic").take());
        }
        // The heartbeat counter of a client has its id as key.
        await_that("the client is gone", || {
            witness.counters_reader().iter().all(|counter| {
                counter.type_id != sys::AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID as i32
                    || !counter.key.starts_with(&client_id.to_ne_bytes())
            })
        });
        drop(counter);
    };
    closes(false);
    closes(true);
}

/// Counts how many of its kind are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 0, "dropped twice");
    }
}

/// The events that two handlers report, and how many of the handlers are alive.
struct Watched {
    alive: Arc<AtomicUsize>,
    events: Receiver<(&'static str, ImageInfo)>,
    sender: Sender<(&'static str, ImageInfo)>,
}

impl Watched {
    fn new() -> Self {
        let (sender, events) = mpsc::channel();
        Self { alive: Arc::default(), events, sender }
    }

    fn handlers<'a>(&self, builder: SubscriptionBuilder<'a>) -> SubscriptionBuilder<'a> {
        let handler = |event| {
            let (alive, sender) = (Alive::new(&self.alive), self.sender.clone());
            move |image: &ImageInfo| {
                assert_ne!(alive.0.load(Ordering::SeqCst), 0);
                let _ = sender.send((event, image.clone()));
            }
        };
        builder
            .on_available_image(handler("available"))
            .on_unavailable_image(handler("unavailable"))
    }

    fn add(&self, aeron: &Aeron) -> Subscription {
        self.handlers(aeron.subscription_builder("aeron:ipc", 1001)).add().expect("a subscription")
    }

    fn begin(&self, aeron: &Aeron, channel: impl AsChannel) -> Registration<Subscription> {
        self.handlers(aeron.subscription_builder(channel, 1001)).async_add().expect("begun")
    }

    fn next(&self) -> (&'static str, ImageInfo) {
        self.events.recv_timeout(DEADLINE).expect("an event")
    }

    fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    fn await_freed(&self) {
        await_that("the handlers are freed", || self.alive() == 0);
    }
}

#[test]
fn available_and_unavailable_are_reported() {
    let driver = launch();
    let aeron = connect(&driver);
    let watched = Watched::new();
    let mut subscription = watched.add(&aeron);
    let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("one");

    let (event, image) = watched.next();
    assert_eq!((event, image.session_id()), ("available", publication.session_id()));
    assert_eq!(image.source_identity(), "aeron:ipc");
    assert_eq!((image.join_position(), image.position()), (0, 0));
    assert!(!image.is_end_of_stream());
    let id = subscription.image_at_index(0).expect("an image").correlation_id();
    assert_eq!((image.correlation_id(), image.constants().correlation_id), (id, id));

    let end = offer(&mut publication, b"x");
    receive(&mut subscription, 1);
    drop(publication);
    let (event, image) = watched.next();
    assert_eq!((event, image.correlation_id()), ("unavailable", id));
    assert_eq!((image.position(), image.is_end_of_stream()), (end, true));
    assert_eq!(watched.alive(), 2);
    drop(subscription);
    watched.await_freed();
}

#[test]
fn position_while_another_thread_polls() {
    const CHANNEL: &str = "aeron:ipc?term-length=64k";
    let driver = launch();
    let aeron = connect(&driver);
    let mut publication = aeron.add_exclusive_publication(CHANNEL, 1001).expect("a publication");
    for _ in 0..20 {
        let watched = Watched::new();
        let mut subscription = watched
            .handlers(aeron.subscription_builder(CHANNEL, 1001))
            .add()
            .expect("a subscription");
        // An image can be polled before its handler has been told of it, on the conductor's thread.
        let mut polled = 0;
        await_that("messages", || {
            let _ = publication.offer(b"message");
            polled += subscription.poll(|_, _| (), 10).expect("open");
            polled >= 100
        });
        drop(subscription);
        for event in ["available", "unavailable"] {
            let (name, image) = watched.next();
            assert_eq!(name, event);
            assert!(image.position() >= image.join_position(), "{image:?}");
        }
    }
}

#[test]
fn freed_at_once_after_failed_add() {
    let driver = launch();
    let aeron = connect(&driver);
    let watched = Watched::new();
    let builder = watched.handlers(aeron.subscription_builder("aeron:carrier-pigeon", 1));
    assert_eq!(builder.add().expect_err("no such media").kind(), ErrorKind::InvalidChannel);
    assert_eq!(watched.alive(), 0);
    let builder = watched.handlers(aeron.subscription_builder("aeron:\0", 1));
    assert_eq!(builder.async_add().expect_err("a NUL byte").kind(), ErrorKind::InvalidArgument);
    assert_eq!(watched.alive(), 0);
    drop(watched.handlers(aeron.subscription_builder("aeron:ipc", 1)));
    assert_eq!(watched.alive(), 0, "nothing was added");
}

#[test]
fn freed_with_a_dropped_registration() {
    let driver = launch();
    let aeron = connect(&driver);
    let _publication = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    let watched = Watched::new();
    for round in 0..60 {
        let registration = watched.begin(&aeron, "aeron:ipc");
        match round % 3 {
            // Not even sent, perhaps; on its way; confirmed, with an image.
            0 => {}
            1 => std::thread::sleep(Duration::from_micros(300)),
            _ => await_that("the image", || {
                watched.events.try_iter().any(|(event, _)| event == "available")
            }),
        }
        drop(registration);
    }
    // An error that no caller asks for.
    drop(watched.begin(&aeron, UncheckedChannel("aeron:ipc?alias=")));
    watched.await_freed();
}

#[test]
fn freed_after_the_driver_died() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let publication = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    let (watched, registering) = (Watched::new(), Watched::new());
    let subscription = watched.add(&aeron);
    assert_eq!(watched.next().0, "available");
    // Confirmed by the driver, perhaps, but not known to be.
    let registration = registering.begin(&aeron, "aeron:ipc");
    drop(driver);
    await_that("the client is closed", || aeron.is_closed());
    await_that("the subscription is closed", || subscription.is_closed());
    assert_eq!((watched.alive(), registering.alive()), (2, 2));
    drop(subscription);
    assert_eq!(watched.alive(), 0, "nothing calls them any more");
    drop(registration);
    assert_eq!(registering.alive(), 0);
    let builder = registering.handlers(aeron.subscription_builder("aeron:ipc", 1));
    assert_eq!(builder.add().expect_err("no driver").kind(), ErrorKind::ClientClosed);
    assert_eq!(registering.alive(), 0);
    drop(publication);
}

#[test]
fn panic_ends_there_and_waiting_fails() {
    let driver = launch();
    let aeron = connect(&driver);
    let (sender, outcomes) = mpsc::channel();
    let handle = aeron.clone();
    let mut calls = 0;
    let subscription = aeron
        .subscription_builder("aeron:ipc", 1001)
        .on_available_image(move |_| {
            calls += 1;
            let outcome = handle.add_subscription("aeron:ipc", 1);
            let _ = sender.send((calls, outcome.map(drop)));
            panic_any(calls);
        })
        .add()
        .expect("a subscription");
    for call in 1..=2 {
        let _publication = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("one");
        let (number, outcome) = outcomes.recv_timeout(DEADLINE).expect("a call");
        assert_eq!(number, call);
        assert_eq!(outcome.expect_err("it waits").kind(), ErrorKind::CalledFromConductor);
    }
    drop(subscription);
}

#[test]
fn subscription_drops_in_its_own_handler() {
    let driver = launch();
    let aeron = connect(&driver);
    let watched = Watched::new();
    let slot: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let (alive, in_handler) = (Alive::new(&watched.alive), Arc::clone(&slot));
    let builder = aeron.subscription_builder("aeron:ipc", 1001).on_available_image(move |_| {
        let _ = &alive;
        drop(in_handler.lock().expect("no panic").take());
    });
    *slot.lock().expect("no panic") = Some(builder.add().expect("a subscription"));
    let _publication = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    watched.await_freed();
    assert!(slot.lock().expect("no panic").is_none());
}

#[test]
fn close_notifies_when_done() {
    let driver = launch();
    let aeron = connect(&driver);
    let _publication = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    let (sender, closed) = mpsc::channel();

    let watched = Watched::new();
    let subscription = watched.add(&aeron);
    assert_eq!(watched.next().0, "available");
    let done = sender.clone();
    subscription.close_with(move || {
        let _ = done.send(());
    });
    closed.recv_timeout(DEADLINE).expect("the notification");
    // It is the last.
    assert!(watched.events.try_recv().is_ok_and(|(event, _)| event == "unavailable"));
    watched.await_freed();

    let plain = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let done = sender.clone();
    plain.close_with(move || {
        let _ = done.send(());
        panic!("on purpose");
    });
    closed.recv_timeout(DEADLINE).expect("the notification");
    aeron.add_subscription("aeron:ipc", 1001).expect("a subscription").close();

    // With the client itself.
    let last = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    drop((aeron, _publication));
    last.close_with(move || {
        let _ = sender.send(());
    });
    closed.recv_timeout(DEADLINE).expect("the notification");
    assert!(closed.recv().is_err(), "once each");
}
