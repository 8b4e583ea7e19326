//! The program `benchmark_ipc_throughput`.

use serde_json::Value;

use crate::child::{benchmark, number, report, run};

#[test]
fn both_sides_run_in_turn_and_are_compared() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report.json");
    let mut command = benchmark([
        "--runs",
        "2",
        "--measure",
        "500ms",
        "--warmup",
        "100ms",
        "--term-length",
        "1m",
    ]);
    command.arg("--json").arg(&file);
    let finished = run(command);
    finished.assert_exit_code(0);

    let runs: Vec<&str> = finished
        .stdout
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(run, _)| run)
        .take(4)
        .collect();
    assert_eq!(runs, ["Run 1, Rust", "Run 1, C", "Run 2, Rust", "Run 2, C"], "{finished:#?}");

    let report = report(&file);
    for side in ["rust", "c"] {
        let runs = report[side]["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), 2);
        let slices: Vec<f64> =
            runs.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_f64).collect();
        let statistics = &report[side]["messages_per_second"];
        assert_eq!(number(statistics, "/count"), slices.len() as f64);
        assert_eq!(number(statistics, "/max"), slices.iter().copied().fold(0.0, f64::max));
        assert!(number(statistics, "/max") > 0.0, "{report:#}");
    }
    assert_eq!(report["settings"]["term_length"], 1 << 20);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_orderly() {
    let mut running = crate::child::Running::start(benchmark([
        "--runs",
        "1000",
        "--measure",
        "100ms",
        "--warmup",
        "0s",
        "--term-length",
        "1m",
    ]));
    running.await_line("Run 1, C");
    running.signal("TERM");
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert!(finished.stdout.contains("Rust / C, ratio of medians: "), "{finished:#?}");
}
