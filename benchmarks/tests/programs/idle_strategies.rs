//! The program `benchmark_idle_strategies`.

use crate::child::{IDLE_STRATEGIES, Results, list, number};

#[test]
fn every_combination_is_a_cell() {
    let results = Results::of(
        IDLE_STRATEGIES,
        &[
            "--term-lengths",
            "64k,1m",
            "--idles",
            "yield,backoff",
            "--threading-modes",
            "shared,dedicated",
        ],
    );
    let report = results.report("idle-strategies.json");
    let cells = list(&report, "/cells");
    let combinations: Vec<_> = cells
        .iter()
        .map(|cell| (&cell["threading_mode"], &cell["term_length"], &cell["idle"]))
        .map(|(threading, length, idle)| format!("{threading} {length} {idle}").replace('"', ""))
        .collect();
    assert_eq!(
        combinations,
        [
            "shared 65536 yield",
            "shared 65536 backoff",
            "shared 1048576 yield",
            "shared 1048576 backoff",
            "dedicated 65536 yield",
            "dedicated 65536 backoff",
            "dedicated 1048576 yield",
            "dedicated 1048576 backoff",
        ]
    );
    for cell in cells {
        assert_eq!(list(cell, "/runs").len(), 2, "{cell:#}");
        assert!(number(cell, "/messages_per_second/max") > 0.0, "{cell:#}");
    }
    let expected = ["terms of 64k", "terms of 1m", "yield", "backoff"];
    for mode in ["shared", "dedicated"] {
        results.assert_chart(&format!("idle-strategies-{mode}.svg"), &expected);
    }
    let tables =
        results.finished.stdout.lines().filter(|line| line.ends_with("median (quartiles)"));
    assert_eq!(tables.count(), 2, "{results:#?}");
}
