//! The programs that show one thing each.

use std::net::UdpSocket;

use rusteron_client::{Aeron, Context};
use rusteron_media_driver::{Context as DriverContext, MediaDriver};
use rusteron_test_support::{Finished, Running, command, run};

const PUBLISHER: &str = env!("CARGO_BIN_EXE_basic_publisher");
const SUBSCRIBER: &str = env!("CARGO_BIN_EXE_basic_subscriber");
const STATISTICS: &str = env!("CARGO_BIN_EXE_driver_statistics");

/// The programs that start a driver unless `--aeron-dir` names one.
const SAMPLES: [&str; 7] = [
    env!("CARGO_BIN_EXE_claims"),
    env!("CARGO_BIN_EXE_controlled_poll"),
    env!("CARGO_BIN_EXE_multi_destination_publication"),
    env!("CARGO_BIN_EXE_multi_destination_subscription"),
    env!("CARGO_BIN_EXE_request_response"),
    env!("CARGO_BIN_EXE_event_loop"),
    env!("CARGO_BIN_EXE_one_thread"),
];

/// Runs a program to its good end.
#[track_caller]
fn succeed(path: &str, arguments: &[&str]) -> Finished {
    rusteron_test_support::succeed(command(path, arguments))
}

/// The pair on a driver of the test's, the subscriber first.
#[track_caller]
fn publish_and_subscribe(channel: &str) {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let start = |path| {
        let arguments = ["--channel", channel, "--stream-id", "-7", "--messages", "20"];
        let mut command = command(path, arguments);
        command.arg("--aeron-dir").arg(driver.aeron_dir());
        Running::start(command)
    };
    let mut subscriber = start(SUBSCRIBER);
    subscriber.await_line("Subscribed to ");
    let published = start(PUBLISHER).finish();
    let received = subscriber.finish();
    for finished in [&published, &received] {
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "", "{finished:#?}");
    }
    assert_eq!(published.count_lines("Published \"Hello "), 20, "{published:#?}");
    published.assert_lines(["Done: 20 messages published"]);
    assert_eq!(received.count_lines("Received \"Hello "), 20, "{received:#?}");
    // "Hello 1" and a header of 32 bytes, in a multiple of 32.
    let first = received.stdout.lines().find(|line| line.starts_with("Received \"Hello 1\" from "));
    assert!(first.is_some_and(|line| line.ends_with(", position 64")), "{received:#?}");
    received.assert_lines(["Done: 20 messages received"]);
}

#[test]
fn the_basic_pair_works_over_ipc() {
    publish_and_subscribe("aeron:ipc");
}

#[test]
fn the_basic_pair_works_over_udp() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let endpoint = socket.local_addr().expect("an address");
    drop(socket);
    publish_and_subscribe(&format!("aeron:udp?endpoint={endpoint}"));
}

#[test]
fn basic_pair_refuses_bad_channel() {
    for path in [PUBLISHER, SUBSCRIBER] {
        let finished = run(command(path, ["--channel", "aeron:pigeon"]));
        finished.assert_exit_code(2);
        assert!(finished.stderr.contains("--channel"), "{finished:#?}");
    }
}

