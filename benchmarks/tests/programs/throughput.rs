//! The program `benchmark_ipc_throughput`.

use serde_json::Value;

use crate::child::{Results, THROUGHPUT, announced, list, number};

const NATIVE: [&str; 6] =
    ["--contenders", "rust,c-functions,c-program", "--term-length", "1m", "--idle", "backoff"];

/// Asserts that statistics and ratios are those of the runs, and that each run has probes.
#[track_caller]
fn assert_consistent(case: &Value, runs: usize) {
    let median = |contender: &Value| number(contender, "/statistics/median");
    let first = median(&case["contenders"][0]);
    for contender in list(case, "/contenders") {
        assert_eq!(list(contender, "/runs").len(), runs, "{contender:#}");
        assert_eq!(number(contender, "/statistics/count"), runs as f64);
        let slices = list(contender, "/runs").iter().filter_map(Value::as_array).flatten();
        let highest = slices.filter_map(Value::as_f64).fold(0.0, f64::max);
        assert!(highest > 0.0, "{contender:#}");
        assert!(number(contender, "/statistics/max") <= highest, "{contender:#}");
        let probes = list(contender, "/handover_nanoseconds");
        assert_eq!(probes.len(), runs, "{contender:#}");
        for probe in probes {
            assert!(number(probe, "/before") > 0.0 && number(probe, "/after") > 0.0, "{probe:#}");
        }
        assert!(number(contender, "/statistics/lower_quartile") <= median(contender));
        assert!(number(contender, "/statistics/upper_quartile") >= median(contender));
        if median(contender) > 0.0 {
            let ratio = number(contender, "/ratio_of_first_to_this/of_medians");
            assert!((ratio - first / median(contender)).abs() <= 1e-9 * ratio, "{contender:#}");
            let lowest = number(contender, "/ratio_of_first_to_this/of_lowest_to_median");
            assert!(lowest <= ratio, "{contender:#}");
        }
    }
}

#[test]
fn contenders_take_turns_and_are_compared() {
    let results = Results::of(
        THROUGHPUT,
        &[&NATIVE[..], &["--publications", "exclusive", "--message-lengths", "32"]].concat(),
    );
    let contenders = ["Rust", "C functions", "C program"];
    // The second round begins with the second contender.
    let turns = [(1, contenders), (2, ["C functions", "C program", "Rust"])];
    let expected: Vec<String> = turns
        .iter()
        .flat_map(|(run, contenders)| {
            contenders.map(|contender| format!("{run}, exclusive, 32 B, {contender}"))
        })
        .collect();
    assert_eq!(announced(&results.finished, "Run "), expected, "{results:#?}");

    let report = results.report("ipc-throughput.json");
    assert_eq!(report["settings"]["term_length"], 1 << 20);
    assert_eq!(list(&report, "/cases").len(), 1);
    assert_consistent(&report["cases"][0], 2);
    let names: Vec<_> =
        list(&report, "/cases/0/contenders").iter().map(|contender| &contender["name"]).collect();
    assert_eq!(names, contenders);
    results.assert_chart("ipc-throughput-exclusive.svg", &[&contenders[..], &["32 B"]].concat());
}

#[test]
fn several_threads_share_a_publication() {
    let results = Results::of(
        THROUGHPUT,
        &[&NATIVE[..], &["--publications", "concurrent", "--publishers", "1,3"]].concat(),
    );
    let report = results.report("ipc-throughput.json");
    let names: Vec<_> = list(&report, "/cases").iter().map(|case| &case["name"]).collect();
    assert_eq!(names, ["1 concurrent, 32 B", "3 concurrent, 32 B"]);
    for case in list(&report, "/cases") {
        assert_consistent(case, 2);
    }
    results.assert_chart("ipc-throughput-concurrent.svg", &["1 concurrent, 32 B"]);
}

#[test]
fn fragmented_messages_are_counted() {
    let results = Results::of(
        THROUGHPUT,
        &[&NATIVE[..], &["--publications", "exclusive", "--message-lengths", "4096"]].concat(),
    );
    let report = results.report("ipc-throughput.json");
    assert_consistent(&report["cases"][0], 2);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_orderly() {
    use crate::child::{Running, command};

    let dir = tempfile::tempdir().expect("a directory");
    let endless = ["--runs", "1000", "--measure", "100ms", "--warmup", "0s"];
    let mut command = command(THROUGHPUT, NATIVE.iter().chain(&endless));
    command.arg("--results").arg(dir.path());
    let mut running = Running::start(command);
    running.await_line("Run 1, exclusive, 32 B, C functions");
    running.signal("TERM");
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert!(finished.stdout.contains("Results: "), "{finished:#?}");
    assert!(dir.path().join("ipc-throughput.json").is_file());
    assert!(dir.path().join("ipc-throughput-exclusive.svg").is_file());
}
