//! The programs that need no more than a media driver.

use std::process::Command;

use rusteron_client::{Aeron, Context};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{Running, command, run, succeed};

use crate::assert_in_order;

const PUBLISHER: &str = env!("CARGO_BIN_EXE_basic_publisher");
const SUBSCRIBER: &str = env!("CARGO_BIN_EXE_basic_subscriber");
const STATISTICS: &str = env!("CARGO_BIN_EXE_driver_statistics");

/// Programs that start a driver of their own, and lines of their output.
const SAMPLES: [(&str, &[&str]); 11] = [
    (
        env!("CARGO_BIN_EXE_claims"),
        &[
            // 16 bytes and a header of 32, in a multiple of 32.
            "Quote 1 published, position 64",
            "Quote 3 withdrawn",
            "Quote 4 published, position 256",
            // The MTU of IPC without a header, and a byte more.
            "No claim: a message of 1377 bytes; this call takes 1376 at most",
            "Received quote 2, reserved value -1",
            "Received quote 4, reserved value -1",
            "Received 1377 bytes",
        ],
    ),
    (
        env!("CARGO_BIN_EXE_controlled_poll"),
        &[
            "Position   0: \"second\" -> Continue",
            "Position   0: \"to be committed\" -> Commit",
            "Position 192: \"to be aborted once\" -> Abort",
            "Poll of 3 messages ends at position 192",
            "Position 192: \"to be aborted once\" -> Continue",
            "Position 192: \"to be broken after\" -> Break",
            "Poll of 2 messages ends at position 320",
            "Position 320: \"last\" -> Continue",
        ],
    ),
    (
        env!("CARGO_BIN_EXE_multi_destination_publication"),
        &[
            "The first received \"to both\"",
            "The second received \"to both\"",
            "The second received \"to one\"",
            "The first received 0 more",
        ],
    ),
    (
        env!("CARGO_BIN_EXE_multi_destination_subscription"),
        &["Received \"to aeron:udp", "Received \"to aeron:udp", "Still listening on [127.0.0.1:"],
    ),
    (
        env!("CARGO_BIN_EXE_request_response"),
        &["Asked \"first\", answered \"FIRST\"", "Asked \"third\", answered \"THIRD\""],
    ),
    (
        env!("CARGO_BIN_EXE_event_loop"),
        &["Polled: added both", "Awaited: added both", "Received 5 bytes"],
    ),
    (env!("CARGO_BIN_EXE_one_thread"), &["Position 64", "Position 640"]),
    (env!("CARGO_BIN_EXE_tokio_tasks"), &["Received \"Hello 1\"", "Received \"Hello 100\""]),
    (env!("CARGO_BIN_EXE_typed_sbe"), &["Received quote 1: ASK 5 at 101 in Zürich"]),
    (
        env!("CARGO_BIN_EXE_typed_serde"),
        &[
            "Received Order { number: 1, price: Some(101), venue: \"Zürich\" }",
            "Received Order { number: 2, price: None, venue: \"Zürich\" }",
            "Received Closed",
        ],
    ),
    (
        env!("CARGO_BIN_EXE_typed_zerocopy"),
        &["Received quote 1 at 101", "Received a book of 1000 quotes"],
    ),
];

#[test]
fn samples_print_their_lines_and_leave_nothing_behind() {
    for (path, expected) in SAMPLES {
        assert_in_order(&succeed(command(path, [""; 0])), expected);
    }
}

/// A program that uses the driver of a test.
fn with_driver(path: &str, driver: &MediaDriver) -> Command {
    let mut command = command(path, [""; 0]);
    command.env("AERON_DIR", driver.aeron_dir());
    command
}

#[cfg(unix)]
#[test]
fn basic_pair_exchanges_messages_until_signal() {
    for signal in ["INT", "TERM", "HUP"] {
        let driver = MediaDriver::launch_embedded().expect("a driver");
        let mut subscriber = Running::start(with_driver(SUBSCRIBER, &driver));
        subscriber.await_line("Subscribed to ");
        let published = succeed(with_driver(PUBLISHER, &driver));
        assert_eq!(published.count_lines("Published \"Hello "), 10, "{published:#?}");
        // "Hello 1" and a header of 32 bytes, in a multiple of 32.
        let first = subscriber.await_line("Received \"Hello 1\" from session ");
        assert!(first.ends_with(", position 64"), "{first}");
        subscriber.await_line("Received \"Hello 10\" from session ");
        subscriber.signal(signal);
        let finished = subscriber.finish();
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "");
    }
}

#[test]
fn missing_driver_is_an_error() {
    let empty = tempfile::tempdir().expect("a directory");
    for path in [PUBLISHER, SUBSCRIBER, STATISTICS] {
        let mut command = command(path, [""; 0]);
        command.env("AERON_DIR", empty.path()).env("AERON_DRIVER_TIMEOUT", "200");
        let finished = run(command);
        finished.assert_exit_code(1);
        assert!(finished.stderr.contains("Error: driver timeout: no "), "{finished:#?}");
    }
}

#[test]
fn statistics_show_streams_and_counters() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut context = Context::new().expect("settings");
    context.set_dir(driver.aeron_dir()).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    let publication = aeron.add_publication("aeron:ipc", 4711).expect("a publication");
    let counter = aeron.add_counter(2000, b"", "apples").expect("a counter");
    counter.set(42);

    let finished = succeed(with_driver(STATISTICS, &driver));
    let process = format!("Driver: active, process {}, ", std::process::id());
    assert_eq!(finished.count_lines(&process), 1, "{finished:#?}");
    let session = publication.session_id();
    let stream = format!("  sessionId={session} streamId=4711 channel=aeron:ipc :");
    assert_eq!(finished.count_lines(&stream), 1, "{finished:#?}");
    let own = finished.stdout.lines().find(|line| line.contains("apples"));
    assert!(own.is_some_and(|line| line.contains(" 42 ")), "{finished:#?}");
    finished.assert_lines(["Counters:", "Errors:", "Losses:"]);
}