#[test]
fn missing_driver_is_an_error() {
    let empty = tempfile::tempdir().expect("a directory");
    for path in [PUBLISHER, SUBSCRIBER, STATISTICS].into_iter().chain(SAMPLES) {
        let mut command = command(path, ["--aeron-dir"]);
        command.arg(empty.path()).env("AERON_DRIVER_TIMEOUT", "200");
        let finished = run(command);
        finished.assert_exit_code(1);
        assert!(finished.stderr.starts_with("error: "), "{finished:#?}");
        assert!(finished.stderr.contains("CnC file"), "{finished:#?}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_subscriber_that_waits() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut command = command(SUBSCRIBER, ["--channel", "aeron:ipc", "--aeron-dir"]);
    command.arg(driver.aeron_dir());
    let mut subscriber = Running::start(command);
    subscriber.await_line("Subscribed to ");
    subscriber.signal("TERM");
    let finished = subscriber.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
}

#[test]
fn a_controlled_poll_aborts_commits_and_breaks() {
    let finished = succeed(env!("CARGO_BIN_EXE_controlled_poll"), &[]);
    finished.assert_lines([
        "Poll 1, position    0: \"second\" -> Continue",
        "Poll 1, position    0: \"to be committed\" -> Commit",
        "Poll 1, position  192: \"to be aborted once\" -> Abort",
        "Poll 1 took 3 messages; position 192",
        "Poll 2, position  192: \"to be aborted once\" -> Continue",
        "Poll 2, position  192: \"to be broken after\" -> Break",
        "Poll 3, position  320: \"last\" -> Continue",
        "Done: 6 messages in 3 polls",
    ]);
}

#[test]
fn claims_are_committed_and_aborted() {
    let finished = succeed(env!("CARGO_BIN_EXE_claims"), &["--messages", "4"]);
    finished.assert_lines([
        // 16 bytes and a header of 32, in a multiple of 32.
        "Quote 1 published, position 64",
        "Quote 2 published, position 128",
        "Quote 3 withdrawn",
        "Quote 4 published, position 256",
        "Received quote 2 of 102, intact",
        "Received quote 4 of 104, intact",
        "Done: 4 messages received",
    ]);
    assert_eq!(finished.count_lines("Received quote 3"), 0, "{finished:#?}");
    // Of one byte more than a claim can have, with the MTU of IPC.
    assert_eq!(finished.count_lines("A claim of 1377 bytes is too long, the maximum is 1376"), 1);
    finished.assert_lines(["Received 1377 bytes"]);
}

#[test]
fn claims_beyond_term_window_are_received() {
    let mut context = DriverContext::new().expect("settings");
    context.set_ipc_term_buffer_length(64 << 10).expect("a length");
    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    let dir = driver.aeron_dir().to_str().expect("UTF-8");
    let path = env!("CARGO_BIN_EXE_claims");
    let finished = succeed(path, &["--messages", "3000", "--aeron-dir", dir]);
    // Every third is withdrawn, and one long message is offered.
    finished.assert_lines(["Done: 2001 messages received"]);
}

#[test]
fn a_publication_has_several_destinations() {
    let path = env!("CARGO_BIN_EXE_multi_destination_publication");
    let finished = succeed(path, &["--messages", "3"]);
    finished.assert_lines([
        "The first received \"Message 3 to both\"",
        "The second received \"Message 3 to both\"",
        "Removed the first destination",
        "The second received \"Message 3 to one\"",
        "Done: 3 and 6 messages received",
    ]);
    assert_eq!(finished.count_lines("Added the "), 2, "{finished:#?}");
}

#[test]
fn a_subscription_has_several_destinations() {
    let path = env!("CARGO_BIN_EXE_multi_destination_subscription");
    let finished = succeed(path, &["--messages", "3"]);
    assert_eq!(finished.count_lines("Received \"Message 3 to aeron:udp?endpoint=127.0.0.1:"), 2);
    finished.assert_lines(["Done: 6 messages received"]);
}

#[test]
fn requests_are_answered() {
    let finished = succeed(env!("CARGO_BIN_EXE_request_response"), &["--messages", "3"]);
    finished.assert_lines(["Asked \"request 3\", answered \"REQUEST 3\"", "Done: 3 responses"]);
}

#[test]
fn an_event_loop_adds_without_waiting() {
    let finished = succeed(env!("CARGO_BIN_EXE_event_loop"), &["--messages", "3"]);
    assert_eq!(finished.count_lines("Polled: 3 messages, "), 1, "{finished:#?}");
    finished.assert_lines(["Awaited: 3 messages", "Done"]);
}

#[test]
fn driver_and_client_share_one_thread() {
    let finished = succeed(env!("CARGO_BIN_EXE_one_thread"), &["--messages", "3"]);
    finished.assert_lines([
        "Running [application,aeron-client-conductor,media-driver]",
        "Received \"Hello 3\"",
        "Done: 3 messages received on one thread",
    ]);
}

#[test]
fn samples_use_a_running_driver() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    for path in SAMPLES {
        let dir = driver.aeron_dir().to_str().expect("UTF-8");
        let finished = succeed(path, &["--aeron-dir", dir]);
        assert_eq!(finished.count_lines("Done"), 1, "{finished:#?}");
    }
}

#[cfg(unix)]
#[test]
fn signals_end_samples_quietly() {
    for (path, prefix) in [
        (env!("CARGO_BIN_EXE_claims"), "Quote 1 "),
        (env!("CARGO_BIN_EXE_multi_destination_publication"), "The first received "),
        (env!("CARGO_BIN_EXE_multi_destination_subscription"), "Received "),
        (env!("CARGO_BIN_EXE_request_response"), "Asked "),
        (env!("CARGO_BIN_EXE_one_thread"), "Received "),
    ] {
        let mut sample = Running::start(command(path, ["--messages", "1000000000"]));
        sample.await_line(prefix);
        sample.signal("INT");
        let finished = sample.finish();
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "", "{path}");
    }
}

