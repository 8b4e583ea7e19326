//! Clients of a driver that is killed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use rusteron_client::{Aeron, ErrorKind, Header, OfferError, PollError};
use rusteron_test_support::{
    DEADLINE, DriverProcess, await_that, context, offer, receive, udp_channel, watchful_context,
};

use crate::MEDIA_DRIVER;

#[test]
fn killed_driver_is_noticed() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(MEDIA_DRIVER, &dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));

    let (errors, reported) = mpsc::channel();
    let mut watchful = watchful_context(&dir);
    watchful
        .set_error_handler(move |error| {
            let _ = errors.send(error.clone());
        })
        .expect("a handler");
    let aeron = Aeron::connect(watchful).expect("a client");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut publication =
        aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    await_that("the connection", || publication.is_connected() && subscription.is_connected());
    assert!(publication.offer(b"before").is_ok());

    driver.signal("KILL");
    driver.end();

    // The loops go on all the while, as the loops of a program would.
    let publisher_end = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            let mut outcome = Err(OfferError::BackPressured);
            await_that("the publisher's end", || {
                outcome = publication.offer(b"on and on");
                outcome.is_err_and(|error| !error.is_retryable())
            });
            outcome
        });
        await_that("the subscriber's end", || match subscription.poll(|_, _| {}, 10) {
            Ok(_) => false,
            Err(error) => matches!(error, PollError::Closed(_)),
        });
        publisher.join().expect("the publisher")
    });
    assert!(matches!(publisher_end, Err(OfferError::Closed(_))));

    let error = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    // The kernel knows first, where it can be asked.
    let texts = ["has died", "MediaDriver keepalive"];
    assert!(texts.iter().any(|text| error.message().contains(text)), "{error:?}");
    let error = aeron.add_subscription("aeron:ipc", 1).expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::ClientClosed);

    // A successor of the driver, and a successor of this client, carry on. Without the option, the
    // driver would take its predecessor for alive until the driver timeout is over.
    drop((publication, subscription, aeron));
    let mut successor = DriverProcess::start(MEDIA_DRIVER, &dir, &["--delete-on-start"]);
    assert!(successor.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(context(&dir)).expect("a client");
    drop(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
}

/// A service as it should be: when its client has ended, it makes another.
#[derive(Default)]
struct Service {
    channel: String,
    clients: AtomicUsize,
    /// Clients that ended with an error.
    ended: AtomicUsize,
    /// By the latest client.
    received: AtomicUsize,
}

impl Service {
    fn on(channel: &str) -> Self {
        Self { channel: channel.to_owned(), ..Self::default() }
    }

    fn run(&self, dir: &Path, is_over: &AtomicBool) {
        while !is_over.load(Ordering::SeqCst) {
            // Each step may meet a driver that is gone, or not there yet.
            let _ = self.run_one_client(dir, is_over);
        }
    }

    fn run_one_client(&self, dir: &Path, is_over: &AtomicBool) -> rusteron_client::Result<()> {
        let aeron = Aeron::connect(watchful_context(dir))?;
        let mut subscription = aeron.add_subscription(&self.channel, 1001)?;
        let mut publication = aeron.add_exclusive_publication(&self.channel, 1001)?;
        self.received.store(0, Ordering::SeqCst);
        self.clients.fetch_add(1, Ordering::SeqCst);
        while !is_over.load(Ordering::SeqCst) {
            let sent = publication.offer(b"on and on");
            let count = |_: &[u8], _: &Header<'_>| _ = self.received.fetch_add(1, Ordering::SeqCst);
            let polled = subscription.poll(count, 10);
            if polled.is_err() || sent.is_err_and(|error| !error.is_retryable()) {
                self.ended.fetch_add(1, Ordering::SeqCst);
                break;
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Ends the services also when the test fails, which would wait for them otherwise.
struct EndOfTest<'a>(&'a AtomicBool);

impl Drop for EndOfTest<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn services_survive_restarts() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let udp = udp_channel();
    let channels = ["aeron:ipc", "aeron:ipc", &udp, &udp];
    let (services, is_over) = (channels.map(Service::on), AtomicBool::new(false));
    let counts = |count: fn(&Service) -> &AtomicUsize| {
        services.each_ref().map(|service| count(service).load(Ordering::SeqCst))
    };
    std::thread::scope(|scope| {
        let _end = EndOfTest(&is_over);
        for service in &services {
            scope.spawn(|| service.run(&dir, &is_over));
        }
        for _ in 0..3 {
            let (clients, ended) = (counts(|service| &service.clients), counts(|s| &s.ended));
            let mut driver = DriverProcess::start(MEDIA_DRIVER, &dir, &["--delete-on-start"]);
            assert!(driver.line().starts_with("media driver ready"));
            for (service, clients) in services.iter().zip(clients) {
                await_that("another client's messages", || {
                    service.clients.load(Ordering::SeqCst) > clients
                        && service.received.load(Ordering::SeqCst) > 100
                });
            }
            driver.signal("KILL");
            driver.end();
            for (service, ended) in services.iter().zip(ended) {
                await_that("the client's error", || service.ended.load(Ordering::SeqCst) > ended);
            }
        }
    });
}

/// Over UDP, the driver of the other side can be killed too.
#[test]
fn publication_reconnects_over_udp() {
    let home = tempfile::tempdir().expect("a directory");
    let (near, far) = (home.path().join("near"), home.path().join("far"));
    let soon = ["-Daeron.publication.connection.timeout=1s", "--delete-on-start"];
    let mut publisher = DriverProcess::start(MEDIA_DRIVER, &near, &soon);
    assert!(publisher.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(context(&near)).expect("a client");
    let channel = udp_channel();
    let mut publication = aeron.add_exclusive_publication(&channel, 1001).expect("a publication");

    for _ in 0..2 {
        let mut driver = DriverProcess::start(MEDIA_DRIVER, &far, &soon);
        assert!(driver.line().starts_with("media driver ready"));
        let other = Aeron::connect(watchful_context(&far)).expect("a client");
        let mut subscription = other.add_subscription(&channel, 1001).expect("a subscription");
        await_that("the connection", || publication.is_connected() && subscription.is_connected());
        offer(&mut publication, b"to whoever is there");
        assert_eq!(receive(&mut subscription, 1), [b"to whoever is there"]);
        driver.signal("KILL");
        driver.end();
        await_that("the subscriber's error", || {
            matches!(subscription.poll(|_, _| {}, 10), Err(PollError::Closed(_)))
        });
        // Not by offers: an offer that is still accepted would be the next subscriber's.
        await_that("the publication to notice", || !publication.is_connected());
        assert_eq!(publication.offer(b"to nobody"), Err(OfferError::NotConnected));
    }
}

/// A client holds claims, a message, a counter and a registration while its driver is killed.
#[test]
fn handles_stay_usable() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(MEDIA_DRIVER, &dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(watchful_context(&dir)).expect("a client");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut exclusive = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let mut forgetful = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    let counter = aeron.add_counter(1001, b"key", "label").expect("a counter");
    await_that("the connections", || subscription.image_count() == 3);
    await_that("an offer", || exclusive.offer(b"held").is_ok());
    await_that("windows for claims", || {
        forgetful.available_window().is_ok_and(|window| window > 0)
            && shared.available_window().is_ok_and(|window| window > 0)
    });

    let mut of_exclusive = exclusive.try_claim(1_000).expect("a claim");
    let mut of_shared = shared.try_claim(1_000).expect("a claim");
    std::mem::forget(forgetful.try_claim(1_000).expect("a claim"));
    let mut received = 0;
    await_that("the message", || {
        let polled = subscription.poll(
            |message, header| {
                driver.signal("KILL");
                driver.end();
                await_that("the client's end", || aeron.is_closed());
                of_exclusive.fill(1);
                of_shared.fill(2);
                counter.increment();
                assert_eq!((message, header.stream_id()), (&b"held"[..], 1001));
                received += 1;
            },
            1,
        );
        polled.is_err() || received > 0
    });
    assert_eq!(received, 1);
    let outcome = aeron.async_add_publication("aeron:ipc", 7);
    assert_eq!(outcome.expect_err("closed").kind(), ErrorKind::ClientClosed);
    let other = std::thread::scope(|scope| {
        scope.spawn(move || of_shared.commit()).join().expect("a claim moves to any thread")
    });
    assert!(matches!(other, Ok(_) | Err(OfferError::Unblocked)), "{other:?}");
    of_exclusive.abort();
    // The client says that it is closed before each of its resources does.
    await_that("the publications' end", || exclusive.is_closed() && shared.is_closed());
    await_that("the subscription's end", || subscription.is_closed());
    assert!(matches!(exclusive.try_claim(1).expect_err("closed"), OfferError::Closed(_)));
    assert!(matches!(subscription.poll(|_, _| {}, 10), Err(PollError::Closed(_))));
    assert_eq!(aeron.counters_reader().value(counter.counter_id()), Some(1));
    drop((aeron, exclusive, forgetful, counter, subscription));
    assert!(matches!(shared.offer(b"x"), Err(OfferError::Closed(_))));
}
