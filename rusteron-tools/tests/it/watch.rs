//! `--watch` without a terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

#[cfg(unix)]
use crate::support::send_signal;
use crate::support::{array, await_that, connect, launch, launch_in, rusteron};

/// Watches every 20 ms, until killed.
struct Watch {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Watch {
    fn start(dir: &Path, arguments: &[&str]) -> Self {
        let watch = ["stat", "--watch", "--interval", "20ms"];
        Self::of(rusteron(dir, [&watch, arguments].concat()))
    }

    fn of(mut command: Command) -> Self {
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
fn rates_until_reader_is_gone() {
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
fn nohup_survives_hangup() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let counter = aeron.add_counter(2000, b"", "moving").expect("a counter");
    let arguments = ["stat", "--watch", "--interval", "20ms", "--json", "--label", "moving"];
    let mut watch = Watch::of(under_nohup(rusteron(driver.aeron_dir(), arguments)));
    assert_ne!(watch.line(), "");
    send_signal(watch.child.id(), "HUP");
    counter.set(7);
    // Reports that were already on their way do not have the value.
    let mut lines = 0;
    while lines < 10 {
        let line = watch.line();
        let stat: Value = serde_json::from_str(&line).expect("it goes on");
        lines += usize::from(array(&stat, "counters")[0]["value"] == 7);
    }
    send_signal(watch.child.id(), "TERM");
    while !watch.line().is_empty() {}
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn outlives_drivers() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let driver = launch_in(&dir);
    let mut watch = Watch::start(&dir, &["--json", "--label", "bytes sent"]);
    let mut await_state = |state: &str| {
        await_that(state, || {
            let stat: Value = serde_json::from_str(&watch.line()).expect("JSON");
            stat["driver"]["state"] == state
        });
    };
    await_state("alive");
    drop(driver);
    await_state("ended");
    std::fs::remove_dir_all(&dir).expect("it can be deleted");
    await_state("absent");
    let _successor = launch_in(&dir);
    await_state("alive");
    assert_eq!(watch.end(), (Some(0), String::new()));
}

#[test]
fn survives_shrinking_file() {
    let (home, dir) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let driver = launch_in(home.path());
    let file = dir.path().join("cnc.dat");
    // The driver itself would not survive it.
    std::fs::copy(driver.aeron_dir().join("cnc.dat"), &file).expect("a copy");
    drop(driver);
    let whole = std::fs::read(&file).expect("the copy");
    let mut watch = Watch::start(dir.path(), &["--json"]);
    assert_ne!(watch.line(), "");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(&file).expect("the copy");
            // The header and the counters' labels stay, and their values come and go.
            for length in [whole.len() / 2, whole.len()].iter().cycle() {
                file.set_len(*length as u64).expect("a length");
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                thread::yield_now();
            }
        });
        let lines: Vec<_> = (0..3).map(|_| watch.line()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(lines.iter().all(|line| line.ends_with("}\n")), "{lines:?}");
    });
    std::fs::write(&file, &whole).expect("it grows");
    await_that("the counters", || {
        let stat: Value = serde_json::from_str(&watch.line()).expect("JSON");
        array(&stat, "counters").iter().any(|counter| counter["label"] == "Bytes sent")
    });
    assert_eq!(watch.end(), (Some(0), String::new()));
}

#[cfg(unix)]
#[test]
fn signals_exit_0() {
    let driver = launch();
    for signal in ["INT", "TERM"] {
        let mut watch = Watch::start(driver.aeron_dir(), &["--json", "--label", "bytes sent"]);
        watch.line();
        send_signal(watch.child.id(), signal);
        // Reading on, so that it is the signal that ends it.
        let mut rest = String::new();
        watch.stdout.read_to_string(&mut rest).expect("UTF-8");
        assert_eq!(watch.end(), (Some(0), String::new()), "SIG{signal}");
    }
}

/// The program, started by `nohup`.
#[cfg(unix)]
fn under_nohup(program: Command) -> Command {
    let mut command = Command::new("nohup");
    command.arg(program.get_program()).args(program.get_args()).env_remove("AERON_DIR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
