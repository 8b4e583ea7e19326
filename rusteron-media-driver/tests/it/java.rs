//! Java clients of a Rust-hosted driver, and Rust clients of Java's.
//!
//! Without Java these tests do nothing, and say so; `RUSTERON_REQUIRE_JAVA=1` makes that a failure.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rusteron_client::{Aeron, CncFile, Publication, Subscription};
use rusteron_media_driver::{ErrorKind, MediaDriver, is_driver_active};
use rusteron_test_support::{
    ChildProcess, DEADLINE, await_that, connect, context, driver_context_in, free_port, has_java,
    java_driver, java_program,
};

const EXCHANGE: &str = "Exchange.java";

pub(crate) const STREAM: i32 = 1001;

const COUNT: usize = 500;

fn exchange(role: &str, dir: &Path, channel: &str) -> ChildProcess {
    ChildProcess::spawn(&mut exchange_command(role, dir, channel, COUNT))
}

/// One side of an exchange on the stream [`STREAM`], in Java. Its driver timeout is a minute.
pub(crate) fn exchange_command(role: &str, dir: &Path, channel: &str, count: usize) -> Command {
    let dir = dir.display().to_string();
    java_program(&[EXCHANGE, role, &dir, channel, &STREAM.to_string(), &count.to_string()])
}

/// The same as `fill` in `Exchange.java`.
fn message(number: usize) -> Vec<u8> {
    let length = number * 37 % 3000;
    let body = (0..length).map(|i| (31 * number + 7 * i) as u8);
    (number as u64).to_le_bytes().into_iter().chain(body).collect()
}

fn publish(publication: &Publication) {
    for number in 0..COUNT {
        let message = message(number);
        await_that("space for the message", || match publication.offer(&message) {
            Ok(_) => true,
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                false
            }
        });
    }
}

fn receive(subscription: &mut Subscription) {
    let mut received = 0;
    await_that("all messages", || {
        subscription
            .poll(
                |bytes, _| {
                    assert!(bytes == message(received), "message {received} is another");
                    received += 1;
                },
                10,
            )
            .expect("an open subscription");
        received == COUNT
    });
}

/// Rust and Java in turn publish to the other.
fn exchange_in_both_directions(aeron: &Aeron, dir: &Path, channel: &str) {
    let publication = aeron.add_publication(channel, STREAM).expect("a publication");
    let mut java = exchange("subscribe", dir, channel);
    assert_eq!(java.line(), "ready");
    publish(&publication);
    assert_eq!(java.line(), format!("done {COUNT}"));
    assert!(java.wait().success());
    drop(publication);

    let mut subscription = aeron.add_subscription(channel, STREAM).expect("a subscription");
    let mut java = exchange("publish", dir, channel);
    assert_eq!(java.line(), "ready");
    receive(&mut subscription);
    drop(subscription);
    assert_eq!(java.line(), format!("done {COUNT}"));
    assert!(java.wait().success());
}

fn channels() -> [String; 2] {
    // The endpoint of a subscriber that has gone is taken again by the next.
    [
        "aeron:ipc?term-length=64k".into(),
        format!("aeron:udp?term-length=64k|endpoint=127.0.0.1:{}", free_port()),
    ]
}

#[test]
fn clients_of_rust_driver() {
    if !has_java() {
        return;
    }
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let aeron = connect(&driver);
    for channel in channels() {
        exchange_in_both_directions(&aeron, driver.aeron_dir(), &channel);
    }
    assert!(driver.cnc_file().expect("its file").errors().is_empty());
}

#[test]
fn clients_of_java_driver() {
    if !has_java() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let java = java_driver(&dir);
    let timeout = Duration::from_secs(10);
    let cnc = CncFile::open(&dir, DEADLINE).expect("the driver's file");
    assert_eq!(cnc.pid(), i64::from(java.id()));

    let aeron = Aeron::connect(context(&dir)).expect("a client");
    for channel in channels() {
        exchange_in_both_directions(&aeron, &dir, &channel);
    }

    let error = MediaDriver::launch(driver_context_in(&dir)).expect_err("the directory is taken");
    assert_eq!(error.kind(), ErrorKind::ActiveDriver, "{error:?}");
    assert!(is_driver_active(&dir, timeout).expect("an answer"), "the Java driver is unharmed");
}
