//! Clients whose process is killed, on a driver that waits for heartbeats without end.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rusteron_client::Aeron;
use rusteron_test_support::{
    DEADLINE, SHORT_TERMS, await_that, connect, context, ignored_test, launch_with, offer,
};

const STREAM: i32 = 1001;

const DIR: &str = "RUSTERON_TEST_DRIVER_DIR";

const READY: &str = "subscribed";

/// A subscriber that reads nothing.
fn start_subscriber(aeron_dir: PathBuf) -> Child {
    let mut test = ignored_test("killed_clients::subscriber");
    let child = test.env(DIR, aeron_dir).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("this program starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains(READY)));
    child
}

#[test]
#[ignore = "run by the test below"]
fn subscriber() {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a directory"));
    let aeron = Aeron::connect(context(&dir)).expect("a client");
    let _subscription = aeron.add_subscription(SHORT_TERMS, STREAM).expect("a subscription");
    println!("{READY}");
    // Until it is killed, or the other test is.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn killed_subscriber_holds_nobody_up() {
    let driver = launch_with(|context| {
        context
            .set_client_liveness_timeout(10 * DEADLINE)?
            .set_publication_unblock_timeout(20 * DEADLINE)
    });
    let aeron = connect(&driver);
    let mut publication =
        aeron.add_exclusive_publication(SHORT_TERMS, STREAM).expect("a publication");
    let mut subscription = aeron.add_subscription(SHORT_TERMS, STREAM).expect("a subscription");
    let mut killed = start_subscriber(driver.aeron_dir().to_owned());
    await_that("the window is full", || {
        subscription.poll(|_, _| (), usize::MAX).expect("a poll");
        publication.offer(&[0; 1000]).is_err()
    });
    killed.kill().expect("killed");
    killed.wait().expect("ended");
    for _ in 0..100 {
        offer(&mut publication, &[0; 1000]);
        subscription.poll(|_, _| (), usize::MAX).expect("a poll");
    }
}
