//! The program `benchmark_bounds`.

use crate::child::{BOUNDS, QUIET, Results, list, number};

#[test]
fn steps_and_streams_are_measured() {
    let results = Results::of(BOUNDS, &[&["--term-lengths", "64k,1m"], &QUIET[..]].concat());
    let report = results.report("bounds.json");
    assert_eq!(report["settings"]["idle"], "backoff");
    let steps = list(&report, "/steps");
    let names: Vec<_> = steps.iter().map(|step| &step["name"]).collect();
    let expected = [
        "line handed over, and back",
        "yield, nobody else",
        "yield, others that yield",
        "yield, others that spin",
    ];
    assert_eq!(names, expected);
    for step in steps {
        assert_eq!(list(step, "/runs").len(), 2, "{step:#}");
        assert!(number(step, "/nanoseconds/min") > 0.0, "{step:#}");
    }
    let streams = list(&report, "/streams");
    for (stream, term_length) in streams.iter().zip([64 << 10, 1 << 20]) {
        assert_eq!(number(stream, "/term_length"), f64::from(term_length));
        assert_eq!(list(stream, "/runs").len(), 2, "{stream:#}");
        assert_eq!(list(stream, "/handover_nanoseconds").len(), 2, "{stream:#}");
        let groups = list(stream, "/groups");
        let (all, groups) = groups.split_last().expect("a group");
        assert_eq!(all["refused_offers"], "all slices");
        assert!(number(all, "/messages_per_second/max") > 0.0, "{stream:#}");
        let shares: f64 = groups.iter().map(|group| number(group, "/share_of_slices")).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{stream:#}");
    }
    assert_eq!(streams.len(), 2);
}
