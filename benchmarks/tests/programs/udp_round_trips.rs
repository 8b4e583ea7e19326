//! The program `benchmark_udp_round_trips`.

use crate::child::{Results, UDP_ROUND_TRIPS, announced, has_java, list, number};
use crate::udp_throughput::has_namespaces;

const LITTLE: [&str; 2] = ["--term-length", "64k"];

/// Asserts that the cells are those of the contenders, with figures of both runs.
#[track_caller]
fn assert_cells(results: &Results, network: &str, contenders: &[&str]) {
    let report = results.report("udp-round-trips.json");
    let cells = list(&report, "/cells");
    assert_eq!(cells.iter().map(|cell| &cell["contender"]).collect::<Vec<_>>(), contenders);
    for cell in cells {
        assert_eq!(cell["network"], network);
        let counts = list(cell, "/round_trips");
        assert_eq!(counts.len(), 2, "{cell:#}");
        assert!(counts.iter().all(|count| count.as_u64() > Some(0)), "{cell:#}");
        let percentiles = ["p50", "p90", "p99", "max"]
            .map(|name| number(cell, &format!("/percentiles/{name}/micros/median")));
        assert!(percentiles[0] > 0.0 && percentiles.is_sorted(), "{cell:#}");
    }
    assert_eq!(number(&cells[0], "/percentiles/p99/ratio_to_first"), 1.0);
}

#[test]
fn round_trips_of_sockets_rust_and_c_take_turns() {
    let arguments = ["--contenders", "sockets,rust,c", "--networks", "loopback"];
    let results = Results::of(UDP_ROUND_TRIPS, &[&arguments[..], &LITTLE].concat());
    let runs = ["1, loopback, sockets", "1, loopback, rust", "1, loopback, c", "2, loopback, rust"];
    assert_eq!(announced(&results.finished, "Run ")[..4], runs, "{results:#?}");
    assert_cells(&results, "loopback", &["sockets", "rust", "c"]);
}

#[test]
fn round_trips_cross_namespaces() {
    if !has_namespaces() {
        eprintln!("nothing tested: no network namespaces, which need root and iproute2");
        return;
    }
    let arguments = ["--contenders", "rust,sockets", "--networks", "namespaces"];
    let results = Results::of(UDP_ROUND_TRIPS, &[&arguments[..], &LITTLE].concat());
    assert_cells(&results, "namespaces", &["rust", "sockets"]);
}

#[test]
fn round_trips_of_java_are_measured() {
    if !has_java() {
        eprintln!("nothing tested: no Java, or its artifacts have not been fetched yet (java/run)");
        return;
    }
    let arguments = ["--contenders", "java", "--networks", "loopback", "--java-warmup", "100ms"];
    let results = Results::of(UDP_ROUND_TRIPS, &[&arguments[..], &LITTLE].concat());
    assert_cells(&results, "loopback", &["java"]);
}
