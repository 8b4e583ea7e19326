//! The program `benchmark_ipc_latency`.

use crate::child::{LATENCY, QUIET_DRIVER, Results, announced, list, number};

#[test]
fn both_transports_and_modes_are_measured() {
    let results = Results::of(
        LATENCY,
        &[&QUIET_DRIVER[..], &["--contenders", "rust,c-functions", "--rate", "1000"]].concat(),
    );
    assert_eq!(announced(&results.finished, "Run 2, ").len(), 8, "{results:#?}");

    let report = results.report("ipc-latency.json");
    let names = ["ipc-closed", "ipc-paced", "udp-closed", "udp-paced"];
    let cases = list(&report, "/cases");
    assert_eq!(cases.iter().map(|case| &case["name"]).collect::<Vec<_>>(), names);
    for case in cases {
        for contender in list(case, "/contenders") {
            let percentile =
                |name: &str| number(contender, &format!("/percentiles/{name}/micros/median"));
            assert!(percentile("p50") > 0.0, "{contender:#}");
            let percentiles = ["p50", "p90", "p99", "p99.9", "p99.99", "max"].map(percentile);
            assert!(percentiles.is_sorted(), "{contender:#}");
            assert_eq!(list(contender, "/runs").len(), 2);
            for run in list(contender, "/runs") {
                assert!(number(run, "/count") > 0.0, "{contender:#}");
                assert!(number(run, "/handover_nanoseconds/before") > 0.0, "{contender:#}");
                assert!(number(run, "/handover_nanoseconds/after") > 0.0, "{contender:#}");
                // Every message that was to be sent in 200 ms, late or not.
                let is_paced = case["name"].as_str().is_some_and(|name| name.ends_with("paced"));
                assert!(!is_paced || number(run, "/count") == 200.0, "{contender:#}");
            }
            assert!(!list(contender, "/distribution").is_empty());
        }
        let ratio = number(&case["contenders"][0], "/percentiles/p99/ratio_of_this_to_first");
        assert_eq!(ratio, 1.0);
    }
    for name in names {
        let file = format!("ipc-latency-{name}.svg");
        results.assert_chart(&file, &["Rust", "C functions", "percentile", "99.9"]);
    }
}

#[test]
fn each_mode_and_idle_strategy_works() {
    for (mode, idle) in [("dedicated", "backoff"), ("shared-network", "sleep-ns")] {
        let arguments = ["--threading-mode", mode, "--driver-idle", idle, "--idle", idle];
        let narrow = ["--contenders", "rust", "--transports", "ipc", "--modes", "closed"];
        let results = Results::of(LATENCY, &[&arguments[..], &narrow].concat());
        let report = results.report("ipc-latency.json");
        assert_eq!(report["settings"]["threading_mode"], mode);
        assert_eq!(report["settings"]["driver_idle"], idle);
        assert!(number(&report, "/cases/0/contenders/0/percentiles/p50/micros/median") > 0.0);
    }
}

#[test]
fn tokio_task_sends_all_messages_back() {
    let arguments = ["--contenders", "rust,rust-tokio", "--transports", "ipc", "--rate", "1000"];
    let results = Results::of(LATENCY, &[&QUIET_DRIVER[..], &arguments].concat());
    let report = results.report("ipc-latency.json");
    let cases = list(&report, "/cases");
    assert_eq!(cases.len(), 2);
    for case in cases {
        assert_eq!(case["contenders"][1]["name"], "Rust-tokio");
        for run in list(case, "/contenders/1/runs") {
            let count = number(run, "/count");
            assert!(
                if case["name"] == "ipc-paced" { count == 200.0 } else { count > 0.0 },
                "{run:#}"
            );
        }
    }
}
