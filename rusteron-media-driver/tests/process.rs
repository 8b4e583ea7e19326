//! The program `media_driver`, and clients of a driver that is killed.

#![cfg(all(unix, feature = "binary"))]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Context, ErrorKind, OfferError, PollError};

const PATIENCE: Duration = Duration::from_secs(60);

/// A driver in a process of its own; killed, if it still runs, when dropped.
struct DriverProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl DriverProcess {
    fn start(dir: &Path, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_media_driver"))
            .args(["--threading-mode", "shared", "--dir"])
            .arg(dir)
            .args(options)
            .env("AERON_DIR_WARN_IF_EXISTS", "false")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent =
            Command::new("kill").args(["-s", name, &pid]).status().expect("the command kill");
        assert!(sent.success());
    }

    fn end(&mut self) -> (i32, String) {
        let status = self.child.wait().expect("its end");
        let mut errors = String::new();
        let stderr = self.child.stderr.as_mut().expect("its error output");
        stderr.read_to_string(&mut errors).expect("text");
        (status.code().unwrap_or(-1), errors)
    }
}

impl Drop for DriverProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn await_that(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn the_program_says_when_it_is_ready_and_ends_orderly_on_a_signal() {
    for signal in ["TERM", "INT"] {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("aeron");
        let mut driver = DriverProcess::start(&dir, &[]);
        assert_eq!(driver.line(), format!("media driver ready: {}", dir.display()));
        assert!(dir.join("cnc.dat").is_file());
        driver.signal(signal);
        assert_eq!(driver.line(), format!("media driver closed: {}", dir.display()));
        assert_eq!(driver.end(), (0, String::new()), "SIG{signal}");
    }
}

#[test]
fn the_program_refuses_a_directory_in_use_and_options_it_does_not_know() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut first = DriverProcess::start(&dir, &[]);
    assert!(first.line().starts_with("media driver ready"));
    let mut second = DriverProcess::start(&dir, &[]);
    let (code, errors) = second.end();
    assert_eq!(code, 1);
    assert!(errors.contains("Active media driver detected"), "{errors}");
    assert!(dir.join("cnc.dat").is_file());

    let output = Command::new(env!("CARGO_BIN_EXE_media_driver"))
        .args(["--threading-mode", "sequential"])
        .output()
        .expect("the program");
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("--threading-mode"), "{errors}");
}

#[test]
fn a_driver_that_is_killed_is_noticed_within_the_driver_timeout_and_crashes_nobody() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(&dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));

    let (errors, reported) = mpsc::channel();
    let mut context = Context::new().expect("a context");
    context
        .set_dir(&dir)
        .and_then(|context| context.set_driver_timeout(Duration::from_secs(1)))
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .and_then(|context| {
            context.set_error_handler(move |error| {
                let _ = errors.send(error.clone());
            })
        })
        .expect("valid settings");
    let aeron = Aeron::connect(context).expect("a client");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut publication =
        aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    await_that("the connection", || publication.is_connected() && subscription.is_connected());
    assert!(publication.offer(b"before").is_ok());

    driver.signal("KILL");
    driver.end();

    // The loops go on all the while, as those of a program would.
    let mut received = 0;
    let publisher_end = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            let mut outcome = Err(OfferError::BackPressured);
            await_that("the publisher's end", || {
                outcome = publication.offer(b"on and on");
                outcome.is_err_and(|error| !error.is_retryable())
            });
            outcome
        });
        await_that("the subscriber's end", || match subscription.poll(|_, _| received += 1, 10) {
            Ok(_) => false,
            Err(error) => error == PollError::Closed,
        });
        publisher.join().expect("the publisher")
    });
    assert_eq!(publisher_end, Err(OfferError::Closed));
    assert!(received > 0);

    let error = reported.recv_timeout(PATIENCE).expect("a report");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.message().contains("MediaDriver keepalive"), "{error:?}");
    let error = aeron.add_subscription("aeron:ipc", 1).expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::ClientClosed);

    // A driver in its place, and a client in this one's, carry on. Without the option the driver
    // would take its predecessor for alive until the driver timeout is over.
    drop((publication, subscription, aeron));
    let mut successor = DriverProcess::start(&dir, &["--delete-on-start"]);
    assert!(successor.line().starts_with("media driver ready"));
    let mut context = Context::new().expect("a context");
    context.set_dir(&dir).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    aeron.add_publication("aeron:ipc", 1001).expect("a publication");
}

/// Claims, a message, a counter and a registration in the hands of a client whose driver is killed.
#[test]
fn what_is_held_when_a_driver_is_killed_stays_usable() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(&dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));
    let mut context = Context::new().expect("a context");
    context
        .set_dir(&dir)
        .and_then(|context| context.set_driver_timeout(Duration::from_secs(1)))
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .expect("valid settings");
    let aeron = Aeron::connect(context).expect("a client");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut exclusive = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let mut forgetful = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    let counter = aeron.add_counter(1001, b"key", "label").expect("a counter");
    await_that("the connections", || subscription.image_count() == 3);
    await_that("a place", || exclusive.offer(b"held").is_ok());

    let mut of_exclusive = exclusive.try_claim(1_000).expect("a place");
    let mut of_shared = shared.try_claim(1_000).expect("a place");
    std::mem::forget(forgetful.try_claim(1_000).expect("a place"));
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
    assert_eq!(exclusive.try_claim(1).expect_err("closed"), OfferError::Closed);
    assert_eq!(subscription.poll(|_, _| {}, 10), Err(PollError::Closed));
    assert_eq!(aeron.counters_reader().value(counter.counter_id()), Some(1));
    drop((aeron, exclusive, forgetful, counter, subscription));
    assert_eq!(shared.offer(b"x"), Err(OfferError::Closed));
}
