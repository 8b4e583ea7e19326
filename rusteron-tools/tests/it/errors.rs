//! `rusteron errors`.

use rusteron_client::UncheckedChannel;

use crate::support::{array, await_some, connect, json, launch_in, text};

#[test]
fn distinct_errors_are_counted() {
    let home = tempfile::tempdir().expect("a directory");
    let driver = launch_in(home.path());
    let dir = driver.aeron_dir();
    assert!(array(&json(dir, &["errors"]), "errors").is_empty());
    let aeron = connect(dir);
    for _ in 0..3 {
        let channel = UncheckedChannel("aeron:ipc?term-length=carrier-pigeons");
        aeron.add_publication(channel, 1).expect_err("an invalid channel");
    }
    let error = await_some("the error", || {
        let errors = json(dir, &["errors"]);
        array(&errors, "errors").iter().find(|error| error["observation_count"] == 3).cloned()
    });
    assert!(error["text"].as_str().is_some_and(|text| text.contains("carrier-pigeon")), "{error}");
    for name in ["first_observation", "last_observation"] {
        let time = error[name].as_str().expect("a time");
        assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
    }
    let lines = text(dir, &["errors", "--since", "1h"]);
    assert!(lines.contains("observed 3 times from 20"), "{lines}");
    assert!(lines.contains("carrier-pigeon"), "{lines}");
    await_some("a time at which the error was long ago", || {
        array(&json(dir, &["errors", "--since", "1ms"]), "errors").is_empty().then_some(())
    });
}
