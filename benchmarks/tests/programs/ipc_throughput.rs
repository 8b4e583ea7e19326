//! The program `ipc_throughput` with a driver of its own.

use serde_json::Value;

use crate::child::{Finished, Running, ipc_throughput, number, report, run};

/// A short run that leaves processor time to the tests beside it.
const SHORT: [&str; 8] =
    ["--duration", "1s", "--warmup", "200ms", "--threading-mode", "shared", "--term-length", "1m"];

/// The two numbers of a line such as `Throughput: 36,859,281 msgs/sec, 1,179,496,981 bytes/sec`.
fn rates(line: &str) -> Option<(u64, u64)> {
    let (messages, bytes) = line.strip_prefix("Throughput: ")?.split_once(" msgs/sec, ")?;
    let parse = |number: &str| number.replace(',', "").parse().ok();
    Some((parse(messages)?, parse(bytes.strip_suffix(" bytes/sec")?)?))
}

#[track_caller]
fn assert_summary(finished: &Finished) {
    let lines: Vec<&str> = finished.stdout.lines().collect();
    let [.., publisher, subscriber, measured] = lines[..] else { panic!("{finished:#?}") };
    assert!(publisher.starts_with("Publisher: "), "{finished:#?}");
    assert!(publisher.contains("back-pressure ratio "), "{finished:#?}");
    assert!(subscriber.starts_with("Subscriber: "), "{finished:#?}");
    assert!(subscriber.contains("failed-poll ratio "), "{finished:#?}");
    assert!(measured.starts_with("Measured "), "{finished:#?}");
}

#[track_caller]
fn assert_consistent(report: &Value) {
    let length = number(report, "/settings/message_length");
    let published = number(report, "/publisher/messages");
    assert!(published > 0.0, "{report:#}");
    assert_eq!(number(report, "/subscriber/messages"), published);
    assert_eq!(number(report, "/subscriber/bytes"), published * length);

    let slices = report["slices"].as_array().expect("slices");
    let sum = |name: &str| -> f64 { slices.iter().filter_map(|slice| slice[name].as_f64()).sum() };
    let rate = |slice: &Value| number(slice, "/messages") / number(slice, "/seconds");
    let highest = slices.iter().map(rate).fold(f64::MIN, f64::max);
    let lowest = slices.iter().map(rate).fold(f64::MAX, f64::min);
    assert!(sum("messages") > 0.0 && sum("messages") <= published, "{report:#}");
    assert_close(number(report, "/measured_seconds"), sum("seconds"));
    assert_close(number(report, "/messages_per_second/mean"), sum("messages") / sum("seconds"));
    assert_close(number(report, "/messages_per_second/min"), lowest);
    assert_close(number(report, "/messages_per_second/max"), highest);
    assert_close(number(report, "/bytes_per_second/mean"), sum("bytes") / sum("seconds"));

    let refused = ["back_pressured", "admin_actions", "not_connected"]
        .map(|name| number(&report["publisher"], &format!("/{name}")));
    let ratio = number(report, "/publisher/back_pressure_ratio");
    assert_close(ratio, refused.iter().sum::<f64>() / published);
    let polls = number(report, "/subscriber/polls");
    let failed = number(report, "/subscriber/failed_polls");
    assert_close(number(report, "/subscriber/failed_poll_ratio"), failed / polls);
}

#[track_caller]
fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() <= 1e-6 * right.abs(), "{left} and {right}");
}

/// Runs the program with a report, which must be consistent.
fn run_with_report(arguments: &[&str]) -> (Finished, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report.json");
    let mut command = ipc_throughput(arguments);
    command.arg("--json").arg(&file);
    let finished = run(command);
    finished.assert_exit_code(0);
    let report = report(&file);
    assert_consistent(&report);
    (finished, report)
}

#[test]
fn a_short_run_prints_rates_and_a_summary() {
    let (finished, report) = run_with_report(&SHORT);
    assert_eq!(finished.stderr, "");
    assert_summary(&finished);
    let lines: Vec<_> = finished.stdout.lines().filter_map(rates).collect();
    assert_eq!(lines.len(), report["slices"].as_array().map_or(0, Vec::len));
    for (messages, bytes) in lines {
        assert!(messages > 0);
        assert!(bytes.abs_diff(messages * 32) <= 32, "{messages} messages, {bytes} bytes");
    }
    assert_eq!(report["settings"]["term_length"], 1 << 20);
    assert_eq!(report["settings"]["driver"], "embedded");
    assert_eq!(report["versions"]["aeron"], "1.54.0");
}

#[test]
fn every_threading_mode_works() {
    for mode in ["dedicated", "shared-network", "shared"] {
        let arguments =
            ["--duration", "1s", "--warmup", "0s", "--term-length", "1m", "--threading-mode", mode];
        let (_, report) = run_with_report(&arguments);
        assert_eq!(report["settings"]["threading_mode"], mode);
    }
}

#[test]
fn every_idle_strategy_works() {
    for kind in rusteron_client::IdleStrategyKind::ALL {
        let arguments =
            ["--duration", "1s", "--warmup", "0s", "--term-length", "1m", "--idle", kind.name()];
        let (_, report) = run_with_report(&arguments);
        assert_eq!(report["settings"]["idle"], kind.name());
    }
}

#[test]
fn messages_in_several_fragments_count_once() {
    let (_, report) = run_with_report(
        &[&SHORT[..6], &["--term-length", "64k", "--message-length", "8k"]].concat(),
    );
    assert_eq!(report["settings"]["message_length"], 8192);
}

#[test]
fn other_channels_and_streams_work() {
    let arguments = ["--channel", "aeron:ipc?term-length=64k|alias=x", "--stream-id", "-7"];
    let (_, report) = run_with_report(&[&SHORT[..6], &arguments].concat());
    assert_eq!(report["settings"]["term_length"], 65536);
    assert_eq!(report["settings"]["stream_id"], -7);
}

#[test]
fn a_report_replaces_what_the_file_held() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report.json");
    std::fs::write(&file, "x".repeat(100_000)).expect("a file");
    let mut command = ipc_throughput(SHORT);
    command.arg("--json").arg(&file);
    run(command).assert_exit_code(0);
    assert_consistent(&report(&file));
}

#[test]
fn refused_channel_is_a_run_time_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report.json");
    let mut command = ipc_throughput(["--channel", "aeron:udp", "--json"]);
    command.arg(&file);
    let finished = run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("error: cannot add the publication"), "{finished:#?}");
    assert!(!file.exists(), "a report without a result");
}

#[cfg(unix)]
#[test]
fn signals_end_it_orderly() {
    for signal in ["TERM", "INT"] {
        let mut running = Running::start(ipc_throughput(["--warmup", "0s", "--term-length", "1m"]));
        running.await_line("Throughput: ");
        assert!(running.driver_dir().join("cnc.dat").is_file());
        running.signal(signal);
        let finished = running.finish();
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "");
        assert_summary(&finished);
    }
}

#[cfg(unix)]
#[test]
fn signal_in_warm_up_measures_nothing() {
    let mut running = Running::start(ipc_throughput(["--warmup", "60m", "--term-length", "1m"]));
    running.await_line("Warm-up: ");
    running.signal("TERM");
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert!(finished.stdout.contains("Measured nothing"), "{finished:#?}");
}

#[cfg(unix)]
#[test]
fn it_ends_orderly_when_nobody_reads_any_more() {
    let mut running = Running::start(ipc_throughput(["--warmup", "0s", "--term-length", "1m"]));
    running.await_line("Throughput: ");
    running.hang_up();
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
}
