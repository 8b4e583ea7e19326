//! Java clients of a Rust-hosted driver, and Rust clients of Java's.
//!
//! Without Java these tests do nothing, and say so; `RUSTERON_REQUIRE_JAVA=1` makes that a failure.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rusteron_client::{Aeron, CncFile, Publication, Subscription};
use rusteron_media_driver::{ErrorKind, MediaDriver, is_driver_active};
use rusteron_test_support::{
    DEADLINE, await_that, connect, context, driver_context_in, free_port, has_java, java_run,
};

const EXCHANGE: &str = "Exchange.java";
const STREAM: i32 = 1001;
const COUNT: usize = 500;

/// A Java process; ended, if it still runs, when dropped.
struct Java {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Java {
    fn run(arguments: &[&str]) -> Self {
        let mut child = Command::new(java_run())
            .args(arguments)
            .args(["-XX:TieredStopAtLevel=1", "-Xmx256m"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("java/run");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, output }
    }

    fn exchange(role: &str, dir: &Path, channel: &str) -> Self {
        let dir = dir.display().to_string();
        Self::run(&[EXCHANGE, role, &dir, channel, &STREAM.to_string(), &COUNT.to_string()])
    }

    fn expect(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert_eq!(line.trim_end(), expected);
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
        await_that("a place for the message", || match publication.offer(&message) {
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

/// Each side in turn publishes to the other.
fn exchange_in_both_directions(aeron: &Aeron, dir: &Path, channel: &str) {
    let publication = aeron.add_publication(channel, STREAM).expect("a publication");
    let mut java = Java::exchange("subscribe", dir, channel);
    java.expect("ready");
    publish(&publication);
    java.expect(&format!("done {COUNT}"));
    assert!(java.child.wait().expect("its end").success());
    drop(publication);

    let mut subscription = aeron.add_subscription(channel, STREAM).expect("a subscription");
    let mut java = Java::exchange("publish", dir, channel);
    java.expect("ready");
    receive(&mut subscription);
    drop(subscription);
    java.expect(&format!("done {COUNT}"));
    assert!(java.child.wait().expect("its end").success());
}

fn channels() -> [String; 2] {
    // The endpoint of a subscriber that has gone is taken again by the next.
    [
        "aeron:ipc?term-length=64k".into(),
        format!("aeron:udp?term-length=64k|endpoint=127.0.0.1:{}", free_port()),
    ]
}

#[test]
fn java_clients_and_rust_clients_of_a_rust_hosted_driver_understand_each_other() {
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
fn java_clients_and_rust_clients_of_the_java_driver_understand_each_other() {
    if !has_java() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut java = Java::run(&[
        "io.aeron.driver.MediaDriver",
        &format!("-Daeron.dir={}", dir.display()),
        "-Daeron.threading.mode=SHARED",
        "-Daeron.shared.idle.strategy=backoff",
    ]);
    let timeout = Duration::from_secs(10);
    await_that("the Java driver", || {
        let ended = java.child.try_wait().expect("a status");
        assert!(ended.is_none(), "{ended:?}");
        is_driver_active(&dir, timeout).expect("an answer")
    });
    let cnc = CncFile::open(&dir, DEADLINE).expect("the driver's file");
    assert_eq!(cnc.pid(), i64::from(java.child.id()));

    let aeron = Aeron::connect(context(&dir)).expect("a client");
    for channel in channels() {
        exchange_in_both_directions(&aeron, &dir, &channel);
    }

    let error = MediaDriver::launch(driver_context_in(&dir)).expect_err("the directory is taken");
    assert_eq!(error.kind(), ErrorKind::ActiveDriver, "{error:?}");
    assert!(is_driver_active(&dir, timeout).expect("an answer"), "the Java driver is unharmed");
}
