//! The program `recording_throughput`.

use crate::child::{RECORDING, Results, command, has_java, list, number, run};

#[test]
fn both_contenders_record_and_replay() {
    if !has_java() {
        eprintln!("nothing tested: no Java, or its artifacts have not been fetched yet (java/run)");
        return;
    }
    let small = ["--runs", "2", "--recording-length", "480000", "--message-lengths", "64"];
    let short = ["--recordings", "3", "--warmup-messages", "100", "--warmup", "0s"];
    let results = Results::with(command(RECORDING, small.iter().chain(&short)));
    let report = results.report("recording-throughput.json");
    let names: Vec<_> = list(&report, "/cases").iter().map(|case| &case["name"]).collect();
    assert_eq!(names, ["record, 64 B", "replay, 64 B"]);
    for case in list(&report, "/cases") {
        let contenders: Vec<_> =
            list(case, "/contenders").iter().map(|contender| &contender["name"]).collect();
        assert_eq!(contenders, ["Rust", "Java"]);
        for contender in list(case, "/contenders") {
            assert_eq!(list(contender, "/runs").len(), 2, "{contender:#}");
            assert_eq!(number(contender, "/statistics/count"), 2.0, "{contender:#}");
            assert!(number(contender, "/statistics/min") > 0.0, "{contender:#}");
        }
    }
    for contender in list(&report, "/archive") {
        for run in list(contender, "/runs") {
            for recording in list(run, "") {
                // 96 bytes a message, with headers.
                assert_eq!(number(recording, "/recorded_bytes"), 480_000.0, "{recording:#}");
                assert!(number(recording, "/disk_bytes") >= 480_000.0, "{recording:#}");
            }
        }
    }
    results.assert_chart("recording-throughput-rates.svg", &["Rust", "Java", "record, 64 B"]);
}

#[test]
fn missing_java_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = command(RECORDING, &[] as &[&str]);
    command.env("JAVA_HOME", "/no/such/directory").arg("--results").arg(dir.path());
    let finished = run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("the archive needs Java"), "{finished:#?}");
}
