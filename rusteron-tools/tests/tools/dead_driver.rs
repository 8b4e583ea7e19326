//! The files that a killed driver has left behind.

use serde_json::Value;

use crate::support::{
    DriverProcess, array, await_some, connect, connected_pair, json, offer, run, rusteron,
};

#[test]
fn a_driver_that_was_killed_is_known_to_be_dead_and_its_directory_can_be_read() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let driver = DriverProcess::start(&dir);
    let pid = driver.pid();
    let status = json(&dir, &["driver"]);
    assert_eq!((&status["state"], &status["pid"]), (&"alive".into(), &pid.into()));

    let aeron = connect(&dir);
    let (mut publication, subscription) = connected_pair(&aeron, "aeron:ipc");
    let position = offer(&mut publication, b"last words");
    let id = publication.original_registration_id();
    driver.kill();

    // With the timeout that the clients of a driver have, it would take 10 s.
    let dead = ["--driver-timeout", "100ms"];
    let finished = await_some("the driver is known to be dead", || {
        let finished = run(rusteron(&dir, [&["driver", "--json"][..], &dead].concat()));
        assert_eq!(finished.stderr, "");
        (finished.code == Some(3)).then_some(finished)
    });
    let status: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!((&status["state"], &status["pid"]), (&"dead".into(), &pid.into()));
    assert!(status["heartbeat_age_ms"].as_u64() >= Some(100));

    for command in ["stat", "streams", "errors", "loss"] {
        let found = json(&dir, &[&[command][..], &dead].concat());
        assert_eq!(found["driver"]["state"], "dead", "{command}");
    }
    let stat = json(&dir, &["stat"]);
    assert!(array(&stat, "counters").len() > 46);
    assert_eq!(array(&json(&dir, &["streams"]), "streams").len(), 1);
    let log = json(&dir, &["log", &id.to_string(), "--payload", "ascii"]);
    assert_eq!(log["log"]["position"], position);
    assert_eq!(array(&log, "entries")[0]["payload"], "last words");
    drop((publication, subscription));
}