#[test]
fn the_statistics_of_a_driver_are_printed() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut context = Context::new().expect("settings");
    context.set_dir(driver.aeron_dir()).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    let publication = aeron.add_publication("aeron:ipc", 4711).expect("a publication");
    let counter = aeron.add_counter(2000, b"", "apples").expect("a counter");
    counter.set(42);

    let dir = driver.aeron_dir().to_str().expect("UTF-8");
    let finished = succeed(STATISTICS, &["--aeron-dir", dir]);
    let process = format!("Driver: active, process {}, ", std::process::id());
    assert_eq!(finished.count_lines(&process), 1, "{finished:#?}");
    let session = publication.session_id();
    let stream = format!("  sessionId={session} streamId=4711 channel=aeron:ipc :");
    assert_eq!(finished.count_lines(&stream), 1, "{finished:#?}");
    let own = finished.stdout.lines().find(|line| line.contains("apples"));
    assert!(own.is_some_and(|line| line.contains(" 42 ")), "{finished:#?}");
    finished.assert_lines(["System counters:", "Errors:", "Losses:"]);
}

#[cfg(unix)]
#[test]
fn watched_statistics_end_on_signal() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut command = command(STATISTICS, ["--watch", "--aeron-dir"]);
    command.arg(driver.aeron_dir());
    let mut watching = Running::start(command);
    watching.await_line("Losses:");
    watching.await_line("Losses:");
    watching.signal("INT");
    let finished = watching.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
}

#[cfg(unix)]
#[test]
fn closed_output_ends_statistics_quietly() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut command = command(STATISTICS, ["--watch", "--aeron-dir"]);
    command.arg(driver.aeron_dir());
    let mut watching = Running::start(command);
    watching.await_line("Losses:");
    watching.hang_up();
    let finished = watching.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
}

#[cfg(unix)]
#[test]
fn closed_output_ends_basic_pair_quietly() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let start = |path| {
        let arguments = ["--channel", "aeron:ipc", "--messages", "1000000000", "--aeron-dir"];
        let mut command = command(path, arguments);
        command.arg(driver.aeron_dir());
        Running::start(command)
    };
    let mut subscriber = start(SUBSCRIBER);
    let mut publisher = start(PUBLISHER);
    subscriber.await_line("Received ");
    publisher.await_line("Published ");
    publisher.hang_up();
    let published = publisher.finish();

    subscriber.hang_up();
    // Gives the subscriber something to print.
    let _publisher = start(PUBLISHER);
    let received = subscriber.finish();
    for finished in [published, received] {
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "");
    }
}
