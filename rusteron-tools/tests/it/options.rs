//! The command line, and standard output.

use std::process::Stdio;

use crate::support::{COMMANDS, command, launch, run, rusteron, text_of};

#[test]
fn help_has_examples() {
    let general = text_of(run(command(["--help"])));
    assert!(general.contains("Exit codes:") && general.contains("Examples:"), "{general}");
    for name in COMMANDS.into_iter().chain(["archive", "cluster"]) {
        assert!(general.contains(&format!("  {name} ")), "{general}");
        let help = text_of(run(command([name, "--help"])));
        assert!(help.contains(&format!("  rusteron {name}")), "{help}");
    }
    assert!(text_of(run(command(["--version"]))).contains("+aeron-"));
}

#[test]
fn invalid_exits_2() {
    let cases: [&[&str]; 19] = [
        &[],
        &["state"],
        &["stat", "--interval", "1s"],
        &["stat", "--watch", "--interval", "0s"],
        &["stat", "--type", "sub-position"],
        &["driver", "--token", "x"],
        &["driver", "--pid", "1"],
        &["driver", "--check", "--json"],
        &["stat", "--openmetrics", "--json"],
        &["stat", "--listen", "localhost:x"],
        &["stat", "--listen", "--openmetrics"],
        &["log", "--frames"],
        &["stat", "--driver-timeout", "10"],
        &["archive"],
        &["archive", "tail", "1", "--new", "--from", "0"],
        // These need the directory of an archive.
        &["archive", "verify"],
        &["archive", "verify", "0", "--all-segments"],
        &["archive", "verify", "0", "--repair"],
        &["archive", "compact"],
    ];
    for arguments in cases {
        let finished = run(command(arguments));
        assert_eq!(
            (finished.status.code(), finished.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(finished.stderr.contains("Usage:") || finished.stderr.contains("--help"));
    }
}

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
