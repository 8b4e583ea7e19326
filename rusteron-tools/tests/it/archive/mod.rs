//! `rusteron archive`, with Java's archive.

mod recordings;
mod session;
mod tail;
#[cfg(unix)]
mod verify;

use std::process::Command;

use rusteron_test_support::archive::JavaArchive;
use serde_json::Value;

use crate::support::{run, rusteron, text_of};

/// The program with an archive. Its timeouts are long, so that a slow driver or archive is not taken for
/// dead.
fn archive(java: &JavaArchive, arguments: &[&str]) -> Command {
    let channel = java.control_channel();
    let options = ["--driver-timeout", "60s", "archive", "--control-channel", &channel];
    let mut command = rusteron(&java.aeron_dir(), options);
    command.args(arguments).env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "60s");
    command
}

/// Runs the program to its good end, and returns its output.
#[track_caller]
fn archive_text(java: &JavaArchive, arguments: &[&str]) -> String {
    text_of(run(archive(java, arguments)))
}

/// The same with `--json`.
#[track_caller]
fn archive_json(java: &JavaArchive, arguments: &[&str]) -> Value {
    let text = archive_text(java, &[arguments, &["--json"]].concat());
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

#[track_caller]
fn assert_fails(command: Command, text: &str) {
    let finished = run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("rusteron: "), "{finished:#?}");
    assert!(finished.stderr.contains(text), "{finished:#?}");
}
