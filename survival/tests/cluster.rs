//! The campaign on a cluster: a short one, and one with ledgers that diverge.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

use rusteron_test_support::has_java;
use serde_json::Value;

/// Runs a campaign in a directory of its own. Returns its output and report.
fn campaign(arguments: &[&str]) -> (Output, Value) {
    let results = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_survival"))
        .args(["cluster", "--seed", "7", "--results"])
        .arg(results.path())
        .args(arguments)
        .output()
        .expect("the program starts");
    let report = std::fs::read(results.path().join("cluster-survival.json"));
    let report = serde_json::from_slice(&report.expect("a report"));
    let report = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output, report)
}

#[test]
#[ignore = "takes a minute: cargo test -p rusteron-survival --test cluster -- --ignored"]
fn killed_services_are_survived() {
    if !has_java() {
        return;
    }
    let (output, report) = campaign(&["--duration", "20s", "--faults", "kill-service"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let violations = report["violations"].as_object().expect("violations");
    assert!(violations.values().all(|count| count.as_u64() == Some(0)), "{text}");
    let figure = |name: &str| report["figures"][name].as_u64();
    assert!(figure("kills of services") > Some(0), "{text}");
    assert!(figure("requests answered") > Some(100), "{text}");
    assert!(figure("digests compared of members") > Some(0), "{text}");
    assert!(figure("digests compared with answers") > Some(0), "{text}");
}

#[test]
fn diverging_services_are_noticed() {
    if !has_java() {
        return;
    }
    let arguments = ["--duration", "60s", "--faults", "pause-service", "--diverge"];
    let (output, report) = campaign(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(report["violations"]["diverged"].as_u64() > Some(0), "{text}");
    assert!(text.contains("diverged: position"), "{text}");
}

#[test]
fn unknown_cluster_fault_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_survival"))
        .args(["cluster", "--faults", "nonsense"])
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
}
