//! The program `embedded_exclusive_ipc_throughput`.

use rusteron_media_driver::MediaDriver;

use rusteron_test_support::{Finished, Running, command, run};

const FLAGSHIP: &str = env!("CARGO_BIN_EXE_embedded_exclusive_ipc_throughput");
/// Terms that cost the tests beside it little.
const SHORT_TERMS: [&str; 2] = ["--channel", "aeron:ipc?term-length=1m"];
const SHORT: [&str; 4] = ["--duration", "2s", "--warmup", "500ms"];

/// The two numbers of a line such as `Throughput: 36,859,281 msgs/sec, 1,179,496,981 bytes/sec`.
fn rates(line: &str, label: &str) -> Option<(u64, u64)> {
    let (messages, bytes) = line.strip_prefix(label)?.split_once(" msgs/sec, ")?;
    let parse = |number: &str| number.replace(',', "").parse().ok();
    Some((parse(messages)?, parse(bytes.strip_suffix(" bytes/sec")?)?))
}

/// Asserts that the program has ended well, and that its last line is the throughput.
#[track_caller]
fn assert_throughput(finished: &Finished, message_length: u64) {
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "", "{finished:#?}");
    let last = finished.stdout.lines().last().expect("a line");
    let (messages, bytes) = rates(last, "Throughput: ").expect("a throughput");
    assert!(messages > 0, "{finished:#?}");
    assert!(bytes.abs_diff(messages * message_length) <= message_length, "{finished:#?}");
}

#[test]
fn rates_and_throughput_are_printed() {
    let finished = run(command(FLAGSHIP, SHORT.iter().chain(&SHORT_TERMS)));
    assert_throughput(&finished, 32);
    let lines: Vec<_> = finished.stdout.lines().collect();
    assert!(rates(lines[0], "Warm-up: ").is_some_and(|(messages, _)| messages > 0));
    assert!(rates(lines[1], "Rate: ").is_some_and(|(messages, _)| messages > 0));
    let count = |label| lines.iter().filter(|line| line.starts_with(label)).count();
    assert_eq!((count("Publisher: "), count("Subscriber: ")), (1, 1), "{finished:#?}");
}

#[test]
fn fragmented_messages_count_once() {
    let arguments = ["--message-length", "8192", "--fragment-limit", "100", "--stream-id", "-7"];
    let arguments = SHORT.iter().chain(&SHORT_TERMS).chain(&arguments);
    assert_throughput(&run(command(FLAGSHIP, arguments)), 8192);
}

#[test]
fn option_or_environment_names_driver() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let mut by_option = command(FLAGSHIP, SHORT.iter().chain(&SHORT_TERMS));
    by_option.arg("--aeron-dir").arg(driver.aeron_dir());
    let mut by_environment = command(FLAGSHIP, SHORT.iter().chain(&SHORT_TERMS));
    by_environment.env("AERON_DIR", driver.aeron_dir());
    // On the same stream, at the same time.
    for running in [by_option, by_environment].map(Running::start) {
        assert_throughput(&running.finish(), 32);
    }
    assert!(driver.aeron_dir().join("cnc.dat").is_file());
}

#[test]
fn refusals_name_the_option() {
    let cases: [(&[&str], &str); 13] = [
        (&["--message-length", "0"], "--message-length"),
        (&["--message-length", "-1"], "--message-length"),
        (&["--message-length", "16777217"], "--message-length"),
        (&["--message-length", "many"], "--message-length"),
        (&["--fragment-limit", "0"], "--fragment-limit"),
        (&["--fragment-limit", "2147483648"], "--fragment-limit"),
        (&["--stream-id", "2147483648"], "--stream-id"),
        (&["--channel", "ipc"], "--channel"),
        (&["--duration", "10"], "--duration"),
        (&["--duration", "500000000000years"], "--duration"),
        (&["--warmup", "500000000000years"], "--warmup"),
        (&["--aeron-dir", ""], "--aeron-dir"),
        (&["--no-such-option"], "--no-such-option"),
    ];
    for (arguments, option) in cases {
        let finished = run(command(FLAGSHIP, arguments));
        finished.assert_exit_code(2);
        assert_eq!(finished.stdout, "", "{arguments:?}");
        assert!(finished.stderr.starts_with("error: "), "{arguments:?}: {finished:#?}");
        assert!(finished.stderr.contains(option), "{arguments:?}: {finished:#?}");
    }
}

#[test]
fn unusable_combinations_are_errors() {
    let cases: [(&[&str], &str); 3] = [
        (&["--duration", "1s"], "--warmup must be less than --duration\n"),
        (&["--channel", "aeron:ipc?term-length=1"], "term-length=1: "),
        (
            &["--channel", "aeron:ipc?term-length=64k", "--message-length", "8193"],
            "--message-length 8193: must be 1 to 8192\n",
        ),
    ];
    for (arguments, text) in cases {
        let finished = run(command(FLAGSHIP, arguments));
        finished.assert_exit_code(1);
        assert!(finished.stderr.starts_with("error: "), "{finished:#?}");
        assert!(finished.stderr.contains(text), "{finished:#?}");
    }
}

#[test]
fn missing_driver_is_an_error() {
    let empty = tempfile::tempdir().expect("a directory");
    let mut command = command(FLAGSHIP, ["--aeron-dir"]);
    command.arg(empty.path()).env("AERON_DRIVER_TIMEOUT", "200");
    let finished = run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("error: "), "{finished:#?}");
    assert!(finished.stderr.contains("no media driver runs"), "{finished:#?}");
}

#[test]
fn dead_driver_is_an_error() {
    let arguments = ["--warmup", "0s", "--channel", "aeron:ipc?term-length=64k"];
    let mut host = Running::start(command(FLAGSHIP, arguments));
    host.await_line("Rate: ");

    let mut guest = command(FLAGSHIP, arguments);
    guest.arg("--aeron-dir").arg(host.driver_dir()).env("AERON_DRIVER_TIMEOUT", "3000");
    let mut guest = Running::start(guest);
    guest.await_line("Rate: ");
    host.kill();

    let finished = guest.finish();
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("the media driver"), "{finished:#?}");
}

#[cfg(unix)]
#[test]
fn signals_end_it_with_the_throughput() {
    for signal in ["TERM", "INT"] {
        let mut running =
            Running::start(command(FLAGSHIP, ["--warmup", "0s"].iter().chain(&SHORT_TERMS)));
        running.await_line("Rate: ");
        running.signal(signal);
        assert_throughput(&running.finish(), 32);
    }
}

#[cfg(unix)]
#[test]
fn signal_during_the_warm_up_measures_nothing() {
    let mut running =
        Running::start(command(FLAGSHIP, ["--warmup", "60m"].iter().chain(&SHORT_TERMS)));
    running.await_line("Warm-up: ");
    running.signal("TERM");
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert!(finished.stdout.ends_with("ended during the warm-up\n"), "{finished:#?}");
}

#[cfg(unix)]
#[test]
fn closed_output_ends_it_quietly() {
    let mut running =
        Running::start(command(FLAGSHIP, ["--warmup", "0s"].iter().chain(&SHORT_TERMS)));
    running.await_line("Rate: ");
    running.hang_up();
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
}
