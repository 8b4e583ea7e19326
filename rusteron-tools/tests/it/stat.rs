//! `rusteron stat`.

use rusteron_client::SystemCounter;
use serde_json::Value;

use crate::support::{array, connect, json, launch, text};

#[test]
fn counters_as_text_and_json() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let counter = aeron.add_counter(2000, b"key", "from a client").expect("a counter");
    counter.set(1_234_567);

    let lines = text(driver.aeron_dir(), &["stat"]);
    assert!(lines.lines().next().expect("a line").contains(": alive"), "{lines}");
    for counter in SystemCounter::ALL {
        assert!(lines.contains(&format!(" - {counter}")), "{counter} in {lines}");
    }
    let line = lines.lines().find(|line| line.ends_with(" - from a client"));
    let id = counter.counter_id();
    let columns: Vec<_> = line.expect("the counter").split_whitespace().collect();
    assert_eq!(columns[..2], [&format!("{id}:"), "1,234,567"]);

    let stat = json(driver.aeron_dir(), &["stat"]);
    assert_eq!(stat["driver"]["state"], "alive");
    assert_eq!(stat["driver"]["pid"], std::process::id());
    let found = array(&stat, "counters").iter().find(|found| found["id"] == id);
    let found = found.expect("the counter");
    let expected = serde_json::json!({
        "id": id,
        "type_id": 2000,
        "type_name": null,
        "value": 1_234_567,
        "rate_per_second": null,
        "label": "from a client",
        "registration_id": counter.registration_id(),
        "owner_id": aeron.client_id(),
        "reference_id": 0,
    });
    assert_eq!(*found, expected);
}

#[test]
fn type_and_label_choose() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let counters = [(2000, "One apple"), (2000, "two pears"), (2001, "three apples")];
    let counters =
        counters.map(|(id, label)| aeron.add_counter(id, b"", label).expect("a counter"));
    let labels = |arguments: &[&str]| -> Vec<String> {
        let stat = json(driver.aeron_dir(), &[&["stat"], arguments].concat());
        let label = |counter: &Value| counter["label"].as_str().expect("a label").to_owned();
        array(&stat, "counters").iter().map(label).collect()
    };
    assert_eq!(labels(&["--type", "2000"]), ["One apple", "two pears"]);
    assert_eq!(labels(&["--type", "2000", "--label", "APPLE"]), ["One apple"]);
    assert_eq!(labels(&["--label", "apple", "--label", "pear"]).len(), counters.len());
    assert_eq!(labels(&["--type", "system"]).len(), SystemCounter::ALL.len());
    assert!(labels(&["--label", "no such counter"]).is_empty());
}
