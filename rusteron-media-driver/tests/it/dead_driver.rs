//! A driver that is killed is dead at once, for its clients and for its successor.
//!
//! All timeouts are far longer than the deadline of a test: only the kernel can tell in time.

use std::path::Path;
use std::thread;
use std::time::Duration;

use rusteron_client::{
    Aeron, CloseCause, Context, ErrorKind, IdleStrategyKind, OfferError, PollError,
};
use rusteron_media_driver::is_driver_active;
use rusteron_test_support::{
    ChildProcess, DriverProcess, await_that, context, has_java, java_driver,
};
use tempfile::TempDir;

use crate::MEDIA_DRIVER;

const FOREVER: Duration = Duration::from_secs(3600);

/// A directory on a file system whose kernel code knows the writers of a file.
fn home() -> TempDir {
    tempfile::tempdir_in("/dev/shm").expect("a directory")
}

fn start(dir: &Path) -> DriverProcess {
    DriverProcess::start(MEDIA_DRIVER, dir, &["-D", "aeron.driver.timeout=3600000"])
}

fn start_ready(dir: &Path) -> DriverProcess {
    let mut driver = start(dir);
    let line = driver.line();
    assert!(line.starts_with("media driver ready"), "{line}");
    driver
}

fn patient(dir: &Path) -> Context {
    let mut context = context(dir);
    context.set_driver_timeout(FOREVER).expect("a timeout");
    context
}

fn kill(driver: &mut ChildProcess) -> u32 {
    let pid = driver.id();
    driver.signal("KILL");
    driver.finish();
    pid
}

/// Clients with a conductor that sleeps, with one that spins, and without one.
fn clients(dir: &Path) -> [Aeron; 3] {
    let mut spinning = patient(dir);
    spinning.set_idle_strategy(IdleStrategyKind::Yielding).expect("a strategy");
    let mut invoked = patient(dir);
    invoked.set_use_conductor_agent_invoker(true).expect("a setting");
    [patient(dir), spinning, invoked].map(|context| Aeron::connect(context).expect("a client"))
}

fn assert_closed_by_death(clients: &[Aeron; 3], pid: u32) {
    await_that("the clients' end", || {
        let _ = clients[2].do_work();
        clients.iter().all(Aeron::is_closed)
    });
    for client in clients {
        assert_eq!(client.close_cause(), Some(CloseCause::DriverGone { pid }));
        let error = client.add_counter(1001, b"", "").expect_err("closed");
        assert_eq!(error.kind(), ErrorKind::ClientClosed);
        let cause =
            format!("client closed: the media driver, process {pid}, has died; make a new client");
        assert!(error.to_string().starts_with(&cause), "{error}");
    }
}

#[test]
fn clients_notice_at_once() {
    let home = home();
    let dir = home.path().join("aeron");
    let mut driver = start_ready(&dir);
    let clients = clients(&dir);
    let shared = clients[0].add_publication("aeron:ipc", 1001).expect("a publication");
    let mut exclusive =
        clients[0].add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let mut subscription = clients[0].add_subscription("aeron:ipc", 1001).expect("a subscription");
    assert_eq!(clients.each_ref().map(Aeron::close_cause), [None; 3]);
    let pid = kill(&mut driver);
    assert_closed_by_death(&clients, pid);
    let cause = CloseCause::DriverGone { pid };
    await_that("the streams' end", || exclusive.is_closed() && subscription.is_closed());
    await_that("the shared publication's end", || shared.is_closed());
    assert_eq!(shared.offer(b"x"), Err(OfferError::Closed(cause)));
    assert_eq!(exclusive.offer(b"x"), Err(OfferError::Closed(cause)));
    assert_eq!(subscription.poll(|_, _| {}, 1), Err(PollError::Closed(cause)));
}

#[test]
fn successor_starts_at_once() {
    let home = home();
    let dir = home.path().join("aeron");
    let mut driver = start_ready(&dir);
    for _ in 0..3 {
        assert!(is_driver_active(&dir, FOREVER).expect("an answer"));
        kill(&mut driver);
        assert!(!is_driver_active(&dir, FOREVER).expect("an answer"));
        driver = start_ready(&dir);
        let aeron = Aeron::connect(patient(&dir)).expect("a client");
        drop(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
    }
}

#[test]
fn connect_waits_for_the_successor() {
    let home = home();
    let dir = home.path().join("aeron");
    let mut driver = start_ready(&dir);
    let pid = kill(&mut driver);
    let mut impatient = context(&dir);
    impatient.set_driver_timeout(Duration::from_millis(200)).expect("a timeout");
    let error = Aeron::connect(impatient).expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.message().contains(&format!("process {pid}, has died")), "{error:?}");

    let connecting = thread::spawn({
        let context = patient(&dir);
        move || Aeron::connect(context)
    });
    let _successor = start_ready(&dir);
    let aeron = connecting.join().expect("no panic").expect("a client");
    drop(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
    assert_eq!(aeron.close_cause(), None);
}

#[test]
fn stopped_driver_is_alive() {
    let home = home();
    let dir = home.path().join("aeron");
    let driver = start_ready(&dir);
    let aeron = Aeron::connect(patient(&dir)).expect("a client");
    driver.signal("STOP");
    let (code, errors) = start(&dir).end();
    assert_eq!(code, 75, "{errors}");
    assert!(errors.contains(&format!("process {}", driver.id())), "{errors}");
    driver.signal("CONT");
    drop(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
    assert_eq!(aeron.close_cause(), None);
}

#[test]
fn one_of_two_successors_wins() {
    let home = home();
    let dir = home.path().join("aeron");
    let mut driver = start_ready(&dir);
    for _ in 0..5 {
        kill(&mut driver);
        let mut both = [start(&dir), start(&dir)];
        await_that("the loser's end", || both.iter_mut().any(|it| it.try_wait().is_some()));
        let [first, second] = both;
        let (mut loser, mut winner) = (first, second);
        if loser.try_wait().is_none() {
            (loser, winner) = (winner, loser);
        }
        let (code, errors) = loser.end();
        assert_eq!(code, 75, "{errors}");
        assert!(winner.line().starts_with("media driver ready"));
        let aeron = Aeron::connect(patient(&dir)).expect("a client");
        drop(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
        driver = winner;
    }
}

#[test]
fn killed_driver_of_java_is_replaced() {
    if !has_java() {
        return;
    }
    let home = home();
    let dir = home.path().join("aeron");
    let mut driver = java_driver(&dir);
    let clients = clients(&dir);
    let pid = kill(&mut driver);
    assert_closed_by_death(&clients, pid);
    let _successor = start_ready(&dir);
    let aeron = Aeron::connect(patient(&dir)).expect("a client");
    drop(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
}

/// A client holds claims, a message, a counter and a registration while its driver is killed.
#[test]
fn handles_stay_usable() {
    let home = home();
    let dir = home.path().join("aeron");
    let mut driver = start_ready(&dir);
    let aeron = Aeron::connect(patient(&dir)).expect("a client");
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
                kill(&mut driver);
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
