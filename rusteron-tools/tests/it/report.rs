//! Standard output.

use std::process::Stdio;

use crate::support::{launch, run, rusteron};

#[test]
fn no_reader_exits_0() {
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
        assert_eq!(
            (finished.status.code(), finished.stderr.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_output_exits_1() {
    let driver = launch();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut command = rusteron(driver.aeron_dir(), ["stat"]);
    command.stdout(full);
    let finished = run(command);
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("cannot write to standard output"), "{finished:?}");
}
