//! The contenders in Java, and what happens without it.

use crate::child::{
    LATENCY, QUIET, QUIET_DRIVER, Results, SHORT, THROUGHPUT, command, has_java, list, number,
};

#[test]
fn missing_java_is_skipped_with_reason() {
    let narrow: [&[&str]; 2] = [
        &[
            "--publications",
            "exclusive",
            "--message-lengths",
            "32",
            "--contenders",
            "rust,java,java-sample",
        ],
        &["--transports", "ipc", "--modes", "closed", "--contenders", "rust,java,rust-java"],
    ];
    for ((path, file), narrow) in
        [(THROUGHPUT, "ipc-throughput.json"), (LATENCY, "ipc-latency.json")].into_iter().zip(narrow)
    {
        let mut command = command(path, SHORT.iter().chain(narrow).chain(&QUIET));
        command.env("JAVA_HOME", "/no/such/directory");
        let results = Results::with(command);
        let stderr = &results.finished.stderr;
        assert!(stderr.starts_with("warning: the contenders"), "{stderr}");
        assert!(stderr.contains("are skipped: "), "{stderr}");
        let report = results.report(file);
        assert_eq!(list(&report, "/cases/0/contenders").len(), 1);
        assert!(report["versions"]["java"].is_null());
    }
}

#[test]
fn java_takes_its_turns() {
    if !has_java() {
        return;
    }
    let short = ["--runs", "1", "--measure", "200ms", "--warmup", "50ms", "--java-warmup", "100ms"];
    let throughput =
        ["--contenders", "rust,java", "--message-lengths", "4096", "--publishers", "2"];
    let results = Results::with(command(THROUGHPUT, short.iter().chain(&throughput).chain(&QUIET)));
    let report = results.report("ipc-throughput.json");
    assert_eq!(list(&report, "/cases").len(), 2);
    for case in list(&report, "/cases") {
        assert_eq!(case["contenders"][1]["name"], "Java");
        assert!(number(&case["contenders"][1], "/statistics/max") > 0.0, "{case:#}");
    }
    let versions = report["versions"]["java"].as_str().expect("versions");
    assert!(versions.starts_with("Java: Aeron "), "{versions}");
    // The environment of this test's programs has options for Java.
    assert!(versions.contains(", RUSTERON_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 "), "{versions}");

    let latency = ["--contenders", "rust,java,rust-java", "--transports", "ipc", "--rate", "1000"];
    let results =
        Results::with(command(LATENCY, short.iter().chain(&latency).chain(&QUIET_DRIVER)));
    let report = results.report("ipc-latency.json");
    for case in list(&report, "/cases") {
        for contender in list(case, "/contenders") {
            assert!(number(contender, "/percentiles/p50/micros/median") > 0.0, "{case:#}");
            let is_paced = case["name"].as_str().is_some_and(|name| name.ends_with("paced"));
            assert!(!is_paced || number(contender, "/runs/0/count") == 200.0, "{case:#}");
        }
    }
}
