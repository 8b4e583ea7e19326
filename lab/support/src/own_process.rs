//! Tests that run in a process of their own: another test starts them there, and they are ignored
//! otherwise.

use std::process::Command;

/// This program with one ignored test.
pub fn ignored_test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    command
}

/// Runs the test to its success. Returns what the test has printed.
#[track_caller]
pub fn pass(ignored_test: &mut Command) -> String {
    let output = ignored_test.output().expect("this program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
    text
}
