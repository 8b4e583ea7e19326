//! The program `benchmark_cluster_service`.

use crate::child::{CLUSTER_SERVICE, QUIET, Results, SHORT, command, has_java, list, number};

#[test]
fn services_in_rust_and_java_are_compared() {
    if !has_java() {
        eprintln!("nothing tested: no Java, or its artifacts have not been fetched yet (java/run)");
        return;
    }
    let arguments = ["--java-warmup", "100ms", "--windows", "1,16", "--transports", "udp"];
    let rounds = ["--runs", "1", "--node-idle", "backoff"];
    let short = SHORT.iter().skip(2);
    let results = Results::with(command(
        CLUSTER_SERVICE,
        short.chain(&QUIET).chain(&arguments).chain(&rounds),
    ));
    let report = results.report("cluster-service.json");
    for case in list(&report, "/cases") {
        for contender in list(case, "/contenders") {
            assert_eq!(list(contender, "/runs").len(), 1, "{contender:#}");
            assert!(number(&contender["runs"][0], "/rate") > 0.0, "{contender:#}");
        }
    }
    let processes = list(&report, "/processes");
    let names: Vec<_> = processes.iter().map(|process| &process["name"]).collect();
    assert_eq!(names, ["Rust", "Java"]);
    for process in processes {
        assert!(number(process, "/resident_bytes/0") > 1e6, "{process:#}");
    }
    assert!(number(&processes[0], "/messages") > 10.0, "{report:#}");
    assert_eq!(number(&processes[0], "/allocations_per_message"), 0.0, "{report:#}");
    results.assert_chart("cluster-service-rates.svg", &["Rust", "Java", "udp, window 1"]);
}
