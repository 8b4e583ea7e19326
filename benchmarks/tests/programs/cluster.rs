//! The program `benchmark_cluster`.

use crate::child::{CLUSTER, QUIET, Results, SHORT, command, has_java, list, number};

#[test]
fn clients_in_rust_and_java_are_compared() {
    if !has_java() {
        eprintln!("nothing tested: no Java, or its artifacts have not been fetched yet (java/run)");
        return;
    }
    let arguments = ["--java-warmup", "100ms", "--windows", "1,16", "--transports", "udp,ipc"];
    let member = ["--node-idle", "backoff"];
    let results = Results::with(command(
        CLUSTER,
        SHORT.iter().chain(&QUIET).chain(&arguments).chain(&member),
    ));
    let report = results.report("cluster.json");
    let names: Vec<_> = list(&report, "/cases").iter().map(|case| &case["name"]).collect();
    assert_eq!(names, ["udp, window 1", "udp, window 16", "ipc, window 1", "ipc, window 16"]);
    for case in list(&report, "/cases") {
        let contenders: Vec<_> =
            list(case, "/contenders").iter().map(|contender| &contender["name"]).collect();
        assert_eq!(contenders, ["Rust", "Java"]);
        for contender in list(case, "/contenders") {
            assert_eq!(list(contender, "/runs").len(), 2, "{contender:#}");
            for run in list(contender, "/runs") {
                assert!(number(run, "/rate") > 0.0, "{contender:#}");
                assert!(number(run, "/count") > 0.0, "{contender:#}");
            }
        }
    }
    results.assert_chart("cluster-rates.svg", &["Rust", "Java", "udp, window 1"]);
}
