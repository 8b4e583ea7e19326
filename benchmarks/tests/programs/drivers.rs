//! The program `benchmark_drivers`.

use serde_json::Value;

use crate::child::{Results, SHORT, announced, drivers, has_java, list, number};

/// Streams and round trips that cost little. They have the priority of the tests beside them: with less, programs that spin
/// would hardly ever run at the same time, as round trips require.
const LITTLE: [&str; 6] = ["--term-length", "64k", "--round-trips", "100", "--nice", "0"];

/// Asserts that a driver has all figures of its runs.
#[track_caller]
fn assert_figures(case: &Value, driver: &Value, runs: usize) {
    assert_eq!(list(driver, "/runs").len(), runs, "{driver:#}");
    let is_ping = case["application"].as_str().is_some_and(|name| name.ends_with("-ping"));
    for run in list(driver, "/runs") {
        if is_ping {
            assert!(number(run, "/p50_micros") > 0.0, "{run:#}");
            assert!(number(run, "/p99_micros") >= number(run, "/p50_micros"), "{run:#}");
        } else {
            assert!(number(run, "/messages_per_second") >= 0.0, "{run:#}");
        }
        assert!(number(run, "/cpu_percent") >= 0.0, "{run:#}");
        let private = number(run, "/private_mib");
        assert!((0.1..number(run, "/resident_mib")).contains(&private), "{run:#}");
    }
    // On a busy machine, a program may get no processor time for the 200 ms of one run.
    let first = if is_ping { "p50_micros" } else { "messages_per_second" };
    assert!(number(driver, &format!("/statistics/{first}/max")) > 0.0, "{driver:#}");
}

#[test]
fn c_samples_run_on_both_c_drivers() {
    let arguments = ["--drivers", "rust,c,java", "--applications", "java-stream,c-stream,c-ping"];
    let arguments = arguments.iter().chain(&["--transports", "ipc"]);
    let mut command = drivers(SHORT.iter().chain(&LITTLE).chain(arguments));
    command.env("JAVA_HOME", "/no/such/directory");
    let results = Results::with(command);
    assert_eq!(results.finished.stderr.matches("are skipped: ").count(), 1, "{results:#?}");
    let mut runs = Vec::new();
    for (round, turns) in [("1", ["Rust", "C"]), ("2", ["C", "Rust"])] {
        for application in ["c-stream", "c-ping"] {
            runs.extend(turns.map(|driver| format!("{round}, {application}, ipc, {driver}")));
        }
    }
    assert_eq!(announced(&results.finished, "Run "), runs, "{results:#?}");

    let report = results.report("drivers.json");
    assert_eq!(list(&report, "/cases").len(), 2);
    for case in list(&report, "/cases") {
        let names: Vec<_> = list(case, "/drivers").iter().map(|it| it["name"].clone()).collect();
        assert_eq!(names, ["Rust", "C"]);
        list(case, "/drivers").iter().for_each(|driver| assert_figures(case, driver, 2));
        assert_eq!(number(case, "/drivers/0/ratio_of_first_to_this"), 1.0);
    }
}

#[test]
fn java_samples_run_on_both_drivers() {
    if !has_java() {
        return;
    }
    let arguments = ["--drivers", "rust,java", "--applications", "java-stream,java-ping"];
    let arguments = arguments.iter().chain(&["--transports", "udp"]);
    let arguments = arguments.chain(&["--java-warmup", "100ms", "--runs", "1"]);
    let command = drivers(SHORT[2..].iter().chain(&LITTLE).chain(arguments));
    let report = Results::with(command).report("drivers.json");
    assert_eq!(list(&report, "/cases").len(), 2);
    for case in list(&report, "/cases") {
        assert_eq!(case["drivers"][1]["name"], "Java");
        list(case, "/drivers").iter().for_each(|driver| assert_figures(case, driver, 1));
    }
}
