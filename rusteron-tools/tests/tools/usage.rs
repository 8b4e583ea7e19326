//! The command line, and what can be wrong with it or with the directory.

use std::fs;
use std::process::Command;

use crate::support::{Finished, launch, run, rusteron};

const COMMANDS: [&str; 6] = ["stat", "errors", "loss", "streams", "driver", "log"];

fn plain(arguments: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rusteron"));
    command.args(arguments);
    run(command)
}

#[test]
fn every_command_has_help_with_examples() {
    let general = plain(&["--help"]).text();
    assert!(general.contains("Exit codes:") && general.contains("Examples:"), "{general}");
    for command in COMMANDS {
        assert!(general.contains(&format!("  {command} ")), "{general}");
        let help = plain(&[command, "--help"]).text();
        assert!(help.contains(&format!("  rusteron {command}")), "{help}");
    }
    assert!(plain(&["--version"]).text().contains("+aeron-"));
}

#[test]
fn what_cannot_be_understood_is_exit_code_2() {
    let cases: [&[&str]; 8] = [
        &[],
        &["state"],
        &["stat", "--interval", "1s"],
        &["stat", "--watch", "--interval", "0s"],
        &["stat", "--type", "sub-position"],
        &["driver", "--token", "x"],
        &["log", "--frames"],
        &["stat", "--driver-timeout", "10"],
    ];
    for arguments in cases {
        let finished = plain(arguments);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(finished.stderr.contains("Usage:") || finished.stderr.contains("--help"));
    }
}

#[test]
fn a_directory_without_a_driver_is_exit_code_1_and_3_for_the_driver_itself() {
    let home = tempfile::tempdir().expect("a directory");
    for dir in [home.path(), &home.path().join("nobody")] {
        for command in COMMANDS {
            let finished = run(rusteron(dir, [command]));
            if command == "driver" {
                assert_eq!((finished.code, finished.stderr.as_str()), (Some(3), ""));
                assert!(finished.stdout.contains("no driver"), "{finished:?}");
            } else {
                assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{command}");
                let dir = dir.display().to_string();
                assert!(finished.stderr.contains(&dir), "{finished:?}");
            }
        }
    }
}

#[test]
fn a_file_that_is_no_drivers_is_exit_code_1() {
    let home = tempfile::tempdir().expect("a directory");
    fs::write(home.path().join("cnc.dat"), b"not what is expected ".repeat(1000)).expect("a file");
    for command in ["stat", "errors", "loss", "streams", "driver"] {
        let finished = run(rusteron(home.path(), [command]));
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{command}");
        assert!(finished.stderr.starts_with("rusteron: "), "{finished:?}");
        assert!(finished.stderr.contains("incompatible driver"), "{finished:?}");
    }
}

#[test]
fn the_directory_is_also_taken_from_the_environment() {
    let driver = launch();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rusteron"));
    command.arg("driver").env("AERON_DIR", driver.aeron_dir());
    let text = run(command).text();
    assert!(text.contains(&driver.aeron_dir().display().to_string()), "{text}");
}
