//! `rusteron stat`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use rusteron_client::SystemCounter;
use serde_json::Value;

use crate::support::{array, connect, json, launch, run, rusteron, text};

#[test]
fn all_counters_are_shown_as_text_and_as_json() {
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
fn counters_are_chosen_by_type_and_label() {
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

#[test]
fn labels_do_nothing_to_a_terminal() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let label = "gone: \x1b[2J\nfake: 1";
    let _counter = aeron.add_counter(2000, b"", label).expect("a counter");
    // `text` asserts that there is no escape in it.
    let lines = text(driver.aeron_dir(), &["stat", "--type", "2000"]);
    assert!(lines.ends_with(" - gone: \u{FFFD}[2J\u{FFFD}fake: 1\n"), "{lines:?}");
    assert_eq!(lines.lines().count(), 2);
    let stat = json(driver.aeron_dir(), &["stat", "--type", "2000"]);
    assert_eq!(array(&stat, "counters")[0]["label"], label);
}

/// Watches every 20 ms, until killed.
struct Watch {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Watch {
    fn start(dir: &std::path::Path, arguments: &[&str]) -> Self {
        let watch = ["stat", "--watch", "--interval", "20ms"];
        Self::of(rusteron(dir, [&watch, arguments].concat()))
    }

    fn of(mut command: std::process::Command) -> Self {
        let mut child = command.spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, stdout }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        line
    }

    fn end(mut self) -> (Option<i32>, String) {
        drop(self.stdout);
        let mut stderr = String::new();
        let pipe = self.child.stderr.as_mut().expect("a pipe");
        pipe.read_to_string(&mut stderr).expect("UTF-8");
        (self.child.wait().expect("the end").code(), stderr)
    }
}

#[test]
fn watching_shows_rates_and_ends_when_nobody_reads_any_more() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let counter = aeron.add_counter(2000, b"", "moving").expect("a counter");
    let mut watch = Watch::start(driver.aeron_dir(), &["--json", "--label", "moving"]);
    let mut counter_in = |change| -> Value {
        let line = watch.line();
        let stat: Value = serde_json::from_str(&line).expect("JSON");
        counter.get_and_add(change);
        array(&stat, "counters")[0].clone()
    };
    let first = counter_in(5);
    assert_eq!((&first["value"], &first["rate_per_second"]), (&0.into(), &Value::Null));
    let risen = (0..1000)
        .map(|_| counter_in(5))
        .find(|counter| counter["rate_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
    assert!(risen.expect("a rate")["value"].as_i64() >= Some(5));
    assert_eq!(watch.end(), (Some(0), String::new()));
}

#[cfg(unix)]
#[test]
fn watching_goes_on_when_the_terminal_is_closed_if_it_was_started_with_nohup() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let counter = aeron.add_counter(2000, b"", "moving").expect("a counter");
    let arguments = ["stat", "--watch", "--interval", "20ms", "--json", "--label", "moving"];
    let mut watch = Watch::of(under_nohup(rusteron(driver.aeron_dir(), arguments)));
    assert_ne!(watch.line(), "");
    signal(watch.child.id(), "HUP");
    counter.set(7);
    // Reports that were already on their way do not have the value.
    let mut lines = 0;
    while lines < 10 {
        let line = watch.line();
        let stat: Value = serde_json::from_str(&line).expect("it goes on");
        lines += usize::from(array(&stat, "counters")[0]["value"] == 7);
    }
    signal(watch.child.id(), "TERM");
    while !watch.line().is_empty() {}
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn watching_without_a_terminal_prints_one_report_after_the_other() {
    let driver = launch();
    let mut watch = Watch::start(driver.aeron_dir(), &["--label", "bytes sent"]);
    for _ in 0..3 {
        assert!(watch.line().contains(": alive"));
        assert!(watch.line().contains(" - Bytes sent"));
        assert_eq!(watch.line(), "\n");
    }
    assert_eq!(watch.end(), (Some(0), String::new()));
}

#[test]
fn watching_goes_on_when_the_driver_ends_and_when_another_one_comes() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let driver = crate::support::launch_in(&dir);
    let mut watch = Watch::start(&dir, &["--json", "--label", "bytes sent"]);
    let mut await_state = |state: &str| {
        crate::support::await_that(state, || {
            let stat: Value = serde_json::from_str(&watch.line()).expect("JSON");
            stat["driver"]["state"] == state
        });
    };
    await_state("alive");
    drop(driver);
    await_state("ended");
    std::fs::remove_dir_all(&dir).expect("it can be deleted");
    await_state("absent");
    let _successor = crate::support::launch_in(&dir);
    await_state("alive");
    assert_eq!(watch.end(), (Some(0), String::new()));
}

#[cfg(unix)]
#[test]
fn watching_ends_orderly_on_signals() {
    let driver = launch();
    for signal in ["INT", "TERM"] {
        let mut watch = Watch::start(driver.aeron_dir(), &["--json", "--label", "bytes sent"]);
        watch.line();
        crate::support::send_signal(watch.child.id(), signal);
        // Reading on, so that it is the signal that ends it.
        let mut rest = String::new();
        watch.stdout.read_to_string(&mut rest).expect("UTF-8");
        assert_eq!(watch.end(), (Some(0), String::new()), "SIG{signal}");
    }
}

#[test]
fn nobody_reading_is_no_error() {
    let driver = launch();
    for arguments in [&["stat"][..], &["stat", "--json"], &["log", "--json"], &["driver"]] {
        // The input of a program that has ended is a pipe without a reader.
        let mut ended = rusteron(driver.aeron_dir(), ["driver"]);
        let mut ended = ended.stdin(Stdio::piped()).spawn().expect("it starts");
        let unread = ended.stdin.take().expect("a pipe");
        ended.wait_with_output().expect("the end");
        let mut command = rusteron(driver.aeron_dir(), arguments);
        command.stdout(unread);
        let finished = run(command);
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let driver = launch();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut command = rusteron(driver.aeron_dir(), ["stat"]);
    command.stdout(full);
    let finished = run(command);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("cannot write to standard output"), "{finished:?}");
}

/// The program, started by `nohup`.
#[cfg(unix)]
fn under_nohup(program: std::process::Command) -> std::process::Command {
    let mut command = std::process::Command::new("nohup");
    command.arg(program.get_program()).args(program.get_args()).env_remove("AERON_DIR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[cfg(unix)]
fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(sent.expect("the command kill").success());
}
