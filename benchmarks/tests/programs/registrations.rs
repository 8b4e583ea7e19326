//! The program `benchmark_registrations`.

use serde_json::Value;

use crate::child::{REGISTRATIONS, Results, announced, command, has_java, list, number};

const SMALL: [&str; 6] = ["--runs", "2", "--repetitions", "3", "--java-warmup", "100ms"];

/// Asserts that there is a time for every step of every repetition of every contender.
#[track_caller]
fn assert_complete(report: &Value, contenders: &[&str]) {
    let names: Vec<_> = list(report, "/cases").iter().map(|case| &case["name"]).collect();
    let steps = ["connect", "add publication", "add subscription", "until its image", "close"];
    assert_eq!(names, steps);
    for case in list(report, "/cases") {
        let names: Vec<_> =
            list(case, "/contenders").iter().map(|contender| &contender["name"]).collect();
        assert_eq!(names, contenders);
        for contender in list(case, "/contenders") {
            let lengths: Vec<usize> =
                list(contender, "/runs").iter().map(|run| list(run, "").len()).collect();
            assert_eq!(lengths, [3, 3], "{contender:#}");
            assert!(number(contender, "/statistics/min") > 0.0, "{contender:#}");
        }
    }
    for (contender, name) in contenders.iter().enumerate() {
        for run in 0..2 {
            let times = |step: usize| {
                list(report, &format!("/cases/{step}/contenders/{contender}/runs/{run}"))
            };
            for (added, image) in times(2).iter().zip(times(3)) {
                // From the beginning of the add on.
                assert!(image.as_f64() >= added.as_f64(), "{name}: {image} after {added}");
            }
        }
    }
}

#[test]
fn every_step_of_rust_and_c_is_timed_in_turn() {
    let results =
        Results::with(command(REGISTRATIONS, SMALL.iter().chain(&["--contenders", "rust,c,rust"])));
    let turns = ["1, Rust", "1, C", "2, C", "2, Rust"];
    assert_eq!(announced(&results.finished, "Run "), turns, "{results:#?}");
    assert!(results.finished.stdout.contains("lower is better"), "{results:#?}");
    assert_complete(&results.report("registrations.json"), &["Rust", "C"]);
}

#[test]
fn every_step_of_java_is_timed() {
    if !has_java() {
        return;
    }
    let results = Results::with(command(REGISTRATIONS, SMALL));
    assert_complete(&results.report("registrations.json"), &["Rust", "C", "Java"]);
}

#[test]
fn without_java_its_contender_is_left_out() {
    let mut command = command(REGISTRATIONS, SMALL);
    command.env("JAVA_HOME", "/no/such/directory");
    let results = Results::with(command);
    let stderr = &results.finished.stderr;
    assert!(stderr.contains("the contenders in Java are skipped: "), "{stderr}");
    let report = results.report("registrations.json");
    assert!(report["versions"]["java"].is_null(), "{report:#}");
    assert_complete(&report, &["Rust", "C"]);
}
