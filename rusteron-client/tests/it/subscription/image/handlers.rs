//! Handlers of images: called when they should be, and freed exactly once, whatever comes first.

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusteron_client::{
    Aeron, AsChannel, ErrorKind, ImageInfo, Registration, Subscription, SubscriptionBuilder,
    UncheckedChannel,
};
use rusteron_test_support::{
    DEADLINE, await_some, await_that, connect, connect_watchfully, launch, offer, receive,
};

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
fn may_own_the_client_until_close() {
    let driver = launch();
    let aeron = connect(&driver);
    let watched = Watched::new();
    let (alive, handle) = (Alive::new(&watched.alive), aeron.clone());
    let builder = aeron.subscription_builder("aeron:ipc", 1001).on_available_image(move |_| {
        let _ = (&alive, handle.client_id());
    });
    let subscription = builder.add().expect("a subscription");
    drop(aeron);
    // The last handle of the client goes with the handler, on the client's own thread.
    drop(subscription);
    watched.await_freed();
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
    let (done, events) = (sender.clone(), watched.sender.clone());
    let info = await_some("an image", || subscription_info(&aeron));
    subscription.close_with(move || {
        let _ = events.send(("closed", info));
        let _ = done.send(());
    });
    closed.recv_timeout(DEADLINE).expect("the notification");
    assert_eq!(watched.next().0, "unavailable");
    assert_eq!(watched.next().0, "closed", "it is the last");
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

/// Any image's description, to have something to send.
fn subscription_info(aeron: &Aeron) -> Option<ImageInfo> {
    let (sender, infos) = mpsc::channel();
    let builder = aeron.subscription_builder("aeron:ipc", 1001).on_available_image(move |image| {
        let _ = sender.send(image.clone());
    });
    let _subscription = builder.add().expect("a subscription");
    infos.recv_timeout(DEADLINE).ok()
}
