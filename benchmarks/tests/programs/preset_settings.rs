//! The program `benchmark_preset_settings`.

use crate::child::{PRESET_SETTINGS, Results, list, number};

#[test]
fn every_setting_is_measured() {
    let results = Results::of(PRESET_SETTINGS, &[]);
    let report = results.report("preset-settings.json");
    let cases = list(&report, "/cases");
    let median = |measure: &str, setting: &str| {
        let case = cases.iter().find(|case| {
            case["measure"].as_str().is_some_and(|text| text.contains(measure))
                && case["setting"].as_str().is_some_and(|text| text.contains(setting))
        });
        number(case.expect(setting), "/statistics/median")
    };
    for case in cases {
        assert_eq!(list(case, "/samples").len(), 2, "{case:#}");
    }
    let count = |measure: &str| {
        cases
            .iter()
            .filter(|case| case["measure"].as_str().expect("a text").contains(measure))
            .count()
    };
    assert_eq!(["processor", "adding", "space", "noticing"].map(count), [6, 4, 4, 2]);
    assert!(median("space", "64 MiB, not sparse") >= 192.0);
    assert!(median("space", "1 MiB, not sparse") < 4.0);
    assert!(median("space", "64 MiB, sparse") < 1.0);
    assert!(median("adding", "64 MiB, sparse") > 0.0);
    assert!(median("noticing", "100 ms") >= 0.0);
}
