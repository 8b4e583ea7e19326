//! Short campaigns: some survive, and some must not.

#![cfg(target_os = "linux")]

use std::process::{Command, Output};

use rusteron_test_support::has_java;
use serde_json::Value;

/// The campaign waits as long for a condition that a mistake keeps from coming true.
const DEADLINE: &str = "24s";

/// Runs a campaign, and returns its output and the report, a file of this name.
fn campaign(first: &[&str], report: &str, arguments: &[&str]) -> (Output, Value) {
    let results = tempfile::tempdir().expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_survival"))
        .args(first)
        .arg("--results")
        .arg(results.path())
        .args(arguments)
        .output()
        .expect("the program starts");
    let report = std::fs::read(results.path().join(report)).expect("a report");
    let report = serde_json::from_slice(&report);
    let report = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output, report)
}

fn clients(arguments: &[&str]) -> (Output, Value) {
    let first = ["clients", "--publishers", "1", "--subscribers", "2", "--seed", "1"];
    campaign(&first, "survival.json", arguments)
}

fn cluster(arguments: &[&str]) -> (Output, Value) {
    campaign(&["cluster", "--seed", "7"], "cluster-survival.json", arguments)
}

/// A campaign in which the first subscriber makes a mistake fails, with these kinds of faults and no others.
#[track_caller]
fn fails_with(mistake: &str, expected: &[&str]) {
    let arguments =
        ["--duration", "2s", "--deadline", DEADLINE, "--faults", "none", "--sabotage", mistake];
    let (output, report) = clients(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for (name, count) in report["violations"].as_object().expect("violations") {
        assert_eq!(count.as_u64() > Some(0), expected.contains(&name.as_str()), "{name}: {text}");
    }
    assert!(text.contains("did not survive"), "{text}");
}

#[test]
fn faults_are_survived() {
    let faults = "kill-client,pause-client,descriptors,loss";
    let (output, report) = clients(&["--duration", "5s", "--faults", faults]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(report["figures"]["messages received"].as_u64() > Some(1_000), "{text}");
    // The clock decides how many of the seed's faults fit into the time.
    let figures = report["figures"].as_object().expect("figures");
    let is_caused = |name: &str| name.starts_with("kills") || name.starts_with("pauses");
    let mut caused = figures.iter().filter(|(name, _)| is_caused(name));
    assert!(caused.any(|(_, count)| count.as_u64() > Some(0)), "{text}");
}

#[test]
fn clock_steps_end_no_client() {
    let (output, report) = clients(&["--duration", "5s", "--faults", "clock-step"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(report["figures"]["clock steps"].as_u64() > Some(0), "{text}");
    assert_eq!(report["ends"], serde_json::json!({}), "{text}");
}

#[test]
fn repeated_message_is_noticed() {
    fails_with("repeat", &["repeated"]);
}

#[test]
fn skipped_message_is_noticed() {
    fails_with("skip", &["lost"]);
}

#[test]
fn changed_message_is_noticed() {
    // The message that was sent does not arrive.
    fails_with("corrupt", &["corrupted", "lost"]);
}

#[test]
fn crash_is_noticed() {
    fails_with("crash", &["crashed"]);
}

#[test]
fn leaked_descriptors_are_noticed() {
    fails_with("leak", &["leaked"]);
}

#[test]
fn client_that_outlives_its_timeout_is_noticed() {
    let arguments = ["--duration", "8s", "--deadline", DEADLINE, "--faults", "pause-client"];
    let arguments = [&arguments[..], &["--sabotage", "undead"]].concat();
    let (output, report) = clients(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(report["violations"]["stuck"].as_u64() > Some(0), "{text}");
    assert!(text.contains("was paused past its timeout, and goes on"), "{text}");
}

#[test]
#[ignore = "takes a minute: cargo test -p rusteron-survival --test campaign -- --ignored"]
fn killed_services_are_survived() {
    if !has_java() {
        return;
    }
    let (output, report) = cluster(&["--duration", "20s", "--faults", "kill-service"]);
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
    let (output, report) = cluster(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(report["violations"]["diverged"].as_u64() > Some(0), "{text}");
    assert!(text.contains("diverged: position"), "{text}");
}

fn archive(arguments: &[&str]) -> (Output, Value) {
    campaign(&["archive", "--deadline", DEADLINE], "archive-survival.json", arguments)
}

#[test]
fn killed_archives_are_survived() {
    let (output, report) = archive(&["--seed", "1", "--duration", "1m", "--kills", "5"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let figure = |name: &str| report["figures"][name].as_u64().unwrap_or(0);
    assert_eq!(figure("kills of the archive") + figure("kills of archive and driver"), 5, "{text}");
    assert!(figure("recordings") >= 6 && figure("messages checked") > 100, "{text}");
}

#[test]
fn lost_recordings_are_noticed() {
    for (damage, condition) in [("cut", "missing"), ("change", "corrupted")] {
        let arguments = ["--seed", "4", "--kills", "20", "--sabotage", damage];
        let (output, report) = archive(&arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{damage}: {text}");
        assert_eq!(report["violations"][condition].as_u64(), Some(1), "{damage}: {text}");
    }
}
