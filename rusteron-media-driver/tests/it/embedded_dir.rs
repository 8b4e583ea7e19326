//! Directories of embedded drivers whose process was killed.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, io};

use rusteron_media_driver::MediaDriver;
use rusteron_test_support::ChildProcess;

/// An embedded driver in a process of its own, which lives until it is killed. Returns its
/// directory, too.
fn embedding_process() -> (ChildProcess, PathBuf) {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(["--exact", "embedded_dir::embed_until_killed", "--ignored", "--nocapture"]);
    let mut process = ChildProcess::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let line = process.await_line("directory ");
    let dir = PathBuf::from(line.strip_prefix("directory ").expect("a path"));
    (process, dir)
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn embed_until_killed() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    println!("\ndirectory {}", driver.aeron_dir().display());
    let _ = io::read_to_string(io::stdin());
}

#[test]
fn next_launch_removes_what_killed_processes_left() {
    let (mut killed, left) = embedding_process();
    let (stopped, alive) = embedding_process();
    killed.kill();
    stopped.signal("STOP");
    let driver = MediaDriver::launch_embedded().expect("a driver");
    assert!(!left.exists());
    assert!(alive.join("cnc.dat").is_file() && driver.aeron_dir().join("cnc.dat").is_file());
    stopped.signal("CONT");
}
