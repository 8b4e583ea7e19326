//! The program `recording_throughput`.

use crate::child::{RECORDING, Results, command, has_java, list, number, run};

#[test]
fn both_sides_record_and_replay_on_one_archive() {
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
        let sides: Vec<_> = list(case, "/sides").iter().map(|side| &side["name"]).collect();
        assert_eq!(sides, ["Rust", "Java"]);
        for side in list(case, "/sides") {
            assert_eq!(list(side, "/runs").len(), 2, "{side:#}");
            assert_eq!(number(side, "/statistics/count"), 6.0, "{side:#}");
            assert!(number(side, "/statistics/min") > 0.0, "{side:#}");
        }
    }
    for side in list(&report, "/archive") {
        for run in list(side, "/runs") {
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
fn without_java_there_is_no_archive_and_the_program_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = command(RECORDING, &[] as &[&str]);
    command.env("JAVA_HOME", "/no/such/directory").arg("--results").arg(dir.path());
    let finished = run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("the archive needs Java"), "{finished:#?}");
}
