//! The program `benchmark_driver_resources`.

use std::fs;

use serde_json::Value;

use crate::child::{
    QUIET, Results, Running, SHORT, announced, driver_resources, has_java, list, number,
};

/// A little load, and terms that cost little.
const LITTLE: [&str; 4] = ["--rate", "100", "--term-length", "64k"];

/// Asserts that a contender has all figures of its runs, and that they fit each other.
#[track_caller]
fn assert_figures(contender: &Value, runs: usize) {
    assert_eq!(list(contender, "/runs").len(), runs, "{contender:#}");
    // On a busy machine, a driver may get no processor time for the 200 ms of one run.
    let messages = |run| number(run, "/messages_per_second");
    assert!(list(contender, "/runs").iter().any(|run| messages(run) > 0.0), "{contender:#}");
    for (index, run) in list(contender, "/runs").iter().enumerate() {
        for name in ["start_up_millis", "shutdown_millis"] {
            assert!(number(run, &format!("/{name}")) > 0.0, "run {index}: {name} in {run:#}");
        }
        for phase in ["idle", "paced", "full"] {
            let figure = |name: &str| number(run, &format!("/{phase}_{name}"));
            assert!(figure("cpu_percent_peak") >= 0.9 * figure("cpu_percent_mean"), "{run:#}");
            assert!(figure("resident_mib_peak") >= figure("resident_mib_mean"), "{run:#}");
            assert!(figure("shared_mib_mean") > 0.0, "{run:#}");
            assert!(figure("private_mib_mean") > 0.0, "{run:#}");
            assert!(figure("threads") >= 1.0, "{run:#}");
        }
        let percentile = |name: &str| number(run, &format!("/round_trip_micros_{name}"));
        let percentiles = ["p50", "p90", "p99", "max"].map(percentile);
        assert!(percentiles[0] > 0.0 && percentiles.is_sorted(), "{run:#}");
    }
    assert_eq!(number(contender, "/figures/idle_threads/count"), runs as f64);
    assert!(!list(contender, "/round_trip_distribution").is_empty());
}

#[test]
fn each_setting_is_measured_idle_and_loaded() {
    for transport in ["udp", "ipc"] {
        let arguments = ["--contenders", "rust", "--settings", "shared/backoff,dedicated/sleep-ns"];
        let results = Results::with(driver_resources(
            SHORT
                .iter()
                .chain(&QUIET)
                .chain(&LITTLE)
                .chain(&arguments)
                .chain(&["--transport", transport]),
        ));
        let settings = ["shared/backoff", "dedicated/sleep-ns"];
        let runs: Vec<_> = ["1", "2"]
            .iter()
            .flat_map(|run| settings.map(|settings| format!("{run}, {settings}, Rust")))
            .collect();
        assert_eq!(announced(&results.finished, "Run "), runs, "{results:#?}");

        let report = results.report("driver-resources.json");
        assert_eq!(report["settings"]["transport"], transport);
        assert_eq!(report["settings"]["term_length"], 65_536);
        let driver = report["versions"]["media_driver"].as_str().expect("a version");
        assert!(driver.contains("Aeron 1.54.0"), "{driver}");
        let cases = list(&report, "/cases");
        assert_eq!(cases.iter().map(|case| &case["name"]).collect::<Vec<_>>(), settings);
        assert_eq!(cases[1]["threading_mode"], "dedicated");
        assert_eq!(cases[1]["driver_idle"], "sleep-ns");
        let threads = |case: &Value| number(case, "/contenders/0/figures/idle_threads/min");
        // The settings have reached the driver.
        assert!(threads(&cases[1]) > threads(&cases[0]), "{report:#}");
        for case in cases {
            assert_figures(&case["contenders"][0], 2);
        }
        for chart in ["cpu", "memory", "times", "throughput"] {
            results.assert_chart(&format!("driver-resources-{chart}.svg"), &settings);
        }
        let lines = settings.map(|settings| format!("Rust, {settings}"));
        results.assert_chart(
            "driver-resources-round-trips.svg",
            &lines.each_ref().map(|line| &**line),
        );
    }
}

#[test]
fn both_drivers_take_turns() {
    if !has_java() {
        eprintln!("nothing tested: no Java, or its artifacts have not been fetched yet (java/run)");
        return;
    }
    let arguments = ["--settings", "shared/backoff,embedded", "--java-warmup", "100ms"];
    let results = Results::with(driver_resources(
        SHORT.iter().chain(&QUIET).chain(&LITTLE).chain(&arguments),
    ));
    let turns = ["Rust", "Java"].repeat(4);
    let announced = announced(&results.finished, "Run ");
    assert_eq!(announced.len(), turns.len(), "{results:#?}");
    assert!(announced.iter().zip(turns).all(|(run, host)| run.ends_with(host)), "{announced:?}");
    let report = results.report("driver-resources.json");
    let cases = list(&report, "/cases");
    assert_eq!(cases[1]["preset"], "embedded");
    for contender in cases.iter().flat_map(|case| list(case, "/contenders")) {
        assert_figures(contender, 2);
    }
    // Without the preset there would be more of them. Java has others, which come and go.
    let threads = |case: &Value| number(case, "/contenders/0/figures/idle_threads/min");
    assert_eq!(threads(&cases[0]), threads(&cases[1]), "{report:#}");
    assert!(
        number(&report, "/cases/0/contenders/1/figures/start_up_millis/ratio_of_this_to_first")
            > 0.0
    );
    let java = report["versions"]["java"].as_str().expect("versions");
    assert!(java.starts_with("Java: Aeron "), "{java}");
}

#[test]
fn missing_java_driver_is_skipped_with_reason() {
    let arguments = ["--settings", "shared/backoff"];
    let mut command = driver_resources(SHORT.iter().chain(&QUIET).chain(&LITTLE).chain(&arguments));
    command.env("JAVA_HOME", "/no/such/directory");
    let results = Results::with(command);
    let stderr = &results.finished.stderr;
    assert!(stderr.starts_with("warning: the contenders in Java are skipped: "), "{stderr}");
    let report = results.report("driver-resources.json");
    assert_eq!(list(&report, "/cases/0/contenders").len(), 1);
    assert!(report["versions"]["java"].is_null());
}

/// The processes whose command lines name a text.
fn processes_with(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(text)).collect()
}

#[test]
fn signal_ends_program_and_driver() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--contenders", "rust", "--settings", "shared/backoff", "--runs", "1000"];
    let mut command =
        driver_resources(SHORT[2..].iter().chain(&QUIET).chain(&LITTLE).chain(&arguments));
    command.arg("--results").arg(dir.path());
    let mut running = Running::start(command);
    running.await_line("Run 1, shared/backoff, Rust");
    let prefix = format!("/rusteron-{}-driver-", running.id());
    running.signal("INT");
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
    assert!(processes_with(&prefix).is_empty(), "{:?}", processes_with(&prefix));
    assert!(dir.path().join("driver-resources.json").is_file());
    assert!(dir.path().join("driver-resources-cpu.svg").is_file());
}
